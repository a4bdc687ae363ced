// Package clock measures time for a load: the clock of a run, its relation to the wall clock by
// which the kernel stamps what arrives, precise waits, and whether the process ran meanwhile. All
// instants are nanoseconds since the start of the run.
package clock

import (
	"math"
	"time"
)

// Clock tells the time of a run: nanoseconds since its start.
type Clock struct {
	Start time.Time // T, with a monotonic reading; set before the loops begin
}

// Never is an instant that is not reached.
const Never = int64(math.MaxInt64)

// LateWake is how late a wake-up is at least that is a stall, nanoseconds: the process, or its
// thread, did not run.
const LateWake = int64(5 * time.Millisecond)

// StartingAt returns the clock of a run that starts at t. It has a monotonic reading, so that a
// step of the wall clock during the run does not move it.
func StartingAt(t time.Time) Clock {
	now := time.Now()
	return Clock{now.Add(t.Sub(now))}
}

// Now returns the time since T in nanoseconds.
func (c *Clock) Now() int64 {
	return int64(time.Since(c.Start))
}

// At converts an instant to nanoseconds since T.
func (c *Clock) At(t time.Time) int64 {
	return int64(t.Sub(c.Start))
}

// wallOffset is the wall clock minus the time since the start, from the closest of a few pairs of
// readings.
func (c *Clock) wallOffset() int64 {
	closest, offset := Never, int64(0)
	for range 5 {
		before := time.Now()
		t := time.Now()
		if apart := int64(time.Since(before)); apart < closest {
			closest, offset = apart, t.UnixNano()-c.At(t)
		}
		if closest < 500 {
			break
		}
	}
	return offset
}
