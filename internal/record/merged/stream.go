package merged

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// stream describes when one pod's load, or its probe, had successes.
type stream struct {
	gaps        []record.Gap // as the pod logged them
	ok          uint64       // successes
	first, last int64        // instants of the first and the last; -1 = none yet
	known       int64        // last, when the pod had delivered all gaps that had ended; -1 = none yet, or not since the record was decoded
}

func newStream() stream { return stream{first: -1, last: -1, known: -1} }

func (t *stream) add(gaps []record.Gap, ok uint64, first, last int64) {
	t.gaps = append(t.gaps, gaps...)
	t.ok += ok
	t.first = record.Earlier(t.first, first)
	t.last = max(t.last, last)
}

// threshold is the minimum length of the pod's gaps: max(2 x mean interval between successes, 5 ms).
func (t *stream) threshold() int64 {
	if t.ok > 1 {
		return max(2*(t.last-t.first)/int64(t.ok-1), minGap)
	}
	return minGap
}

// logged reports whether the pod's log has the silence at the end of its run, if it was one: a gap that is open, or a success in the last interval,
// which begins at the instant begin.
func (t *stream) logged(begin int64) bool {
	return t.last >= begin || len(t.gaps) > 0 && t.gaps[len(t.gaps)-1].Open
}

// silence returns the periods without a success, ascending and disjoint, of a pod that has delivered its record until the instant delivered.
// A period that has not ended by then counts if it is longer than the minimum length of a gap. A pod that has finished logged its own, whose
// end is that of its run: it may be within the last interval.
// A pod that delivers nothing more before end is silent from its last success on, so that it does not affect the gaps of the other pods.
func (t *stream) silence(delivered, end int64, step time.Duration, finished bool) []record.Gap {
	open := record.Gap{From: max(t.last, 0), To: delivered}
	return t.silenceWith(open, end, finished && t.logged(delivered-int64(step)))
}

// silenceWith is silence with the period since the last success, which may be in the log.
func (t *stream) silenceWith(open record.Gap, end int64, logged bool) []record.Gap {
	list := slices.Clone(t.gaps)
	switch {
	case open.To < end:
		list = append(list, record.Unproven(open.From, math.MaxInt64))
	case open.To-open.From > t.threshold() && !logged:
		list = append(list, open)
	}
	slices.SortFunc(list, func(a, b record.Gap) int { return cmp.Compare(a.From, b.From) })
	apart := list[:0]
	for _, g := range list {
		// Adjacent gaps have a success between them; overlapping gaps are the log's open gap and its continuation.
		if n := len(apart); n > 0 && g.From < apart[n-1].To {
			apart[n-1] = apart[n-1].Continued(g)
			continue
		}
		apart = append(apart, g)
	}
	return apart
}

// partStream describes when one pod's load had successes and errors at one shard, or of one part of the load.
type partStream struct {
	stream
	tried  int64 // beginning of the first interval with a request; -1 = none yet
	failed int64 // end of the last interval with an error; -1 = none yet
}

// silence is like that of a stream. What has not ended yet is proven by an error only: nobody need have asked.
func (t *partStream) silence(delivered, end int64, step time.Duration, finished bool) []record.Gap {
	open := record.Gap{From: max(t.last, 0), To: delivered}
	if t.failed <= t.last {
		open = record.Unproven(open.From, open.To)
	}
	return t.silenceWith(open, end, finished && t.logged(delivered-int64(step)))
}

func newPartStream() partStream { return partStream{stream: newStream(), tried: -1, failed: -1} }

// cut truncates gaps at end and drops those that are too short.
func cut(common []record.Gap, end int64) []record.Gap {
	var gaps []record.Gap
	for _, g := range common {
		if g.To >= end {
			g = g.OpenAt(end)
		}
		if g.AtMost() > minGap {
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// minGap is the minimum length of a gap.
const minGap = int64(5e6)
