package impact

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Effect is the effect of a fault on one operation.
type Effect struct {
	Name       string
	Outage     Bounded       // 0 if none is proven
	FirstError time.Duration // from t0, at the earliest in its interval; -1 = none
	LastError  time.Duration // from t0, at the latest in its interval
	Errors     uint64        // fail + unknown + dropped, from t0 to recovery
	Dip        float64       // as Impact.Dip
}

// operations returns the effect on each operation, until the interval end; nil for a load with one operation.
func (a *analysis) operations(end int) []Effect {
	s := a.curve.series
	if len(s.Ops) == 1 {
		return nil
	}
	list := make([]Effect, len(s.Ops))
	for op, name := range s.Ops {
		e := Effect{Name: name, FirstError: -1, LastError: -1}
		log := a.logOf(s.OpGaps(op), a.sumOps([]int{op}), a.service([]int{op}))
		log.proven = true
		e.Outage = a.outageOf(&log).length
		for i := a.first; i < end; i++ {
			e.addErrors(s.At(i), op, a.fault.At)
		}
		e.Dip = a.dipOf(op, end)
		list[op] = e
	}
	return list
}

func (e *Effect) addErrors(iv *record.Interval, op int, t0 time.Duration) {
	c := &iv.Ops[op].Counts
	e.Errors += c.Fail + c.Unknown + c.Dropped
	if c.Fail+c.Unknown == 0 || time.Duration(iv.LastError) < t0 {
		return
	}
	if e.FirstError < 0 {
		e.FirstError = max(0, time.Duration(iv.FirstError)-t0)
	}
	e.LastError = time.Duration(iv.LastError) - t0
}

// dipOf is dip for one operation.
func (a *analysis) dipOf(op, end int) float64 {
	c := a.curve
	sums := make([]uint64, c.n+1)
	for i := range c.n {
		sums[i+1] = sums[i] + c.series.At(i).Ops[op].OK
	}
	rate := func(i int) float64 {
		return float64(sums[i+c.wide]-sums[i]) / c.width().Seconds() / a.expected.mean(i, i+c.wide)
	}
	var seconds []float64
	for i := a.first - (a.first-a.baseFirst)/c.wide*c.wide; i < a.first; i += c.wide {
		seconds = append(seconds, rate(i))
	}
	baseline := median(seconds)
	if baseline == 0 {
		return 0
	}
	lowest := baseline
	for i := a.first; i < max(end, a.first+1) && i+c.wide <= c.n; i++ {
		if a.judgeable(i, i+c.wide) {
			lowest = min(lowest, rate(i))
		}
	}
	return 1 - lowest/baseline
}
