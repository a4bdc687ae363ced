package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LoadSearch searches for the highest rate that the load pods can sustain and that meets
// objectives.maxLatencyP50, maxLatencyP99, maxLatencyP999 and maxErrorRate, as far as they are set.
// It doubles the rate until a trial misses, and then bisects. A rate is missed if two trials missed
// it.
// +kubebuilder:validation:XValidation:rule="self.from <= self.to",message="from must not be above to"
type LoadSearch struct {
	// from is the rate of the first trial, in requests per second over all pods.
	// +optional
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	From int32 `json:"from,omitempty"`

	// to is the highest rate that is tried.
	// +optional
	// +kubebuilder:default=1000000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	To int32 `json:"to,omitempty"`

	// precision ends the search: the maximum distance of the lowest missed rate from the highest rate
	// that met the objectives. From 1% to 50%.
	// +optional
	// +kubebuilder:default="5%"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^([1-9]|[1-4][0-9]|50)(\.[0-9]+)?%$`
	Precision string `json:"precision,omitempty"`

	// trial is the minimum time for which each rate is evaluated: a low rate is evaluated until there
	// are enough requests for the objectives. Between 1s and 1h.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h"
	// +kubebuilder:validation:Type=string
	Trial metav1.Duration `json:"trial,omitzero"`

	// settle is how long a new rate runs before it is evaluated; at least twice client.requestTimeout.
	// Between 0s and 10m.
	// +optional
	// +kubebuilder:default="2s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('10m')",message="must be between 0s and 10m"
	// +kubebuilder:validation:Type=string
	Settle metav1.Duration `json:"settle,omitzero"`
}

// SearchStatus is the state of a search. The summary of the test is that of the highest rate that
// met the objectives.
type SearchStatus struct {
	// rate is the highest rate that met the objectives so far, in requests per second over all pods; 0
	// while none has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Rate int32 `json:"rate"`

	// done is true once the search has converged; otherwise it is in progress, or was interrupted.
	// +optional
	Done bool `json:"done"`

	// message describes the state of the search.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// trials in chronological order; the last one may be in progress.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Trials []SearchTrial `json:"trials,omitempty"`
}

// SearchTrial is one rate that was tried.
type SearchTrial struct {
	// rate in requests per second over all pods.
	// +required
	// +kubebuilder:validation:Minimum=1
	Rate int32 `json:"rate"`

	// startTime is when the rate began.
	// +required
	StartTime metav1.MicroTime `json:"startTime,omitzero"`

	// met is whether the rate met the objectives; not set while the trial is in progress.
	// +optional
	Met *bool `json:"met,omitempty"`

	// throughput is the successes per second in the evaluated part.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`

	// latencyP99 in the evaluated part.
	// +optional
	LatencyP99 *Duration `json:"latencyP99,omitempty"`

	// errorRate in the evaluated part, from 0 to 1.
	// +optional
	ErrorRate Decimal `json:"errorRate,omitempty"`

	// message states which objective was missed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
