package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultObjectives decide the verdict of a fault: all that are set must be met.
// +kubebuilder:validation:MinProperties=1
type FaultObjectives struct {
	// maxOutage is the longest allowed period without a success: of the load, its reads or its writes,
	// of one shard of a cluster, or of the probe.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be above 0s"
	// +kubebuilder:validation:Type=string
	MaxOutage *metav1.Duration `json:"maxOutage,omitempty"`

	// maxRecoveryTime is the longest allowed time from the injection to sustained recovery.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be above 0s"
	// +kubebuilder:validation:Type=string
	MaxRecoveryTime *metav1.Duration `json:"maxRecoveryTime,omitempty"`

	// maxTPSDip is the largest allowed drop of the throughput, from 0% to 100%: of all requests, of
	// the reads or of the writes.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	MaxTPSDip *string `json:"maxTPSDip,omitempty"`

	// maxLostWrites is the maximum number of lost acknowledged ledger writes; the load test must have
	// verify.acknowledgedWrites. Defaults to 0 for NetworkPartition on such a load: a primary that is
	// cut off from its replicas and sentinels loses what it goes on to acknowledge.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	MaxLostWrites *int64 `json:"maxLostWrites,omitempty"`

	// maxErrors is the maximum number of failed, unknown and dropped requests from the injection to
	// recovery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	MaxErrors *int64 `json:"maxErrors,omitempty"`
}
