package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Verification is what became of the ledger writes. It is exact for them, and a lower bound for everything that the load wrote.
type Verification struct {
	// acknowledged ledger writes: numbered writes that Redis answered well, in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Acknowledged int64 `json:"acknowledged"`

	// failed ledger writes surely had no effect.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int64 `json:"failed"`

	// unknown ledger writes were sent and never answered in time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int64 `json:"unknown"`

	// unknownPresent are those of the unknown that the read found. That is legal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnknownPresent int64 `json:"unknownPresent"`

	// lostWrites were acknowledged and are absent at the primary. Absent where unread says something.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`

	// firstLost is when the first lost write was acknowledged, at the earliest.
	// +optional
	FirstLost *metav1.MicroTime `json:"firstLost,omitempty"`

	// lastLost is when the last lost write was acknowledged, at the latest.
	// +optional
	LastLost *metav1.MicroTime `json:"lastLost,omitempty"`

	// losses are the lost writes by when they were acknowledged, ascending: each stretch is apart from the next by a second or more.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Losses []LossWindow `json:"losses,omitempty"`

	// sawErrors says whether any client saw an error between the two; absent where nothing was lost.
	// +optional
	SawErrors *bool `json:"sawErrors,omitempty"`

	// replicasRead is how many replicas were in step and were read as well.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReplicasRead int32 `json:"replicasRead"`

	// missingAtReplica are acknowledged writes that the primary has and a replica in step lacks; of the worst replica.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MissingAtReplica int64 `json:"missingAtReplica,omitempty"`

	// staleReads is what was read from replicas beside the load, where spec.verify.staleReads asked for it.
	// +optional
	StaleReads *StaleReads `json:"staleReads,omitempty"`

	// dualPrimaryWrites were acknowledged by a node while another was the primary, where spec.verify.dualPrimary asked for it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DualPrimaryWrites *int64 `json:"dualPrimaryWrites,omitempty"`

	// settings are what the primary said of its persistence and limits.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Settings string `json:"settings,omitempty"`

	// unread says why the ledger, or a part of it, could not be read back: then nothing can be said of lost writes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Unread string `json:"unread,omitempty"`

	// note is what else has to be known.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// StaleReads is how far replicas were behind, as a client that reads from them sees it.
type StaleReads struct {
	// reads that replicas answered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Reads int64 `json:"reads"`

	// stale of them lacked a write that was acknowledged before the read was sent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Stale int64 `json:"stale"`

	// maxWrites is the most acknowledged writes that an answer lacked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxWrites int64 `json:"maxWrites"`

	// maxBehind is the longest time since the oldest of these was acknowledged, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxBehind Microseconds `json:"maxBehind"`

	// backwards are answers older than one that the same node had given, and answers of the primary older than an acknowledged write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Backwards int64 `json:"backwards"`
}

// LossWindow is a stretch of the run in which acknowledged writes were lost.
type LossWindow struct {
	// first is when the first of them was acknowledged, at the earliest, in microseconds from the start of the load.
	// +required
	// +kubebuilder:validation:Minimum=0
	First Microseconds `json:"first"`

	// last is when the last of them was acknowledged, at the latest, in microseconds from the start of the load.
	// +required
	// +kubebuilder:validation:Minimum=0
	Last Microseconds `json:"last"`

	// count of lost writes.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count"`

	// errors are about how many requests were not answered well meanwhile.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors,omitempty"`
}
