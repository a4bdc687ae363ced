package record

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/internal/record/codec"
)

// Guarantees are what applications count on that use Redis as the workload does, with how often that
// was false in a run. Each is nil for a workload without it.
type Guarantees struct {
	Lock *Lock `json:"lock,omitempty"`
	// why the figures are not those of the whole load; "" = they are
	Untold string `json:"untold,omitempty"`
}

// Lock is what happened to locks, as their holders saw it.
type Lock struct {
	Taken uint64 `json:"taken"` // by any client
	// taken while another client still counted on the same lock
	Overlaps uint64 `json:"overlaps"`
	// the longest of these, in ns
	Overlap int64 `json:"overlap,omitempty"`
	// when the first began and the last ended; 0 without one
	FirstOverlap int64 `json:"firstOverlap,omitempty"`
	LastOverlap  int64 `json:"lastOverlap,omitempty"`
	// gone before their holders gave them up and before their TTL had passed
	Lost uint64 `json:"lost"`
	// not renewed in time
	Expired uint64 `json:"expired"`
	// taken at the primary, and not by as many replicas as were asked for in time: given up
	Unreplicated uint64 `json:"unreplicated,omitempty"`
	// the longest time, in ns, for which a lock that had been taken before had no holder
	Unheld int64 `json:"unheld"`
	// fencing tokens that were not above an earlier one of the same lock; nil without any token
	FencesBack *uint64 `json:"fencesBack,omitempty"`
}

// AddOverlap adds a time for which two clients counted on the same lock.
func (l *Lock) AddOverlap(from, to int64) {
	l.FirstOverlap, l.LastOverlap = JoinWindows(l.Overlaps, l.FirstOverlap, l.LastOverlap, 1, from, to)
	l.Overlaps++
	l.Overlap = max(l.Overlap, to-from)
}

// MergeGuarantees adds up the results of a run's pods, in any order. It ignores nil, and returns nil
// if all are nil.
func MergeGuarantees(results ...*Guarantees) *Guarantees {
	var sum *Guarantees
	for _, r := range results {
		if r == nil {
			continue
		}
		if sum == nil {
			sum = &Guarantees{}
		}
		if r.Lock != nil {
			if sum.Lock == nil {
				sum.Lock = &Lock{}
			}
			sum.Lock.add(r.Lock)
		}
		sum.Untold = max(sum.Untold, r.Untold)
	}
	return sum
}

func (l *Lock) add(o *Lock) {
	l.FirstOverlap, l.LastOverlap = JoinWindows(l.Overlaps, l.FirstOverlap, l.LastOverlap, o.Overlaps,
		o.FirstOverlap, o.LastOverlap)
	l.Taken += o.Taken
	l.Overlaps += o.Overlaps
	l.Overlap = max(l.Overlap, o.Overlap)
	l.Lost += o.Lost
	l.Expired += o.Expired
	l.Unreplicated += o.Unreplicated
	l.Unheld = max(l.Unheld, o.Unheld)
	if o.FencesBack != nil {
		l.CountFences(*o.FencesBack)
	}
}

// CountFences adds fencing tokens that were not above an earlier one.
func (l *Lock) CountFences(back uint64) {
	if l.FencesBack != nil {
		back += *l.FencesBack
	}
	l.FencesBack = &back
}

// Check returns an error that wraps codec.ErrCorrupt for figures that no load can have.
func (g *Guarantees) Check() error {
	if l := g.Lock; l != nil {
		counts := []uint64{l.Taken, l.Overlaps, l.Lost, l.Expired, l.Unreplicated}
		if l.FencesBack != nil {
			counts = append(counts, *l.FencesBack)
		}
		instants := []int64{l.Overlap, l.FirstOverlap, l.LastOverlap, l.Unheld}
		if slices.Max(counts) > maxWrites || slices.Min(instants) < 0 || slices.Max(instants) > maxInstant {
			return fmt.Errorf("%w: the figures of locks are out of range", codec.ErrCorrupt)
		}
	}
	return nil
}
