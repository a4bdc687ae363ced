package record

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// stream is when one pod's load, or its probe, had successes.
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

// silence returns the stretches without a success, ascending and apart, of a pod that delivered until the instant delivered.
// What has not ended by then counts when it is longer than a gap must be: max(2 x mean interval between successes, 5 ms).
// A pod that will deliver nothing before end is silent from its last success on, so that it says nothing about the others' gaps.
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
		// Gaps that touch have a success between them; gaps that overlap are the log's open end and what came after.
		if n := len(apart); n > 0 && g.From < apart[n-1].To {
			apart[n-1].To = max(apart[n-1].To, g.To)
			continue
		}
		apart = append(apart, Gap{From: g.From, To: g.To})
	}
	return apart
}

// cut ends gaps at end and leaves out what is too short.
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

// overlap returns where both lists have a gap. Both are ascending and apart, and so is the result.
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

// minGap is the shortest stretch without a success that counts as a gap.
const minGap = int64(5 * time.Millisecond)

// shardStream is what one pod's load had at one shard.
type shardStream struct {
	stream
	tried  int64 // begin of the first interval with a request; -1 = none yet
	failed int64 // end of the last interval with an error; -1 = none yet
}
