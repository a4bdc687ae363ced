package impact

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
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
	if i := slices.IndexFunc(a.kinds, func(p gapLog) bool { return p.name == kind }); i >= 0 {
		return &a.kinds[i]
	}
	if len(opsOf(a.curve.Series, kind)) == 0 {
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
		one, baseline := a.effect(kind, opsOf(a.curve.Series, kind), log, end)
		switch { // it may have lasted longer than that of the load
		case one.Outage.AtLeast > 0:
			m.Outage.AtMost = max(m.Outage.AtMost, a.outageOf(log).length.AtMost)
		case one.Errors > 0:
			m.Outage.AtMost = max(m.Outage.AtMost, one.Outage.AtMost)
		}
		usual := baseline * a.curve.Width().Seconds() // successes in a window
		if like := usual * (1 - m.Dips.All); one.Dip > m.Dip.Value &&
			usual*(1-one.Dip) < like-4*math.Sqrt(like) {
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
