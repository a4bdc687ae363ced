package histogram

import (
	"math"
	"time"
)

// Bucket is one non-empty cell of a histogram: Index in the layout of Histogram, Count > 0.
type Bucket struct {
	Index uint16
	Count uint32
}

// Highest is the highest value that the cell holds: a whole number of microseconds.
func (b Bucket) Highest() time.Duration {
	return highest(int(b.Index))
}

// Buckets are a histogram's non-empty cells, ascending by Index, each at most once. Intervals carry
// this form: merging is exact and encoding compact.
// The zero value is an empty histogram.
type Buckets []Bucket

// Merge returns the sum of the histograms a and b. Counts of equal cells add up, to at most 2^32-1,
// which no interval of a run reaches.
// It may reuse a's memory: as with append, a must not be used afterwards. b is only read and not
// retained.
func Merge(a, b Buckets) Buckets {
	switch {
	case len(b) == 0:
		return a
	case len(a) >= 4*len(b):
		return mergeFew(a, b)
	}
	n := unionLen(a, b)
	i, j := len(a)-1, len(b)-1
	a = extend(a, n)
	// From the back, so that merging in place never overwrites a cell of a that is still to be read.
	for k := n - 1; j >= 0; k-- {
		switch {
		case i < 0 || b[j].Index > a[i].Index:
			a[k] = b[j]
			j--
		case a[i].Index > b[j].Index:
			a[k] = a[i]
			i--
		default:
			a[k] = Bucket{Index: a[i].Index, Count: addSaturated(a[i].Count, b[j].Count)}
			i--
			j--
		}
	}
	return a
}

// mergeFew is Merge for a b that is much shorter than a, such as one pod's histogram and the sum of
// many: it searches b's cells in a instead of iterating over all of a, and moves a's memory only to
// insert new cells.
func mergeFew(a, b Buckets) Buckets {
	type newCell struct {
		at   int // where in a it belongs
		cell Bucket
	}
	var some [64]newCell // more of them are rare, and cost an allocation
	added := some[:0]
	at := 0
	for _, c := range b {
		at = search(a, at, c.Index)
		if at < len(a) && a[at].Index == c.Index {
			a[at].Count = addSaturated(a[at].Count, c.Count)
		} else {
			added = append(added, newCell{at, c})
		}
	}
	if len(added) == 0 {
		return a
	}
	end := len(a)
	a = extend(a, end+len(added))
	// From the back, so that what is moved never overwrites what is still to be moved.
	for i := len(added) - 1; i >= 0; i-- {
		from := added[i].at
		copy(a[from+i+1:], a[from:end])
		a[from+i] = added[i].cell
		end = from
	}
	return a
}

// extend makes a n cells long.
func extend(a Buckets, n int) Buckets {
	if cap(a) < n {
		// A quarter more than needed: an interval is merged once per pod, and most of its cells are the
		// same.
		grown := make(Buckets, len(a), n+n/4)
		copy(grown, a)
		a = grown
	}
	return a[:n]
}

// search returns the first position at or after from whose index is at least index, len(a) if there
// is none. All indices before from must be lower.
func search(a Buckets, from int, index uint16) int {
	if from >= len(a) || a[from].Index >= index {
		return from
	}
	// Indices are strictly ascending, so this is the last possible position, and the right one if no
	// cell is missing between.
	to := from + int(index-a[from].Index)
	if to < len(a) && a[to].Index == index {
		return to
	}
	to = min(to, len(a))
	for from++; from < to; {
		middle := int(uint(from+to) / 2)
		if a[middle].Index < index {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

func unionLen(a, b Buckets) int {
	n, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i].Index, b[j].Index
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
		n++
	}
	return n + len(a) - i + len(b) - j
}

func addSaturated(a, b uint32) uint32 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxUint32
}

// Quantile returns the value at or below which the share q (0 to 1) of the recorded values lies,
// rounded up within its cell as in HdrHistogram's ValueAtQuantile(q*100). 0 if nothing was
// recorded.
func (b Buckets) Quantile(q float64) time.Duration {
	total := b.Count()
	if total == 0 {
		return 0
	}
	rank := rankOf(q, total)
	var seen uint64
	for _, c := range b {
		if seen += uint64(c.Count); seen >= rank {
			return valueAt(int(c.Index), q)
		}
	}
	return 0
}

// Count is the number of recorded values.
func (b Buckets) Count() uint64 {
	var n uint64
	for _, c := range b {
		n += uint64(c.Count)
	}
	return n
}

// Max returns the highest recorded value, rounded up within its cell. 0 if nothing was recorded.
func (b Buckets) Max() time.Duration {
	if len(b) == 0 {
		return 0
	}
	return highest(int(b[len(b)-1].Index))
}

// Mean returns the mean of the recorded values, each taken as the middle of its cell, as
// HdrHistogram's Mean. 0 if nothing was recorded.
func (b Buckets) Mean() time.Duration {
	var n uint64
	var sum float64
	for _, c := range b {
		n += uint64(c.Count)
		sum += float64(c.Count) * float64(middle(int(c.Index)))
	}
	if n == 0 {
		return 0
	}
	return time.Duration(math.Round(sum / float64(n)))
}
