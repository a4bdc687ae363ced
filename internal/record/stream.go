package record

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// stream describes when one pod's load, or its probe, had successes.
type stream struct {
	gaps        []Gap  // as the pod logged them
	ok          uint64 // successes
	first, last int64  // instants of the first and the last; -1 = none yet
}

func newStream() stream { return stream{first: -1, last: -1} }

func (t *stream) add(gaps []Gap, ok uint64, first, last int64) {
	t.gaps = append(t.gaps, gaps...)
	t.ok += ok
	t.first = earlier(t.first, first)
	t.last = max(t.last, last)
}

// silence returns the periods without a success, ascending and disjoint, of a pod that has delivered its record until the instant delivered.
// A period that has not ended by then counts if it is longer than the minimum length of a gap: max(2 x mean interval between successes, 5 ms).
// A pod that delivers nothing more before end is silent from its last success on, so that it does not affect the gaps of the other pods.
func (t *stream) silence(delivered, end int64) []Gap {
	open := Gap{From: max(t.last, 0), To: delivered}
	mean := int64(0)
	if t.ok > 1 {
		mean = (t.last - t.first) / int64(t.ok-1)
	}
	list := slices.Clone(t.gaps)
	if delivered < end {
		list = append(list, Gap{From: open.From, To: math.MaxInt64})
	} else if open.To-open.From > max(2*mean, minGap) {
		list = append(list, open)
	}
	slices.SortFunc(list, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
	apart := list[:0]
	for _, g := range list {
		// Adjacent gaps have a success between them; overlapping gaps are the log's open gap and its continuation.
		if n := len(apart); n > 0 && g.From < apart[n-1].To {
			apart[n-1].To = max(apart[n-1].To, g.To)
			continue
		}
		apart = append(apart, Gap{From: g.From, To: g.To})
	}
	return apart
}

// cut truncates gaps at end and drops those that are too short.
func cut(common []Gap, end int64) []Gap {
	var gaps []Gap
	for _, g := range common {
		g.Open = g.To >= end
		g.To = min(g.To, end)
		if g.To-g.From > minGap {
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// overlap returns the intersections of two lists of gaps. Both are ascending and disjoint, and so is the result.
func overlap(a, b []Gap) []Gap {
	var both []Gap
	for i, j := 0, 0; i < len(a) && j < len(b); {
		from, to := max(a[i].From, b[j].From), min(a[i].To, b[j].To)
		if from < to {
			both = append(both, Gap{From: from, To: to})
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return both
}

// minGap is the minimum length of a gap.
const minGap = int64(5 * time.Millisecond)

// shardStream describes when one pod's load had successes and errors at one shard.
type shardStream struct {
	stream
	tried  int64 // beginning of the first interval with a request; -1 = none yet
	failed int64 // end of the last interval with an error; -1 = none yet
}
