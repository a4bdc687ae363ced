// Package throughput is the successes of a load over time: rates over any window, what is planned
// of them, whether they are steady, how they look. It is pure: no clock, no I/O. The definitions
// are in docs/measuring.md.
package throughput

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

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
