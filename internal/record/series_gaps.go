package record

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// minGap is the shortest stretch without a success that counts as a gap.
const minGap = int64(5 * time.Millisecond)

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

// Gaps returns the stretches of the complete part in which no pod had a success, ascending. One that reaches the end of the
// complete part is Open.
//
// A pod logs only gaps longer than max(2 x its mean interval between successes, 5 ms), and a gap of the run is where the logs of all pods
// overlap for more than 5 ms. So every stretch that is longer than the longest of the pods' thresholds is found, with its exact ends; a shorter one
// may be missed or found shorter. With n equal pods that threshold is 2n times the run's mean interval between successes.
// A pod that is lost, or has finished, takes no part from its last success on; if that holds for all, the last gap ends with the record.
func (s *Series) Gaps() []Gap {
	return s.intersect(func(p *podRecord) *stream { return &p.load })
}

// ProbeGaps is as Gaps, for the probes. Where the probe's last success is followed by none, the gap is known to begin in the interval of
// that success and is taken to begin at its end. nil where there is no probe, see HasProbe.
func (s *Series) ProbeGaps() []Gap {
	if !s.HasProbe() {
		return nil
	}
	return s.intersect(func(p *podRecord) *stream { return &p.probe })
}

// HasProbe says whether a probe ran beside the load.
func (s *Series) HasProbe() bool {
	for i := range s.intervals {
		if c := &s.intervals[i].Probe.Counts; c.Due > 0 || c.Sent > 0 || c.OK > 0 {
			return true
		}
	}
	return false
}

func (s *Series) intersect(of func(*podRecord) *stream) []Gap {
	end := int64(s.End())
	var common []Gap
	for i := range s.pods {
		p := &s.pods[i]
		list := of(p).silence(p.next*int64(s.PodStep), end)
		if i == 0 {
			common = list
		} else {
			common = overlap(common, list)
		}
	}
	return cut(common, end)
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
