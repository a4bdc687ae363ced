// Package histogram counts durations from 1 us to 60 s with 3 significant digits, in the layout of
// HdrHistogram: as they are recorded (Histogram), as they are sent and merged (Buckets), and as
// sums of many (Distribution).
package histogram

import (
	"math"
	"math/bits"
	"time"
)

// Histogram records durations from 1 us to 60 s with 3 significant digits in dense cells: 68 KiB,
// no allocation per record.
// The zero value is empty and ready. It is not safe for concurrent use: each worker has its own.
type Histogram struct {
	cells [Cells]uint32
	// bounds of the cells in use: the cost of reset and snapshot depends only on the spread of the
	// values
	low, high int
	used      bool // false: low and high are not set
}

// Record adds one duration in nanoseconds. It is rounded up to whole microseconds; values below 1
// us count as 1 us, above 60 s as 60 s.
func (h *Histogram) Record(ns int64) {
	h.RecordN(ns, 1)
}

// RecordN adds n equal durations in nanoseconds. A cell stops counting at 2^32-1.
func (h *Histogram) RecordN(ns int64, n uint32) {
	if n == 0 {
		return
	}
	i := cellOf(ns)
	if c := h.cells[i] + n; c >= n {
		h.cells[i] = c
	} else {
		h.cells[i] = math.MaxUint32
	}
	if !h.used {
		h.low, h.high, h.used = i, i, true
		return
	}
	if i < h.low {
		h.low = i
	}
	if i > h.high {
		h.high = i
	}
}

// Reset empties the histogram.
func (h *Histogram) Reset() {
	if h.used {
		clear(h.cells[h.low : h.high+1])
		h.used = false
	}
}

// AppendTo appends the non-empty cells to dst, ascending. dst must be empty, or end below the
// histogram's lowest value.
func (h *Histogram) AppendTo(dst Buckets) Buckets {
	if !h.used {
		return dst
	}
	for i, c := range h.cells[h.low : h.high+1] {
		if c != 0 {
			dst = append(dst, Bucket{Index: uint16(h.low + i), Count: c})
		}
	}
	return dst
}

// The layout is HdrHistogram's (http://hdrhistogram.org) for 1 us to 60 s with 3 significant
// decimal digits: to distinguish 1999 from 2000, cells must be one unit wide up to 2*10^3, hence
// 2^11 cells of 1 us. Above that, every doubling of the value has 2^10 cells, each twice as wide as
// the previous ones. Indices are HdrHistogram's flat indices, so that percentiles are identical.
const (
	subBits   = 11
	subCells  = 1 << subBits       // cells of the first, linear part
	halfCells = 1 << (subBits - 1) // cells of every further doubling
	maxMicros = 60_000_000
	doublings = 16 // 2^11 us doubled 15 times is 67 s, the first power of two above 60 s
	maxNanos  = maxMicros * int64(time.Microsecond)
)

// Cells is the number of cells in the layout: every Bucket.Index is below it.
const Cells = (doublings + 1) * halfCells

// cellOf returns the cell of a duration in nanoseconds: rounded up to whole microseconds and
// limited to [1 us, 60 s].
func cellOf(ns int64) int {
	if ns <= 0 {
		return 1
	}
	if ns >= maxNanos {
		return cellOfMicros(maxMicros)
	}
	return cellOfMicros((uint64(ns) + 999) / 1000)
}

func cellOfMicros(us uint64) int {
	shift := bits.Len64(us|(subCells-1)) - subBits
	return shift<<(subBits-1) + int(us>>shift)
}

// middle is the value that represents a cell in a mean.
func middle(cell int) time.Duration {
	return lowest(cell) + (1<<shiftOf(cell)>>1)*time.Microsecond
}

// rankOf is the rank, from 1, of the quantile q among total > 0 ordered values, rounded as in
// HdrHistogram.
func rankOf(q float64, total uint64) uint64 {
	percentile := min(q*100, 100)
	rank := percentile/100*float64(total) + 0.5
	if !(rank >= 1) {
		return 1
	}
	if rank >= float64(total) {
		return total
	}
	return uint64(rank)
}

// valueAt is the value reported for a quantile in a cell: the cell's highest value, or its lowest
// for the minimum.
func valueAt(cell int, q float64) time.Duration {
	if q <= 0 {
		return lowest(cell)
	}
	return highest(cell)
}

// highest is the highest whole microsecond of a cell.
func highest(cell int) time.Duration {
	return lowest(cell) + (1<<shiftOf(cell)-1)*time.Microsecond
}

// lowest is the lowest value of a cell.
func lowest(cell int) time.Duration {
	shift := shiftOf(cell)
	return time.Duration(cell-shift<<(subBits-1)) << shift * time.Microsecond
}

// shiftOf is the power of two of a cell's width in microseconds.
func shiftOf(cell int) int {
	if cell < subCells {
		return 0
	}
	return cell>>(subBits-1) - 1
}
