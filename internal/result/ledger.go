package result

// Verification is what became of a run's ledger writes: exact for them, a lower bound for everything that the load wrote.
type Verification struct {
	Acknowledged   uint64 `json:"acknowledged"`
	Failed         uint64 `json:"failed"`
	Unknown        uint64 `json:"unknown"`
	UnknownPresent uint64 `json:"unknownPresent"` // of Unknown, those that the read found: legal

	Lost      *uint64 `json:"lostWrites,omitempty"`       // acknowledged and absent; absent where Unread says something
	FirstLost Seconds `json:"firstLostSeconds,omitempty"` // when the first of them was acknowledged, at the earliest, from the load's start
	LastLost  Seconds `json:"lastLostSeconds,omitempty"`  // and the last, at the latest
	Errors    uint64  `json:"errorsMeanwhile,omitempty"`  // about so many requests erred while they were acknowledged

	Replicas       int    `json:"replicasRead"`
	ReplicaMissing uint64 `json:"missingAtReplica,omitempty"` // present at the primary, absent at a replica in step; the worst replica

	Stale *StaleReads  `json:"staleReads,omitempty"`
	Dual  *DualPrimary `json:"dualPrimary,omitempty"`

	Settings string `json:"settings,omitempty"` // of the primary: persistence and limits
	Unread   string `json:"unread,omitempty"`   // why nothing can be said of lost writes
}

// StaleReads is how far replicas were behind.
type StaleReads struct {
	Reads     uint64  `json:"reads"`
	Stale     uint64  `json:"stale"`
	MaxWrites uint64  `json:"maxWrites"`
	MaxBehind Seconds `json:"maxBehindSeconds"`
	Backwards uint64  `json:"backwards"` // answers older than an earlier one of the same node, or of the primary older than an acknowledged write
}

// DualPrimary is whether two nodes took writes at the same time.
type DualPrimary struct {
	Writes uint64  `json:"writes"`                 // taken by a node while another one of the shard took them, too
	First  Seconds `json:"firstSeconds,omitempty"` // from the load's start
	Last   Seconds `json:"lastSeconds,omitempty"`
}
