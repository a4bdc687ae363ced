// Package throughput is the successes of a load over time: rates over any window, what is planned
// of them, whether they are steady, how they look. It is pure: no clock, no I/O. The definitions
// are in docs/measuring.md.
package throughput

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
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

// Curve is the complete part of a series, or that of some of its operations, as running sums: the
// rate over any window takes two lookups.
type Curve struct {
	Series *merged.Series
	Step   time.Duration
	N      int // complete intervals, without the last one if the record ends within it
	Wide   int // intervals per window: 1 s, or one interval if that is longer

	// Sums of the intervals before i over the operations: OK without drained, Failed = fail + unknown,
	// Bad = Failed + dropped.
	OK, Failed, Bad []uint64
}

// Second is the width of the windows over which rates are taken.
const Second = time.Second

// CurveOf returns the curve of all operations.
func CurveOf(s *merged.Series) *Curve {
	ops := make([]int, len(s.Ops))
	for op := range ops {
		ops[op] = op
	}
	return CurveOfOps(s, ops)
}

// CurveOfOps returns the curve of some operations.
func CurveOfOps(s *merged.Series, ops []int) *Curve {
	c := &Curve{
		Series: s,
		Step:   s.Step,
		N:      s.Complete(),
		Wide:   int((Second + s.Step - 1) / s.Step),
	}
	if time.Duration(c.N)*c.Step > s.End() {
		c.N--
	}
	c.OK = make([]uint64, c.N+1)
	c.Failed = make([]uint64, c.N+1)
	c.Bad = make([]uint64, c.N+1)
	for i := range c.N {
		iv := s.At(i)
		c.OK[i+1], c.Failed[i+1], c.Bad[i+1] = c.OK[i], c.Failed[i], c.Bad[i]
		for _, op := range ops {
			o := &iv.Ops[op].Counts
			c.OK[i+1] += o.OK - o.Drained
			c.Failed[i+1] += o.Fail + o.Unknown
			c.Bad[i+1] += o.Fail + o.Unknown + o.Dropped
		}
	}
	return c
}

// Width is the length of a window.
func (c *Curve) Width() time.Duration {
	return time.Duration(c.Wide) * c.Step
}

// Floor is the index of the interval that contains t, within the record: at most N.
func (c *Curve) Floor(t time.Duration) int {
	return min(max(int(t/c.Step), 0), c.N)
}

// Ceil is the index of the first interval that begins at or after t, within the record.
func (c *Curve) Ceil(t time.Duration) int {
	return min(max(int((t+c.Step-1)/c.Step), 0), c.N)
}

// ErrorRate is the share of requests that did not succeed over the intervals [first, end); 0
// without requests.
func (c *Curve) ErrorRate(first, end int) float64 {
	ok, bad := c.OK[end]-c.OK[first], c.Bad[end]-c.Bad[first]
	if ok+bad == 0 {
		return 0
	}
	return float64(bad) / float64(ok+bad)
}

// WindowRate is the rate of the window that begins with interval i; it must end within the record.
func (c *Curve) WindowRate(i int) float64 {
	return c.Rate(i, i+c.Wide)
}

// Rate is the number of successes per second over the intervals [first, end).
func (c *Curve) Rate(first, end int) float64 {
	if end <= first {
		return 0
	}
	return float64(c.OK[end]-c.OK[first]) / c.At(end-first).Seconds()
}

// At is the begin of interval i.
func (c *Curve) At(i int) time.Duration {
	return time.Duration(i) * c.Step
}

// Latency sums the histograms of all operations that begin with an interval of [first, end). Where
// histograms span several intervals (Series.LatencyStep), one belongs to the interval in which it
// begins.
func (c *Curve) Latency(first, end int) summary.Latency {
	var d histogram.Distribution
	for i := first; i < end; i++ {
		for k := range c.Series.At(i).Ops {
			d.Add(c.Series.At(i).Ops[k].Latency)
		}
	}
	return summary.LatencyOf(&d)
}
