// Package clocks compares the clocks of a run: the operator's wall clock with its monotonic one,
// and those of the load pods with that. Local instants are nanoseconds of the monotonic clock.
package clocks

import "time"

const (
	// WallNoise is the largest difference between two readings of wall and monotonic clock that is not
	// a step, in nanoseconds.
	WallNoise = int64(time.Millisecond)
	// maxSteps bounds how many steps of the wall clock are kept.
	maxSteps = 100
)

// Wall compares the operator's wall clock with its monotonic one, in which all local instants are
// measured: only the wall clock can be set.
type Wall struct {
	base  time.Time // the wall clock at the local instant 0
	ahead int64     // how far it is ahead of base + the local instant, at the last comparison
	seen  int64     // the local instant of the last comparison
	steps []wallStep
}

// wallStep is one change of the wall clock, made between two comparisons.
type wallStep struct {
	after, before int64 // local instants of the comparisons
	from, to      int64 // Wall.ahead before and after it
}

// NewWall returns the comparison with a wall clock that shows base at the local instant 0.
func NewWall(base time.Time) Wall {
	return Wall{base: base.Round(0)}
}

// Ahead is how far the wall clock was ahead at the last comparison.
func (w *Wall) Ahead() int64 {
	return w.ahead
}

// Compare compares the clocks, read at the same instant, and returns by how much the wall clock was
// set since the last comparison.
func (w *Wall) Compare(local int64, wall time.Time) (by int64) {
	ahead := w.Since(wall) - local
	if by = ahead - w.ahead; max(by, -by) > WallNoise {
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

// Local converts an instant of the wall clock. uncertainty is the longest time between the instants
// at which the wall clock, because it was set, may have shown it: of them the latest that is not
// after the last comparison is returned.
func (w *Wall) Local(wall time.Time) (local, uncertainty int64) {
	since := w.Since(wall)
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

// Since is the time from base to an instant, both by the wall clock.
func (w *Wall) Since(wall time.Time) int64 {
	return int64(wall.Round(0).Sub(w.base))
}
