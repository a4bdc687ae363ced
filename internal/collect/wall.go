package collect

import (
	"fmt"
	"time"
)

const (
	// wallNoise is the largest difference between two readings of wall and monotonic clock that is not
	// a step, in nanoseconds.
	wallNoise = int64(time.Millisecond)
	// readTries is how often the clocks are read until the reading took less than wallNoise.
	readTries = 10
	// stepNoted is the size from which a step is part of the record's notes.
	stepNoted = 50 * time.Millisecond
	// maxSteps bounds how many steps of the wall clock are kept.
	maxSteps = 100
)

// wallClock compares the operator's wall clock with its monotonic one, in which all local instants
// are measured: only the wall clock can be set.
type wallClock struct {
	base  time.Time // the wall clock at the local instant 0
	ahead int64     // how far it is ahead of base + the local instant, at the last comparison
	seen  int64     // the local instant of the last comparison
	steps []wallStep
}

// wallStep is one change of the wall clock, made between two comparisons.
type wallStep struct {
	after, before int64 // local instants of the comparisons
	from, to      int64 // wallClock.ahead before and after it
}

// compare compares the clocks, read at the same instant, and returns by how much the wall clock was
// set since the last comparison.
func (w *wallClock) compare(local int64, wall time.Time) (by int64) {
	ahead := w.since(wall) - local
	if by = ahead - w.ahead; max(by, -by) > wallNoise {
		w.steps = append(w.steps, wallStep{
			after:  w.seen,
			before: local,
			from:   w.ahead,
			to:     ahead,
		})
		w.steps = w.steps[max(0, len(w.steps)-maxSteps):]
		w.ahead = ahead
	} else {
		by = 0
	}
	w.seen = max(w.seen, local)
	return by
}

// local converts an instant of the wall clock. uncertainty is the longest time between the instants
// at which the wall clock, because it was set, may have shown it: of them the latest that is not
// after the last comparison is returned.
func (w *wallClock) local(wall time.Time) (local, uncertainty int64) {
	since := w.since(wall)
	local, earliest := since-w.ahead, since-w.ahead
	found := len(w.steps) == 0 || local >= w.steps[len(w.steps)-1].after && local <= w.seen
	for i := len(w.steps) - 1; i >= 0; i-- {
		at := since - w.steps[i].from
		if at > w.steps[i].before || i > 0 && at < w.steps[i-1].after {
			continue
		}
		if !found {
			local, earliest, found = at, at, true
		}
		earliest = min(earliest, at)
	}
	return local, local - earliest
}

// since is the time from base to an instant, both by the wall clock.
func (w *wallClock) since(wall time.Time) int64 {
	return int64(wall.Round(0).Sub(w.base))
}

// compareClocks reads both clocks and compares them.
func (s *Session) compareClocks() {
	before := s.now()
	wall, after := s.cfg.Wall(), s.now()
	for try := 0; after-before > wallNoise && try < readTries; try++ {
		before = after
		wall, after = s.cfg.Wall(), s.now()
	}
	if after-before > wallNoise {
		return // this process did not run for a while; the next comparison will do
	}
	s.mu.Lock()
	by := s.wall.compare(before, wall)
	s.mu.Unlock()
	if by != 0 {
		s.clockStepped(time.Duration(by))
	}
}

// clockStepped notes that the operator's wall clock was set.
func (s *Session) clockStepped(by time.Duration) {
	s.cfg.Logger.Warn("the wall clock was set", "by", by)
	if at, begun := s.Elapsed(); begun && by.Abs() > stepNoted {
		s.record.Lock()
		defer s.record.Unlock()
		s.record.note(
			fmt.Sprintf(
				"The operator's wall clock was set by %v, %v after the start: the times of faults are corrected by it.",
				by.Round(time.Millisecond), at.Round(time.Second)))
	}
}

// At converts an instant that was read from the operator's wall clock to the time since the start,
// on the clock of the run. uncertainty is more than 0 if the wall clock was set and may have shown
// the instant more than once, or if it was set before this session was opened: then by how much.
// It returns false before Start or Resume.
func (s *Session) At(wall time.Time) (at, uncertainty time.Duration, begun bool) {
	s.compareClocks()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.start.set {
		return 0, 0, false
	}
	local, unsure := s.wall.local(wall)
	// read, as the start, by the process before this one
	shift := s.runTime(s.start.local)
	if local < 0 && s.start.local < 0 {
		return time.Duration(local - s.start.local), time.Duration(max(shift, -shift)), true
	}
	return time.Duration(s.runTime(local)), time.Duration(unsure), true
}

// Elapsed returns the time since the start on the clock of the run. It returns false before Start
// or Resume.
func (s *Session) Elapsed() (at time.Duration, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.runTime(s.now())), s.start.set
}

const (
	// clockSamples is how many round trips an estimate uses.
	clockSamples = 32
	// clockSettled is how many round trips are required before the start.
	clockSettled = 5
	// clockDrift bounds how fast two clocks of one cluster drift apart, in ns per ns: quartz and NTP's
	// slewing in the ordinary case.
	clockDrift = 50e-6
)

// roundTrip is one reading of a pod's clock. Local instants are nanoseconds since the session was
// opened.
type roundTrip struct {
	at     int64 // local instant of the midpoint
	offset int64 // pod's clock - local clock at the midpoint
	rtt    int64
}

// clock estimates a pod's clock from round trips. The error of a reading is at most rtt/2, so the
// shortest of the recent round trips is the most precise. The error grows with the age of the
// reading by clockDrift.
type clock struct {
	trips [clockSamples]roundTrip
	count int // of all ever observed
}

// observe adds a reading: the pod's clock was at remote between the local instants sent and
// received. A reading that no drift explains means that one of the clocks stood still, as that of a
// suspended machine does: it replaces the others, and observe returns by how much the pod's clock
// moved.
func (c *clock) observe(sent, received, remote int64) (moved int64) {
	middle := sent + (received-sent)/2
	trip := roundTrip{
		at:     middle,
		offset: remote - middle,
		rtt:    received - sent,
	}
	offset, uncertainty, ok := c.estimate(middle)
	if ok && max(trip.offset-offset, offset-trip.offset) > uncertainty+trip.rtt/2+1 {
		moved = trip.offset - offset
		*c = clock{}
	}
	c.trips[c.count%clockSamples] = trip
	c.count++
	return moved
}

// settled reports whether there were enough round trips for the start.
func (c *clock) settled() bool {
	return c.count >= clockSettled
}

// estimate returns pod's clock - local clock, and its maximum error at the local instant now. ok is
// false without a reading.
func (c *clock) estimate(now int64) (offset, uncertainty int64, ok bool) {
	for _, trip := range c.trips[:min(c.count, clockSamples)] {
		off := trip.rtt/2 + int64(float64(max(0, now-trip.at))*clockDrift)
		if !ok || off < uncertainty {
			offset, uncertainty, ok = trip.offset, off, true
		}
	}
	return offset, uncertainty, ok
}
