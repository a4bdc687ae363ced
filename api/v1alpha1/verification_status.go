package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verification is the result of reading the ledger writes back. It is exact for them, and a lower
// bound for all writes of the load.
type Verification struct {
	// acknowledged is the number of ledger writes that Redis acknowledged in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Acknowledged int64 `json:"acknowledged"`

	// failed is the number of ledger writes that certainly had no effect.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int64 `json:"failed"`

	// unknown is the number of ledger writes that were sent and not replied to in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int64 `json:"unknown"`

	// unknownPresent is how many of the unknown ledger writes were found, which is legitimate.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnknownPresent int64 `json:"unknownPresent"`

	// failedButExecuted is how many of the failed and the unknown ledger writes the server executed:
	// the application saw an error, and its write is there. Set with the driver of a library.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedButExecuted *int64 `json:"failedButExecuted,omitempty"`

	// executedTwice is the number of ledger writes that the server executed more than once, as the
	// library sent them again. Set with the driver of a library.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ExecutedTwice *int64 `json:"executedTwice,omitempty"`

	// lostWrites is the number of acknowledged ledger writes that are absent at the primary. Not set
	// if unread is set, or if Redis may have evicted some of them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`

	// lostWritesAtLeast is the lower bound of the lost writes, if lostWrites is not known exactly
	// because Redis may have evicted ledger keys.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtLeast *int64 `json:"lostWritesAtLeast,omitempty"`

	// lostWritesAtMost is the upper bound of the lost writes: all acknowledged ledger writes that are
	// absent. Set together with lostWritesAtLeast.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtMost *int64 `json:"lostWritesAtMost,omitempty"`

	// firstLost is the earliest time at which the first absent write was acknowledged.
	// +optional
	FirstLost *metav1.MicroTime `json:"firstLost,omitempty"`

	// lastLost is the latest time at which the last absent write was acknowledged.
	// +optional
	LastLost *metav1.MicroTime `json:"lastLost,omitempty"`

	// losses are the absent writes by time of acknowledgement, ascending. Consecutive periods are a
	// second or more apart, or were lost at different times.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Losses []LossWindow `json:"losses,omitempty"`

	// sawErrors is whether a client received an error between firstLost and lastLost; not set if
	// nothing was lost.
	// +optional
	SawErrors *bool `json:"sawErrors,omitempty"`

	// replicasRead is the number of replicas that were in sync and were read as well.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReplicasRead int32 `json:"replicasRead"`

	// missingAtReplica is the number of acknowledged writes that are present at the primary and absent
	// at a replica that is in sync; of the worst replica.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MissingAtReplica int64 `json:"missingAtReplica,omitempty"`

	// staleReads are the reads from replicas during the load, with spec.verify.staleReads.
	// +optional
	StaleReads *StaleReads `json:"staleReads,omitempty"`

	// dualPrimaryWrites is the number of writes that a node acknowledged while another was the
	// primary, with spec.verify.dualPrimary.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DualPrimaryWrites *int64 `json:"dualPrimaryWrites,omitempty"`

	// settings are the persistence settings and limits of the primaries; each with its address if they
	// differ.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Settings string `json:"settings,omitempty"`

	// unread is why the ledger, or a part of it, could not be read back. The number of lost writes is
	// not known then.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Unread string `json:"unread,omitempty"`

	// note contains further information.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// StaleReads is how far replicas were behind, from the perspective of a client that reads from
// them.
type StaleReads struct {
	// reads is the number of replies from replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reads int64 `json:"reads"`

	// stale is how many of them lacked a write that was acknowledged before the read was sent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Stale int64 `json:"stale"`

	// maxWrites is the maximum number of acknowledged writes that a reply lacked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxWrites int64 `json:"maxWrites"`

	// maxBehind is the longest time since the oldest of these was acknowledged.
	// +optional
	MaxBehind Duration `json:"maxBehind"`

	// backwards is the number of replies older than a previous one of the same node, and of replies of
	// the primary older than an acknowledged write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Backwards int64 `json:"backwards"`
}

// LossWindow is a period of the run in which acknowledged writes were lost.
type LossWindow struct {
	// first is the earliest time at which the first of them was acknowledged, from the
	// start of the load.
	// +required
	First Duration `json:"first"`

	// last is the latest time at which the last of them was acknowledged, from the
	// start of the load.
	// +required
	Last Duration `json:"last"`

	// count of lost writes.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count"`

	// after is the earliest time at which the last of them was acknowledged, from the
	// start of the load: they were lost later.
	// +required
	After Duration `json:"after"`

	// until is the latest time at which the next write after them was acknowledged that was kept: they
	// had been lost before. Not set if none was kept.
	// +optional
	Until Duration `json:"until,omitzero"`

	// errors is the approximate number of failed, unknown and dropped requests in this period.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors,omitempty"`
}
