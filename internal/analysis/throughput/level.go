package throughput

import (
	"math"

	"github.com/redquake/redquake/internal/plan"
)

const (
	// ChangedShare is the change of the planned level that counts, as a share of the level at t0.
	ChangedShare = 0.01
	// LowestLevel is the share of the level at t0 below which windows have too few requests to judge.
	LowestLevel = 0.1
)

// Level is the planned load of every interval of a curve, as a share of that at a reference
// interval.
type Level struct {
	sums []float64 // of the intervals before i; nil = constant
}

// LevelOf returns the level of a load; constant if the load is, or if nothing is planned at the
// reference.
func LevelOf(c *Curve, asked plan.Planned, reference int) Level {
	if asked.Mean == nil {
		return Level{}
	}
	at := asked.Mean(c.At(reference), c.At(reference+1))
	if at <= 0 {
		return Level{}
	}
	sums := make([]float64, c.N+1)
	for i := range c.N {
		sums[i+1] = sums[i] + asked.Mean(c.At(i), c.At(i+1))/at
	}
	return Level{sums}
}

// IsConstant reports whether the load is, or nothing is planned at the reference.
func (l Level) IsConstant() bool {
	return l.sums == nil
}

// Mean is the mean level over the intervals [first, end); 1 for none.
func (l Level) Mean(first, end int) float64 {
	if l.sums == nil || end <= first {
		return 1
	}
	return (l.sums[end] - l.sums[first]) / float64(end-first)
}

// Bounds are the lowest and the highest level of an interval of [first, end); 1 for none.
func (l Level) Bounds(first, end int) (lowest, highest float64) {
	lowest, highest = math.Inf(1), 0
	for i := first; i < end; i++ {
		lowest, highest = min(lowest, l.Mean(i, i+1)), max(highest, l.Mean(i, i+1))
	}
	if end <= first {
		return 1, 1
	}
	return lowest, highest
}

// SecondsBefore returns the rates of the adjacent windows in [first, end), the last of which ends
// at end, in order of time. Each is divided by the level of its window; windows of a very low level
// are left out.
func (l Level) SecondsBefore(c *Curve, first, end int) []float64 {
	var rates []float64
	for i := end - max(end-first, 0)/c.Wide*c.Wide; i < end; i += c.Wide {
		if at := l.Mean(i, i+c.Wide); at >= LowestLevel {
			rates = append(rates, c.WindowRate(i)/at)
		}
	}
	return rates
}

// PlannedEnd is the index behind the complete intervals of the load, without those after its
// planned end.
func (c *Curve) PlannedEnd(p plan.Planned) int {
	if p.End == 0 {
		return c.N
	}
	return c.Floor(p.End)
}
