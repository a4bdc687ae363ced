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
