package impact

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/gaps"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/analysis/throughput"
)

// Effect is the effect of a fault on one operation.
type Effect struct {
	Name   string
	Outage durations.Bounded // 0 if none is proven
	// as Impact.Dips; NaN if too few requests succeeded in the baseline, or if their turn began or
	// ended meanwhile
	Dip float64
	Failures
}

// Failures are the failures of a part of the requests.
type Failures struct {
	FirstError time.Duration // the first in excess of the baseline's, from t0; -1 = none
	LastError  time.Duration // the last of these until recovery
	Errors     uint64        // fail + unknown + dropped, from t0 to recovery
}

// rareRate is the rate in successes/s below which the seconds of a part of the load say nothing
// about a fault: with random arrivals they vary by more than 20 % (1/sqrt(n)), the limit of an
// unsteady baseline.
const rareRate = 25

// operations returns the effect on each operation, until the interval end.
func (a *analysis) operations(end int) []Effect {
	s := a.curve.Series
	list := make([]Effect, len(s.Ops))
	for op, name := range s.Ops {
		log := a.load
		if len(s.Ops) > 1 {
			log = a.logOf(s.OpGaps(op), a.sumOps([]int{op}), a.service([]int{op}))
		}
		list[op], _ = a.effect(name, []int{op}, &log, end)
	}
	return list
}

// kindLog is the log of reads or of writes: that of the load, if it has only these; nil if it has
// none.
func (a *analysis) kindLog(kind string) *gapLog {
	i := slices.IndexFunc(a.kinds, func(p gapLog) bool { return p.name == kind })
	if i >= 0 {
		return &a.kinds[i]
	}
	if len(gaps.Operations(a.curve.Series, kind)) == 0 {
		return nil
	}
	return &a.load
}

// kindEffects sets the failures and the dips of reads and of writes, until the interval end, and
// the deepest dip. Each of them has fewer successes than the load, so that its rate varies more:
// its dip counts if it is deeper than that of the load by more than random arrivals explain.
func (a *analysis) kindEffects(m *Impact, end int) {
	m.Dip, m.Dips.Reads, m.Dips.Writes = Dip{m.Dips.All, All}, math.NaN(), math.NaN()
	for _, kind := range []string{Writes, Reads} {
		log := a.kindLog(kind)
		if log == nil {
			continue
		}
		one, baseline := a.effect(kind, gaps.Operations(a.curve.Series, kind), log, end)
		switch { // it may have lasted longer than that of the load
		case one.Outage.AtLeast > 0:
			m.Outage.AtMost = max(m.Outage.AtMost, a.outageOf(log).length.AtMost)
		case one.Errors > 0:
			m.Outage.AtMost = max(m.Outage.AtMost, one.Outage.AtMost)
		}
		usual := baseline * a.curve.Width().Seconds() // successes in a window
		like := usual * (1 - m.Dips.All)
		if one.Dip > m.Dip.Value && usual*(1-one.Dip) < like-4*math.Sqrt(like) {
			m.Dip = Dip{one.Dip, kind}
		}
		if kind == Reads {
			m.Reads, m.Dips.Reads = &one.Failures, one.Dip
		} else {
			m.Writes, m.Dips.Writes = &one.Failures, one.Dip
		}
	}
}

// effect returns the effect on operations until the interval end, and their baseline in
// successes/s.
func (a *analysis) effect(
	name string, ops []int, log *gapLog, end int,
) (e Effect, baseline float64) {
	c := throughput.CurveOfOps(a.curve.Series, ops)
	o := a.outageOf(log)
	e = Effect{
		Name:     name,
		Outage:   o.bounded(log),
		Dip:      math.NaN(),
		Failures: Failures{FirstError: -1, LastError: -1},
	}
	if first, last := a.errorInstants(c); first >= 0 {
		e.FirstError, e.LastError = first-a.fault.At, last-a.fault.At
	}
	if end > a.first {
		e.Errors = c.Bad[end] - c.Bad[a.first]
	}
	baseline = throughput.Median(a.expected.SecondsBefore(c, a.base.first, a.first))
	if c.OK[a.first]-c.OK[a.base.first] < fewSamples || baseline < rareRate ||
		a.othersInTurn(ops, max(end, a.first+1)+c.Wide-1) {
		return e, baseline
	}
	_, e.Dip = a.dip(c, baseline, end)
	return e, baseline
}

// othersInTurn reports whether operations are sent one after the other, and others than these from
// the baseline to the interval end.
func (a *analysis) othersInTurn(ops []int, end int) bool {
	return a.options.Planned.InTurn &&
		slices.ContainsFunc(a.sent(end), func(op int) bool { return !slices.Contains(ops, op) })
}

// sent returns the operations of which requests were sent from the baseline to the interval end.
func (a *analysis) sent(end int) (ops []int) {
	s := a.curve.Series
	for op := range s.Ops {
		for i := a.base.first; i < min(end, a.curve.N); i++ {
			if c := &s.At(i).Ops[op].Counts; c.Sent+c.Dropped > 0 {
				ops = append(ops, op)
				break
			}
		}
	}
	return ops
}

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
