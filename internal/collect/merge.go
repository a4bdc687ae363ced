package collect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

const (
	// maxDecoded is how many intervals are decoded before they are added: more than a usual pull
	// contains. A small frame may be a large interval.
	maxDecoded = 64
)

var errFrame = errors.New("an interval's frame is malformed")

// merge adds a pulled batch to the series, and reports whether the pod has further intervals.
func (s *Session) merge(p *pod, b batch) (more bool, err error) {
	into, _ := s.decoded.Get().(*[]record.Interval)
	if into == nil {
		into = new([]record.Interval)
	}
	for frames := b.frames; err == nil && len(frames) > 0; {
		before := len(frames)
		*into, frames, err = s.decode((*into)[:0], frames, b.lastSeq)
		if len(*into) > 0 {
			err = errors.Join(s.add(p, *into), err)
		}
		if len(frames) == before { // an incomplete one is left
			break
		}
	}
	s.decoded.Put(into) // the series does not retain them
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.state == "" {
		return false, err
	}
	before := p.last
	p.last.LastSeq, p.last.Lost = max(p.last.LastSeq, b.lastSeq), b.lost
	if b.state.Ended() && !p.last.State.Ended() {
		p.statusWanted = true // its status contains the reason
		return true, err
	}
	if b.state != p.last.State {
		p.statusWanted = true // while Verifying, progress is part of the status
	}
	s.changedSince(p, before, p.problem)
	return err == nil && p.progress.pulled < b.lastSeq, err
}

// decode appends the intervals of some frames, at most maxDecoded, and returns the other frames. It
// reuses the memory of intervals up to its capacity.
func (s *Session) decode(
	intervals []record.Interval, frames []byte, lastSeq uint64,
) ([]record.Interval, []byte, error) {
	for len(frames) > 0 && len(intervals) < maxDecoded {
		frame, next, err := split(frames)
		if err != nil || frame == nil {
			return intervals, frames, err
		}
		n := len(intervals)
		intervals = slices.Grow(intervals, 1)[:n+1]
		interval := &intervals[n]
		if err := interval.Decode(frame); err != nil {
			return intervals[:n], frames, fmt.Errorf("decode an interval: %w", err)
		}
		if len(interval.Ops) != len(s.cfg.Ops) || interval.Index < 0 ||
			uint64(interval.Index) >= lastSeq {
			return intervals[:n], frames, fmt.Errorf("%w: index %d of %d, %d operations", errFrame,
				interval.Index, lastSeq, len(interval.Ops))
		}
		if err := boundInterval(interval); err != nil {
			return intervals[:n], frames, err
		}
		frames = next
	}
	return intervals, frames, nil
}

// split returns the first frame of b and the rest; nil and b if the frame is incomplete.
func split(b []byte) (frame, rest []byte, err error) {
	length, n := binary.Uvarint(b)
	switch {
	case n < 0 || length > maxAnswer:
		return nil, b, errFrame
	case n == 0 || uint64(len(b)-n) < length:
		return nil, b, nil
	}
	return b[n : n+int(length)], b[n+int(length):], nil
}

// add adds intervals of one pod to the series, in order. Intervals that were already added are
// ignored. A hole is filled with empty intervals and noted, so that the series does not wait for
// intervals that the pod has dropped.
func (s *Session) add(p *pod, intervals []record.Interval) error {
	elapsed := s.now() - s.startInstant()
	s.record.Lock()
	defer s.record.Unlock()
	if p.ctx.Err() != nil {
		return nil // lost in the meantime
	}
	var err error
	filled := uint64(0)
	for i := range intervals {
		interval := &intervals[i]
		next := s.record.series.Next(p.index)
		if interval.Index < next {
			continue
		}
		at := time.Duration(min(interval.Index, math.MaxInt64/int64(s.cfg.Step))) * s.cfg.Step
		if time.Duration(elapsed)+s.cfg.Ahead < at {
			err = fmt.Errorf("%w: interval %d is in the future", errFrame, interval.Index)
			break
		}
		if interval.Index > next {
			if err = s.fill(p.index, next, interval.Index); err != nil {
				break
			}
			filled += uint64(interval.Index - next)
		}
		if err = s.addInterval(p.index, interval); err != nil {
			break
		}
		if s.cfg.Merged != nil {
			s.cfg.Merged(interval)
		}
		s.record.grown = true
	}
	pulled := uint64(s.record.series.Next(p.index))
	s.mu.Lock()
	p.progress.pulled = pulled
	p.progress.filled += filled
	s.mu.Unlock()
	return err
}

// fill adds empty intervals [from, to) and a note about the hole. The caller holds record.
func (s *Session) fill(pod int, from, to int64) error {
	for index := from; index < to; index++ {
		zero := record.Interval{
			Index:      index,
			Pods:       1,
			Ops:        make([]record.Op, len(s.cfg.Ops)),
			FirstError: -1,
			LastError:  -1,
			FirstOK:    -1,
			LastOK:     -1,
		}
		if err := s.addInterval(pod, &zero); err != nil {
			return err
		}
	}
	s.record.merged(func(series *merged.Series) { series.AddHole(pod, from, to) })
	s.record.note(
		fmt.Sprintf(
			"Pod %d had to forget its record from %v to %v before it could be pulled: it counts as zero there.",
			pod, time.Duration(from)*s.cfg.Step, time.Duration(to)*s.cfg.Step))
	s.cfg.Logger.Warn("a pod had to forget intervals; they count as zero", "pod", pod, "from", from,
		"to", to)
	return nil
}

// addInterval merges an interval of a pod. The caller holds record.
func (s *Session) addInterval(pod int, interval *record.Interval) error {
	if err := s.record.series.Add(pod, interval); err != nil {
		return err
	}
	if s.record.compact == nil {
		return nil
	}
	if err := s.record.compact.Add(pod, interval); err != nil {
		// Not expected, as it receives the same intervals as the record. The next checkpoint creates
		// another one.
		s.cfg.Logger.Error("failed to add to the compact record", "pod", pod, "error", err)
		s.record.compact = nil
	}
	return nil
}

// AddPodUses adds readings of observed pods to the record; those that it has are ignored. The next
// checkpoint contains them.
func (s *Session) AddPodUses(uses []record.PodUse) {
	s.record.Lock()
	defer s.record.Unlock()
	s.record.merged(func(series *merged.Series) {
		if series.AddPodUses(uses) {
			s.record.grown = true
		}
	})
}
