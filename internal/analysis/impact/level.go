package impact

import (
	"math"

	"github.com/redquake/redquake/internal/plan"
)

const (
	// changedShare is the change of the planned level that counts, as a share of the level at t0.
	changedShare = 0.01
	// lowestLevel is the share of the level at t0 below which windows have too few requests to judge.
	lowestLevel = 0.1
)

// level is the planned load of every interval of a curve, as a share of that at a reference interval.
type level struct {
	sums []float64 // of the intervals before i; nil = constant
}

// levelOf returns the level of a load; constant if the load is, or if nothing is planned at the reference.
func levelOf(c *curve, asked plan.Planned, reference int) level {
	if asked.Mean == nil {
		return level{}
	}
	at := asked.Mean(c.at(reference), c.at(reference+1))
	if at <= 0 {
		return level{}
	}
	sums := make([]float64, c.n+1)
	for i := range c.n {
		sums[i+1] = sums[i] + asked.Mean(c.at(i), c.at(i+1))/at
	}
	return level{sums}
}

// mean is the mean level over the intervals [first, end); 1 for none.
func (l level) mean(first, end int) float64 {
	if l.sums == nil || end <= first {
		return 1
	}
	return (l.sums[end] - l.sums[first]) / float64(end-first)
}

// bounds are the lowest and the highest level of an interval of [first, end); 1 for none.
func (l level) bounds(first, end int) (lowest, highest float64) {
	lowest, highest = math.Inf(1), 0
	for i := first; i < end; i++ {
		lowest, highest = min(lowest, l.mean(i, i+1)), max(highest, l.mean(i, i+1))
	}
	if end <= first {
		return 1, 1
	}
	return lowest, highest
}

// secondsBefore returns the rates of the adjacent windows in [first, end), the last of which ends at end, in order of time. Each is divided by the
// level of its window; windows of a very low level are left out.
func (l level) secondsBefore(c *curve, first, end int) []float64 {
	var rates []float64
	for i := end - max(end-first, 0)/c.wide*c.wide; i < end; i += c.wide {
		if at := l.mean(i, i+c.wide); at >= lowestLevel {
			rates = append(rates, c.windowRate(i)/at)
		}
	}
	return rates
}

// plannedEnd is the index behind the complete intervals of the load, without those after its planned end.
func (c *curve) plannedEnd(p plan.Planned) int {
	if p.End == 0 {
		return c.n
	}
	return c.floor(p.End)
}
