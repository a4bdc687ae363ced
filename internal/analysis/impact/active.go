package impact

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
)

// whileActive returns the load over the intervals completely within the time in which the fault was
// active; nil if there is none. What is drained after the planned end of the load is not counted.
// before is the latency of the baseline.
func (a *analysis) whileActive(before summary.Latency) *WhileActive {
	c := a.curve
	first := c.Ceil(a.fault.Active.From)
	end := min(c.PlannedEnd(a.options.Planned), int(max(a.fault.Active.To, 0)/c.Step))
	if end <= first {
		return nil
	}
	w := &WhileActive{
		Length:     c.At(end - first),
		Throughput: c.Rate(first, end),
		ErrorRate:  c.ErrorRate(first, end),
		Latency:    c.Latency(first, end),
	}
	w.Change = change(w.Throughput, a.expectedRate(first, end))
	w.ErrorRateChange = w.ErrorRate - a.base.errors
	w.LatencyP50Change, w.LatencyP99Change = math.NaN(), math.NaN()
	// the latencies are those of different operations
	inTurn := a.options.Planned.InTurn && len(a.sent(end)) > 1
	if w.Latency.Count > 0 && !inTurn {
		w.LatencyP50Change = change(float64(w.Latency.P50), float64(before.P50))
		w.LatencyP99Change = change(float64(w.Latency.P99), float64(before.P99))
		a.boundChanges(w, before, first, end)
	}
	return w
}

// boundChanges sets the bounds of the changes of latencies, where the shares of the time lost
// differ by half of the tail of the quantile: the rule of a comparison for sameness, see
// docs/statistics.md.
func (a *analysis) boundChanges(w *WhileActive, before summary.Latency, first, end int) {
	least, late := a.leastLatency(first, end, w.Latency)
	leastBefore, lateBefore := a.leastLatency(a.base.first, a.first, before)
	const tailOfP50, tailOfP99 = 0.5, 0.01
	apart := 2 * math.Abs(late-lateBefore)
	if apart >= tailOfP50 {
		w.P50Bounds = boundsOfChange(least.P50, w.Latency.P50, leastBefore.P50, before.P50)
	}
	if apart >= tailOfP99 {
		w.P99Bounds = boundsOfChange(least.P99, w.Latency.P99, leastBefore.P99, before.P99)
	}
}

// leastLatency is what a latency of the intervals [first, end) is at least, without what load
// generators that did not run can have added to it, and for which share of the time they did not.
func (a *analysis) leastLatency(
	first, end int, latency summary.Latency,
) (summary.Latency, float64) {
	stalls := summary.StallsWithin(a.curve.Series, a.curve.At(first), a.curve.At(end))
	if stalls == nil {
		return latency, 0
	}
	return stalls.Latency, max(stalls.Share, stalls.Waiting.Share)
}

// boundsOfChange are those of a change to a latency of at least least, from one of at least
// leastBefore; nil if it is known, or there is none.
func boundsOfChange(least, now, leastBefore, before time.Duration) *ChangeBounds {
	if before == 0 || least >= now && leastBefore >= before {
		return nil
	}
	b := &ChangeBounds{AtLeast: change(float64(min(least, now)), float64(before)), AtMost: math.Inf(1)}
	if leastBefore > 0 {
		b.AtMost = change(float64(now), float64(min(leastBefore, before)))
	}
	return b
}

// change is the difference of a figure as a share of what it was before; NaN if that is 0.
func change(now, before float64) float64 {
	if before == 0 {
		return math.NaN()
	}
	return now/before - 1
}
