package result

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// Losses are the acknowledged ledger writes that were lost because of a fault: a lower bound of all
// lost writes.
type Losses struct {
	Count Count
	// when the first was acknowledged, at the earliest, from the load's start; 0 if nothing was lost
	First time.Duration
	Last  time.Duration // when the last was acknowledged, at the latest
	// Errors is the approximate number of requests without success between First and Last.
	Errors uint64
}

// Since is the losses with instants from that of a fault, which are from the load's start.
func (l *Losses) Since(at time.Duration) *AttributedLoss {
	out := &AttributedLoss{AtLeast: l.Count.AtLeast, AtMost: l.Count.AtMost}
	if l.Count.AtMost > 0 {
		out.First = new(Seconds(l.First - at))
		out.Last = new(Seconds(l.Last - at))
		out.SawErrors = new(l.Errors > 0)
	}
	return out
}

// LossesOf sums the losses that fault i can have caused. acted is when each fault on the load
// acted, from its injection until it had settled, from the load's start; From below 0 = it was not
// injected. all is the number of losses of the whole load: what its bounds differ by may be
// evictions at any time.
//
// A loss is of the fault in whose time the writes were lost. Where that can have been in the time
// of several, it is a range for each; and in that of none, for the last one before.
func LossesOf(i int, acted []summary.Window, losses []record.Loss, all Count) *Losses {
	sum := &Losses{}
	for _, l := range losses {
		causes, certain := causesOf(l, acted)
		if !slices.Contains(causes, i) {
			continue
		}
		first, last := time.Duration(l.First), time.Duration(l.Last)
		if sum.Count.AtMost == 0 {
			sum.First = first
		}
		sum.First, sum.Last = min(sum.First, first), max(sum.Last, last)
		sum.Count.AtMost += l.Count
		if certain {
			sum.Count.AtLeast += l.Count
		}
		sum.Errors += l.Errors
	}
	sum.Count.AtLeast -= min(sum.Count.AtLeast, all.AtMost-all.AtLeast)
	return sum
}

// causesOf are the faults that can have caused a loss, and whether there is no doubt that it is the
// only one.
func causesOf(l record.Loss, acted []summary.Window) (causes []int, certain bool) {
	after, until := time.Duration(l.After), time.Duration(l.Until)
	if until == 0 {
		until = math.MaxInt64
	}
	before := -1 // the last fault that had settled
	for k, w := range acted {
		switch {
		case w.From < 0 || w.From > until:
		case w.To >= after:
			causes = append(causes, k)
		case before < 0 || w.From > acted[before].From:
			before = k
		}
	}
	if len(causes) == 0 && before >= 0 {
		return []int{before}, false
	}
	return causes, len(causes) == 1
}

// Verification is the result of reading back a run's ledger writes: exact for these, a lower bound
// for all writes of the load.
type Verification struct {
	Acknowledged uint64 `json:"acknowledged"`
	Failed       uint64 `json:"failed"`
	Unknown      uint64 `json:"unknown"`
	// of Unknown, those that were found, which is no error
	UnknownPresent uint64 `json:"unknownPresent"`
	// of Failed and Unknown, those that were found; set with the driver of a library
	FailedButExecuted *uint64 `json:"failedButExecuted,omitempty"`
	// executed more than once; set with the driver of a library
	ExecutedTwice *uint64 `json:"executedTwice,omitempty"`

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

// Verified sets the verification from the ledger that was read back; nil = no ledger.
func (r *Load) Verified(l *record.Ledger) {
	if l == nil {
		return
	}
	v := &Verification{
		Acknowledged:   l.Acked,
		Failed:         l.Failed,
		Unknown:        l.Unknown,
		UnknownPresent: l.UnknownPresent,
		Replicas:       l.Replicas,
		ReplicaMissing: l.ReplicaMissing,
		Settings:       l.Settings,
		Unread:         l.Unknowable(),
	}
	if l.Unread == "" && l.ExecutedTwice != nil {
		v.FailedButExecuted = new(l.UnknownPresent + l.FailedPresent)
		v.ExecutedTwice = new(*l.ExecutedTwice)
	}
	if v.Unread == "" {
		v.SetLost(Count{AtLeast: l.LostAtLeast(), AtMost: l.Lost})
		v.FirstLost = Seconds(l.FirstLost)
		v.LastLost = Seconds(l.LastLost)
		v.Errors = l.Errors
	}
	if s := l.Stale; s != nil {
		v.Stale = &StaleReads{
			Reads:     s.Reads,
			Stale:     s.Stale,
			MaxWrites: s.MaxWrites,
			MaxBehind: Seconds(s.MaxBehind),
			Backwards: s.NonMonotonic + s.RolledBack,
		}
	}
	if d := l.Dual; d != nil {
		v.Dual = &DualPrimary{
			Writes: d.Writes,
			First:  Seconds(d.First),
			Last:   Seconds(d.Last),
		}
	}
	r.Verification = v
	r.Notes = append(r.Notes, l.Notes...)
	if note := l.EvictionNote(); v.Unread == "" && note != "" {
		r.Notes = append(r.Notes, note)
	}
}
