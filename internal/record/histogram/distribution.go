package histogram

import (
	"math"
	"time"
)

// Distribution is the sum of many histograms, whose counts may exceed 2^32. The zero value is
// empty.
// It is not safe for concurrent use.
type Distribution struct {
	cells []uint64
	count uint64
}

// Add merges a histogram into the distribution.
func (d *Distribution) Add(b Buckets) {
	if len(b) > 0 && d.cells == nil {
		d.cells = make([]uint64, Cells)
	}
	for _, c := range b {
		d.cells[c.Index] += uint64(c.Count)
		d.count += uint64(c.Count)
	}
}

// AddLess merges a histogram whose values are all shorter by a duration, down to 1 us.
func (d *Distribution) AddLess(b Buckets, less time.Duration) {
	if less <= 0 {
		d.Add(b)
		return
	}
	if len(b) > 0 && d.cells == nil {
		d.cells = make([]uint64, Cells)
	}
	for _, c := range b {
		d.cells[cellOf(int64(highest(int(c.Index))-less))] += uint64(c.Count)
		d.count += uint64(c.Count)
	}
}

// Count is the number of values.
func (d *Distribution) Count() uint64 {
	return d.count
}

// Quantile is as Buckets.Quantile.
func (d *Distribution) Quantile(q float64) time.Duration {
	if d.count == 0 {
		return 0
	}
	rank := rankOf(q, d.count)
	var seen uint64
	for i, c := range d.cells {
		if seen += c; c > 0 && seen >= rank {
			return valueAt(i, q)
		}
	}
	return 0
}

// Max is as Buckets.Max.
func (d *Distribution) Max() time.Duration {
	for i := len(d.cells) - 1; i >= 0; i-- {
		if d.cells[i] > 0 {
			return highest(i)
		}
	}
	return 0
}

// Mean is as Buckets.Mean.
func (d *Distribution) Mean() time.Duration {
	if d.count == 0 {
		return 0
	}
	var sum float64
	for i, c := range d.cells {
		if c > 0 {
			sum += float64(c) * float64(middle(i))
		}
	}
	return time.Duration(math.Round(sum / float64(d.count)))
}
