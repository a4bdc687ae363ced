package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ObjectivesOver is the part of the measured time over which throughput, latency and errors are
// evaluated.
//   - OutsideFaults: without the time from each fault's injection to its recovery, which is
//     evaluated by the objectives of the fault.
//   - Everything: the whole measured time.
//
// +kubebuilder:validation:Enum=OutsideFaults;Everything
type ObjectivesOver string

// The parts of the measured time.
const (
	OverOutsideFaults ObjectivesOver = "OutsideFaults"
	OverEverything    ObjectivesOver = "Everything"
)

// Objectives determine the verdict: all that are set must be met. The impact of faults is evaluated
// by the objectives of each RedisFault.
// +kubebuilder:validation:XValidation:rule="has(self.minThroughput) || has(self.maxLatencyP50) || has(self.maxLatencyP99) || has(self.maxLatencyP999) || has(self.maxErrorRate) || has(self.maxLostWrites) || has(self.maxLockOverlap)",message="set at least one of minThroughput, maxLatencyP50, maxLatencyP99, maxLatencyP999, maxErrorRate, maxLostWrites, maxLockOverlap"
type Objectives struct {
	// over is the part of the measured time over which throughput, latency and errors are evaluated.
	// maxLostWrites and maxLockOverlap always cover everything.
	// OutsideFaults: without the time from each fault's injection to its recovery.
	// Everything: the whole measured time.
	// +optional
	// +kubebuilder:default=OutsideFaults
	Over ObjectivesOver `json:"over,omitempty"`

	// minThroughput is the minimum mean of successes per second over the measured time, above 0.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="double(self) > 0.0",message="must be above 0"
	MinThroughput *string `json:"minThroughput,omitempty"`

	// maxLatencyP50 is the maximum median latency over the measured time, above 0s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be above 0s: no request takes no time"
	// +kubebuilder:validation:Type=string
	MaxLatencyP50 *metav1.Duration `json:"maxLatencyP50,omitempty"`

	// maxLatencyP99 is the maximum 99th percentile of latency over the measured time, above 0s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be above 0s: no request takes no time"
	// +kubebuilder:validation:Type=string
	MaxLatencyP99 *metav1.Duration `json:"maxLatencyP99,omitempty"`

	// maxLatencyP999 is the maximum 99.9th percentile of latency over the measured time, above 0s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be above 0s: no request takes no time"
	// +kubebuilder:validation:Type=string
	MaxLatencyP999 *metav1.Duration `json:"maxLatencyP999,omitempty"`

	// maxErrorRate is the maximum share of failed, unknown and dropped requests, from 0% to 100%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$`
	MaxErrorRate *string `json:"maxErrorRate,omitempty"`

	// maxLockOverlap is the longest time for which two users may count on the same lock; it needs
	// workload.lock. 0s allows none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m))+$`
	// +kubebuilder:validation:Type=string
	MaxLockOverlap *metav1.Duration `json:"maxLockOverlap,omitempty"`

	// maxLostWrites is the maximum number of acknowledged ledger writes that may be lost; it needs
	// verify.acknowledgedWrites.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	MaxLostWrites *int64 `json:"maxLostWrites,omitempty"`
}
