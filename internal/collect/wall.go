package collect

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/collect/clocks"
)

const (
	// readTries is how often the clocks are read until the reading took less than clocks.WallNoise.
	readTries = 10
	// stepNoted is the size from which a step is part of the record's notes.
	stepNoted = 50 * time.Millisecond
)

// compareClocks reads both clocks and compares them.
func (s *Session) compareClocks() {
	before := s.now()
	wall, after := s.cfg.Wall(), s.now()
	for try := 0; after-before > clocks.WallNoise && try < readTries; try++ {
		before = after
		wall, after = s.cfg.Wall(), s.now()
	}
	if after-before > clocks.WallNoise {
		return // this process did not run for a while; the next comparison will do
	}
	s.mu.Lock()
	by := s.wall.Compare(before, wall)
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
	local, unsure := s.wall.Local(wall)
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
