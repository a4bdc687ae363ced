package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultPlan is what a fault does, when, and how that is reverted.
type FaultPlan struct {
	// trigger is when the targets are hit.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Trigger string `json:"trigger,omitempty"`
	// end is when it is reverted.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	End string `json:"end,omitempty"`
	// latestEnd is when it is reverted whatever happened until then, by spec.deadline.
	// +optional
	LatestEnd *metav1.MicroTime `json:"latestEnd,omitempty"`
	// steps are what is done to each target, in this order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Steps []PlanStep `json:"steps,omitempty"`
	// omitted is the number of further targets, for which the same is done.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Omitted int32 `json:"omitted,omitempty"`
}

// PlanStep is what a fault does to one target.
type PlanStep struct {
	// pod is the name of the target pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// action is what is done to it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Action string `json:"action,omitempty"`
	// revert is how that is reverted; not set if there is nothing to revert.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Revert string `json:"revert,omitempty"`
	// losesData is why this primary comes back without its data after that; absent where it keeps
	// them.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LosesData string `json:"losesData,omitempty"`
	// selfEnding is what ends without the operator; not set if nothing does.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	SelfEnding string `json:"selfEnding,omitempty"`
	// manualRevertCommand is the command with which a person reverts it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ManualRevertCommand string `json:"manualRevertCommand,omitempty"`
}

// MarkSource is where t0 of a fault of type External is from.
// +kubebuilder:validation:Enum=Annotation;Load
type MarkSource string

// The sources.
const (
	// MarkedByAnnotation is the annotation redquake.dev/mark.
	MarkedByAnnotation MarkSource = "Annotation"
	// MarkedByLoad is the begin of the first anomaly or outage of the load.
	MarkedByLoad MarkSource = "Load"
)
