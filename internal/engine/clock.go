package engine

import (
	"math"
	"time"
)

// clock tells the time of a run: nanoseconds since its start.
type clock struct {
	start time.Time // T, with a monotonic reading; set before the loops begin
}

// never is an instant that is not reached.
const never = int64(math.MaxInt64)

// lateWake is how late a wake-up is at least that is a stall, nanoseconds: the process, or its thread, did not run.
const lateWake = int64(5 * time.Millisecond)

// startingAt returns the clock of a run that starts at t. It has a monotonic reading, so that a step of the wall clock during the run does not move it.
func startingAt(t time.Time) clock {
	now := time.Now()
	return clock{now.Add(t.Sub(now))}
}

// now returns the time since T in nanoseconds.
func (c *clock) now() int64 { return int64(time.Since(c.start)) }

// at converts an instant to nanoseconds since T.
func (c *clock) at(t time.Time) int64 { return int64(t.Sub(c.start)) }

// wallOffset is the wall clock minus the time since the start, from the closest of a few pairs of readings.
func (c *clock) wallOffset() int64 {
	closest, offset := never, int64(0)
	for range 5 {
		before := time.Now()
		t := time.Now()
		if apart := int64(time.Since(before)); apart < closest {
			closest, offset = apart, t.UnixNano()-c.at(t)
		}
		if closest < 500 {
			break
		}
	}
	return offset
}
