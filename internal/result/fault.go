package result

import (
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

// lossSlack is the longest time from the end of a loss to the injection of the fault that caused it.
const lossSlack = time.Second

// LossesOf sums the losses caused by fault i: those whose end plus lossSlack is after the injection of fault i, but of no later fault. injected
// is when each fault on the load was injected, from the load's start; negative = not injected. all is the number of losses of the whole load:
// what its bounds differ by may be evictions at any time.
func LossesOf(i int, injected []time.Duration, losses []record.Loss, all Count) *Losses {
	sum := &Losses{}
	for _, l := range losses {
		if cause(injected, time.Duration(l.Last)+lossSlack) != i {
			continue
		}
		first, last := time.Duration(l.First), time.Duration(l.Last)
		if sum.Count.AtMost == 0 {
			sum.First = first
		}
		sum.First, sum.Last = min(sum.First, first), max(sum.Last, last)
		sum.Count.AtMost += l.Count
		sum.Errors += l.Errors
	}
	sum.Count.AtLeast = sum.Count.AtMost - min(sum.Count.AtMost, all.AtMost-all.AtLeast)
	return sum
}

// cause is the last fault injected until an instant; -1 = none.
func cause(injected []time.Duration, end time.Duration) int {
	last := -1
	for k, at := range injected {
		if at >= 0 && at <= end && (last < 0 || at > injected[last]) {
			last = k
		}
	}
	return last
}

// Doubt adds a doubt unless there is one with this reason.
func (f *Fault) Doubt(d impact.Doubt) {
	if !slices.ContainsFunc(f.Doubts, func(o impact.Doubt) bool { return o.Reason == d.Reason }) {
		f.Doubts = append(f.Doubts, d)
	}
}
