package result

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
)

// Fault is the effect of one fault on the clients of a load, without the lost writes (Losses), which are known only after the load. Its methods are the figures of
// the fault, which all show that show one: columns, objectives, reports, metrics and comparisons.
type Fault struct{ impact.Impact }

// Losses are the acknowledged ledger writes that were lost because of a fault: a lower bound of all lost writes.
type Losses struct {
	Count Count
	First time.Duration // when the first was acknowledged, at the earliest, from the load's start; 0 if nothing was lost
	Last  time.Duration // when the last was acknowledged, at the latest
	// Errors is the approximate number of requests without success between First and Last.
	Errors uint64
}

// Outage is the longest time without a success because of the fault: of the load, its reads or its writes, of one shard, or of the probe. A client may need any of
// them.
func (f *Fault) Outage() impact.Outage { return f.Impact.Outage }

// Dip is the deepest dip: of all requests, of those that read, or of the others.
func (f *Fault) Dip() impact.Dip { return f.Impact.Dip }

// Recovery is the time from the injection to sustained recovery; false without a recovery.
func (f *Fault) Recovery() (impact.Bounded, bool) {
	return f.RecoveryTime.Max(impact.Bounded{}), f.Recovered
}

// LossesOf sums the losses that fault i can have caused. acted is when each fault on the load acted, from its injection until it had settled, from the load's
// start; From below 0 = it was not injected. all is the number of losses of the whole load: what its bounds differ by may be evictions at any time.
//
// A loss is of the fault in whose time the writes were lost. Where that can have been in the time of several, it is a range for each; and in that of none, for
// the last one before.
func LossesOf(i int, acted []impact.Window, losses []record.Loss, all Count) *Losses {
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

// causesOf are the faults that can have caused a loss, and whether there is no doubt that it is the only one.
func causesOf(l record.Loss, acted []impact.Window) (causes []int, certain bool) {
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

// Doubt adds a doubt unless there is one with this reason.
func (f *Fault) Doubt(d impact.Doubt) {
	if !slices.ContainsFunc(f.Doubts, func(o impact.Doubt) bool { return o.Reason == d.Reason }) {
		f.Doubts = append(f.Doubts, d)
	}
}
