package impact

import (
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// curve is the complete part of a series, or that of some of its operations, as running sums: the rate over any window takes two lookups.
type curve struct {
	series *record.Series
	step   time.Duration
	n      int // complete intervals, without the last one if the record ends within it
	wide   int // intervals per window: 1 s, or one interval if that is longer

	// Sums of the intervals before i over the operations: ok without drained, failed = fail + unknown, bad = failed + dropped.
	ok, failed, bad []uint64
}

// second is the width of the windows over which rates are taken.
const second = time.Second

func newCurve(s *record.Series) *curve {
	ops := make([]int, len(s.Ops))
	for op := range ops {
		ops[op] = op
	}
	return curveOf(s, ops)
}

// curveOf returns the curve of some operations.
func curveOf(s *record.Series, ops []int) *curve {
	c := &curve{series: s, step: s.Step, n: s.Complete(), wide: int((second + s.Step - 1) / s.Step)}
	if time.Duration(c.n)*c.step > s.End() {
		c.n--
	}
	c.ok, c.failed, c.bad = make([]uint64, c.n+1), make([]uint64, c.n+1), make([]uint64, c.n+1)
	for i := range c.n {
		iv := s.At(i)
		c.ok[i+1], c.failed[i+1], c.bad[i+1] = c.ok[i], c.failed[i], c.bad[i]
		for _, op := range ops {
			o := &iv.Ops[op].Counts
			c.ok[i+1] += o.OK - o.Drained
			c.failed[i+1] += o.Fail + o.Unknown
			c.bad[i+1] += o.Fail + o.Unknown + o.Dropped
		}
	}
	return c
}

// width is the length of a window.
func (c *curve) width() time.Duration { return time.Duration(c.wide) * c.step }

// floor is the index of the interval that contains t, ceil that of the first interval that begins at or after t, both within the record.
func (c *curve) floor(t time.Duration) int { return min(max(int(t/c.step), 0), c.n) }

func (c *curve) ceil(t time.Duration) int { return min(max(int((t+c.step-1)/c.step), 0), c.n) }

// errorRate is the share of requests that did not succeed over the intervals [first, end); 0 without requests.
func (c *curve) errorRate(first, end int) float64 {
	ok, bad := c.ok[end]-c.ok[first], c.bad[end]-c.bad[first]
	if ok+bad == 0 {
		return 0
	}
	return float64(bad) / float64(ok+bad)
}

// windowRate is the rate of the window that begins with interval i; it must end within the record.
func (c *curve) windowRate(i int) float64 { return c.rate(i, i+c.wide) }

// rate is the number of successes per second over the intervals [first, end).
func (c *curve) rate(first, end int) float64 {
	if end <= first {
		return 0
	}
	return float64(c.ok[end]-c.ok[first]) / c.at(end-first).Seconds()
}

// at is the begin of interval i.
func (c *curve) at(i int) time.Duration { return time.Duration(i) * c.step }

// latency sums the histograms of all operations that begin with an interval of [first, end). Where histograms span
// several intervals (Series.LatencyStep), one belongs to the interval in which it begins.
func (c *curve) latency(first, end int) summary.Latency {
	var d record.Distribution
	for i := first; i < end; i++ {
		for k := range c.series.At(i).Ops {
			d.Add(c.series.At(i).Ops[k].Latency)
		}
	}
	return summary.LatencyOf(&d)
}
