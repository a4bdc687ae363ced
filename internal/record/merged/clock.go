package merged

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

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
