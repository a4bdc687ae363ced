// Package histogram counts durations from 1 us to 60 s with 3 significant digits, in the layout of
// HdrHistogram: as they are recorded (Histogram), as they are sent and merged (Buckets), and as
// sums of many (Distribution).
package histogram

import "math"

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
