// Package silence finds the periods without a success: of one pod, of a part of its load, and those
// that all pods have in common.
package silence

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Stream describes when one pod's load, or its probe, had successes.
type Stream struct {
	Gaps        []record.Gap // as the pod logged them
	OK          uint64       // successes
	First, Last int64        // instants of the first and the last, nanoseconds since T; -1 = none yet
	// last, when the pod had delivered all gaps that had ended; -1 = none yet, or not since the record
	// was decoded
	Known int64
}

// NewStream returns a stream without a success.
func NewStream() Stream {
	return Stream{
		First: -1,
		Last:  -1,
		Known: -1,
	}
}

// Add adds what a pod logged in an interval: gaps, a number of successes, and the instants of the
// first and the last of them, -1 for none.
func (t *Stream) Add(gaps []record.Gap, ok uint64, first, last int64) {
	t.Gaps = append(t.Gaps, gaps...)
	t.OK += ok
	t.First = record.Earlier(t.First, first)
	t.Last = max(t.Last, last)
}

// threshold is the minimum length of the pod's gaps: max(2 x mean interval between successes, 5
// ms).
func (t *Stream) threshold() int64 {
	if t.OK > 1 {
		return max(2*(t.Last-t.First)/int64(t.OK-1), MinGap)
	}
	return MinGap
}

// logged reports whether the pod's log has the silence at the end of its run, if it was one: a gap
// that is open, or a success in the last interval, which begins at the instant begin.
func (t *Stream) logged(begin int64) bool {
	return t.Last >= begin || len(t.Gaps) > 0 && t.Gaps[len(t.Gaps)-1].Open
}

// Silence returns the periods without a success, ascending and disjoint, of a pod that has
// delivered its record until the instant delivered.
// A period that has not ended by then counts if it is longer than the minimum length of a gap. A
// pod that has finished logged its own, whose end is that of its run: it may be within the last
// interval.
// A pod that delivers nothing more before end is silent from its last success on, so that it does
// not affect the gaps of the other pods.
func (t *Stream) Silence(delivered, end int64, step time.Duration, finished bool) []record.Gap {
	open := record.Gap{From: max(t.Last, 0), To: delivered}
	return t.silenceWith(open, end, finished && t.logged(delivered-int64(step)))
}

// silenceWith is silence with the period since the last success, which may be in the log.
func (t *Stream) silenceWith(open record.Gap, end int64, logged bool) []record.Gap {
	list := slices.Clone(t.Gaps)
	switch {
	case open.To < end:
		list = append(list, record.Unproven(open.From, math.MaxInt64))
	case open.To-open.From > t.threshold() && !logged:
		list = append(list, open)
	}
	slices.SortFunc(list, func(a, b record.Gap) int { return cmp.Compare(a.From, b.From) })
	apart := list[:0]
	for _, g := range list {
		// Adjacent gaps have a success between them; overlapping gaps are the log's open gap and its
		// continuation.
		if n := len(apart); n > 0 && g.From < apart[n-1].To {
			apart[n-1] = apart[n-1].Continued(g)
			continue
		}
		apart = append(apart, g)
	}
	return apart
}

// PartStream describes when one pod's load had successes and errors at one shard, or of one part of
// the load.
type PartStream struct {
	Stream
	Tried  int64 // beginning of the first interval with a request; -1 = none yet
	Failed int64 // end of the last interval with an error; -1 = none yet
}

// Silence is like that of a Stream. What has not ended yet is proven by an error only: nobody need
// have asked.
func (t *PartStream) Silence(delivered, end int64, step time.Duration, finished bool) []record.Gap {
	open := record.Gap{From: max(t.Last, 0), To: delivered}
	if t.Failed <= t.Last {
		open = record.Unproven(open.From, open.To)
	}
	return t.silenceWith(open, end, finished && t.logged(delivered-int64(step)))
}

// NewPartStream returns a stream without a request.
func NewPartStream() PartStream {
	return PartStream{
		Stream: NewStream(),
		Tried:  -1,
		Failed: -1,
	}
}

// Cut truncates gaps at end and drops those that are too short.
func Cut(common []record.Gap, end int64) []record.Gap {
	var gaps []record.Gap
	for _, g := range common {
		if g.To >= end {
			g = g.OpenAt(end)
		}
		if g.AtMost() > MinGap {
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// MinGap is the minimum length of a gap, in nanoseconds.
const MinGap = int64(5e6)

// longSilence is how long a pod must have had no success to be considered in a gap: one that it
// will log.
const longSilence = int64(time.Minute)

// Merged is the instant up to which the gaps of a pod can be merged whose latest settled interval
// ended at settled: it will deliver none that begins before it, except for the one in which it has
// been for long.
func (t *Stream) Merged(settled int64, step time.Duration) int64 {
	if t.Known == t.Last && settled-t.Last > max(longSilence, t.threshold()) {
		return settled - 1
	}
	return t.Known - int64(step) // an instant may be only known to be within its interval
}

// Count adds the outcomes of the interval [begin, end): successes and errors. Intervals do not
// contain the instants of parts.
func (t *PartStream) Count(ok, errors uint64, begin, end int64) {
	if ok+errors > 0 && t.Tried < 0 {
		if t.Tried = begin; begin > 0 { // until then this pod does not affect the gaps of the others
			t.Gaps = append(t.Gaps, record.Unproven(0, begin))
		}
	}
	if errors > 0 {
		t.Failed = end
	}
	if ok > 0 {
		t.Add(nil, ok, begin, end)
	}
}
