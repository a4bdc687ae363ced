package result

// Verification is the result of reading back a run's ledger writes: exact for these, a lower bound
// for all writes of the load.
type Verification struct {
	Acknowledged uint64 `json:"acknowledged"`
	Failed       uint64 `json:"failed"`
	Unknown      uint64 `json:"unknown"`
	// of Unknown, those that were found, which is no error
	UnknownPresent uint64 `json:"unknownPresent"`

	// acknowledged and not found; not set if Unread is, or if some of them may have been evicted
	Lost *uint64 `json:"lostWrites,omitempty"`
	// set with LostAtMost instead of Lost, if some of those not found may have been evicted
	LostAtLeast *uint64 `json:"lostWritesAtLeast,omitempty"`
	LostAtMost  *uint64 `json:"lostWritesAtMost,omitempty"`
	// when the first of those not found was acknowledged, at the earliest, from the load's start
	FirstLost Seconds `json:"firstLostSeconds,omitempty"`
	LastLost  Seconds `json:"lastLostSeconds,omitempty"` // and the last, at the latest
	// approximate number of failed requests between FirstLost and LastLost
	Errors uint64 `json:"errorsMeanwhile,omitempty"`

	Replicas int `json:"replicasRead"`
	// found at the primary, but not at a replica in sync with it; of the worst replica
	ReplicaMissing uint64 `json:"missingAtReplica,omitempty"`

	Stale *StaleReads  `json:"staleReads,omitempty"`
	Dual  *DualPrimary `json:"dualPrimary,omitempty"`

	// of the primaries, each with its address if they differ: persistence and limits
	Settings string `json:"settings,omitempty"`
	Unread   string `json:"unread,omitempty"` // why the number of lost writes is unknown
}

// StaleReads is how far replicas lagged behind.
type StaleReads struct {
	Reads     uint64  `json:"reads"`
	Stale     uint64  `json:"stale"`
	MaxWrites uint64  `json:"maxWrites"`
	MaxBehind Seconds `json:"maxBehindSeconds"`
	// replies older than an earlier one of the same node, or of the primary older than an acknowledged
	// write
	Backwards uint64 `json:"backwards"`
}

// DualPrimary is whether two nodes accepted writes at the same time.
type DualPrimary struct {
	// accepted by a node while another one of the shard accepted them, too
	Writes uint64  `json:"writes"`
	First  Seconds `json:"firstSeconds,omitempty"` // from the load's start
	Last   Seconds `json:"lastSeconds,omitempty"`
}

// LostWrites returns the number of lost writes with its bounds; nil if it is unknown.
func (v *Verification) LostWrites() *Count {
	switch {
	case v.Lost != nil:
		return &Count{AtLeast: *v.Lost, AtMost: *v.Lost}
	case v.LostAtLeast != nil && v.LostAtMost != nil:
		return &Count{AtLeast: *v.LostAtLeast, AtMost: *v.LostAtMost}
	}
	return nil
}

// SetLost sets the number of lost writes, or its bounds if they differ.
func (v *Verification) SetLost(lost Count) {
	if n, exact := lost.Exact(); exact {
		v.Lost = &n
	} else {
		v.LostAtLeast, v.LostAtMost = &lost.AtLeast, &lost.AtMost
	}
}
