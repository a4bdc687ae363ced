package merged

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

const (
	// MaxStalls bounds the stalls that are kept per pod: the longest ones.
	MaxStalls = 100
	// maxSpared bounds those that are kept beside them, as a fault may need them: within a part to be
	// kept, see Keep, and in the last sparedFor.
	maxSpared = 400
	sparedFor = 3 * time.Minute
)

// addStalls adds the stalls of a pod's load generator that came with an interval, which ends at the
// instant end.
func (s *Series) addStalls(pod int, iv *record.Interval, end int64) {
	p := &s.pods[pod]
	for _, one := range iv.Stalls {
		for _, part := range without(one, p.stalls) {
			s.countStall(pod, part, iv.Index)
		}
		p.stalls = append(p.stalls, one)
	}
	if len(iv.Stalls) == 0 || len(p.stalls) <= MaxStalls {
		return
	}
	var spared, others []record.Stall
	for _, one := range p.stalls {
		if one.To > end-int64(sparedFor) ||
			slices.ContainsFunc(s.windows, func(w window) bool {
				return one.From < w.to &&
					one.To > w.from
			}) {
			spared = append(spared, one)
		} else {
			others = append(others, one)
		}
	}
	p.stalls = append(longest(others, MaxStalls), longest(spared, maxSpared)...)
	slices.SortFunc(p.stalls, func(a, b record.Stall) int { return cmp.Compare(a.From, b.From) })
}

// without returns the parts of a stall that others do not cover: several threads of a pod that
// stall at the same time count once.
func without(one record.Stall, others []record.Stall) []record.Stall {
	rest := []record.Stall{one}
	for _, o := range others {
		if o.To <= one.From || o.From >= one.To {
			continue
		}
		var left []record.Stall
		for _, part := range rest {
			if o.From > part.From {
				left = append(left, record.Stall{From: part.From, To: min(part.To, o.From)})
			}
			if o.To < part.To {
				left = append(left, record.Stall{From: max(part.From, o.To), To: part.To})
			}
		}
		rest = left
	}
	return slices.DeleteFunc(rest, func(part record.Stall) bool { return part.From >= part.To })
}

// countStall adds a stall to the intervals that it spans, up to the one with which it came.
func (s *Series) countStall(pod int, stall record.Stall, last int64) {
	step := int64(s.PodStep)
	for from := max(0, stall.From); from < stall.To; {
		index := min(from/step, last)
		to := stall.To
		if index < last {
			to = min(to, (index+1)*step)
		}
		for _, iv := range s.intervalsOf(index * step) {
			iv.AddStalled(pod, to-from)
		}
		from = to
	}
}

// longest returns the n longest stalls; of equal ones the later.
func longest(stalls []record.Stall, n int) []record.Stall {
	if len(stalls) <= n {
		return stalls
	}
	slices.SortFunc(stalls, func(a, b record.Stall) int {
		return cmp.Or(cmp.Compare(b.To-b.From, a.To-a.From), cmp.Compare(b.From, a.From))
	})
	return stalls[:n]
}

// Stalls returns the stalls of a pod's load generator, by time: at least the longest hundred, and
// those around faults. Interval.Stalled has the time of all.
func (s *Series) Stalls(pod int) []record.Stall {
	return slices.Clone(s.pods[pod].stalls)
}

// Align sets how far a pod's clock is ahead of the run's: the instants of the intervals that it
// delivers from now on are corrected by it before they are merged. uncertainty is the greatest
// error of the instants after that.
func (s *Series) Align(pod int, ahead, uncertainty time.Duration) {
	s.pods[pod].ahead = int64(ahead)
	s.ClockUncertainty = max(s.ClockUncertainty, uncertainty)
	least, most := s.pods[0].ahead, s.pods[0].ahead
	for i := range s.pods {
		least, most = min(least, s.pods[i].ahead), max(most, s.pods[i].ahead)
	}
	s.ClockSpread = max(s.ClockSpread, time.Duration(most-least))
}

// Ahead returns how far a pod's clock is ahead of the run's, as set by Align.
func (s *Series) Ahead(pod int) time.Duration {
	return time.Duration(s.pods[pod].ahead)
}

// delivered is the instant up to which the pod has delivered its record.
func (p *podRecord) delivered(step time.Duration) int64 {
	return p.next*int64(step) - p.ahead
}

// mergeInstants adds the instants of an interval of a pod to the intervals that contain them: those
// of a pod whose clock has drifted are not in the interval with its counts.
func (s *Series) mergeInstants(own *record.Interval, p *podRecord, iv *record.Interval) {
	if p.ahead == 0 {
		own.MergeInstants(iv)
		return
	}
	own.MaxLag = max(own.MaxLag, iv.MaxLag)
	for _, at := range [...]int64{iv.FirstError, iv.LastError} {
		for _, to := range s.intervalsOf(at) {
			to.FirstError = record.Earlier(to.FirstError, at)
			to.LastError = max(to.LastError, at)
		}
	}
	for _, at := range [...]int64{iv.FirstOK, iv.LastOK} {
		for _, to := range s.intervalsOf(at) {
			to.FirstOK, to.LastOK = record.Earlier(to.FirstOK, at), max(to.LastOK, at)
		}
	}
}

// intervalsOf returns the intervals that contain an instant, or the last one; none for -1.
func (s *Series) intervalsOf(at int64) []*record.Interval {
	if at < 0 {
		return nil
	}
	var list []*record.Interval
	index := at / int64(s.PodStep)
	if s.fine != nil {
		if index >= s.fine.sealed {
			b := s.blockOf(index)
			return append(list, &b.intervals[index%s.blockLen()])
		}
		if iv := s.fineAt(index); iv != nil {
			list = append(list, iv)
		}
	}
	return append(list, &s.intervals[min(index/s.share(), int64(len(s.intervals)-1))])
}
