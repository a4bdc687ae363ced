package result

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
)

// Fault is what one fault did to the clients of a load, but for the writes that were lost (Losses): these become known later.
type Fault struct{ impact.Impact }

// Losses are the acknowledged ledger writes that were lost because of a fault: a lower bound of all that was lost.
type Losses struct {
	Count uint64
	First time.Duration // when the first was acknowledged, at the earliest, from the load's start; 0 where nothing was lost
	Last  time.Duration // when the last was acknowledged, at the latest
	// Errors are about how many requests were not answered well meanwhile.
	Errors uint64
}

// WorstOutage is the longest stretch without a success, of the load as a whole or of one shard: to the clients of a shard that is all there is.
func (f *Fault) WorstOutage() Bounded {
	return Exactly(max(f.Outage, f.ShardOutage))
}

// Recovery is the time from the injection to sustained recovery; false where there was none.
func (f *Fault) Recovery() (Bounded, bool) {
	return Exactly(max(0, f.RecoveryTime)), f.Recovered
}

// lossSlack is how much after the end of a loss the fault that caused it may have been injected: servers break a moment before clients see it.
const lossSlack = time.Second

// LossesOf adds up the losses that fault i caused, given when each fault on the load was injected, from the load's start: those for which it was
// the last one injected until lossSlack after their end. A negative instant is that of a fault that was not injected.
func LossesOf(i int, injected []time.Duration, losses []record.Loss) *Losses {
	sum := &Losses{}
	for _, l := range losses {
		if cause(injected, time.Duration(l.Last)+lossSlack) != i {
			continue
		}
		first, last := time.Duration(l.First), time.Duration(l.Last)
		if sum.Count == 0 {
			sum.First = first
		}
		sum.First, sum.Last = min(sum.First, first), max(sum.Last, last)
		sum.Count += l.Count
		sum.Errors += l.Errors
	}
	return sum
}

// cause is the last fault injected until an instant; -1 where there is none.
func cause(injected []time.Duration, end time.Duration) int {
	last := -1
	for k, at := range injected {
		if at >= 0 && at <= end && (last < 0 || at > injected[last]) {
			last = k
		}
	}
	return last
}

// Doubt adds a doubt unless there is one of that reason.
func (f *Fault) Doubt(d impact.Doubt) {
	if !slices.ContainsFunc(f.Doubts, func(o impact.Doubt) bool { return o.Reason == d.Reason }) {
		f.Doubts = append(f.Doubts, d)
	}
}
