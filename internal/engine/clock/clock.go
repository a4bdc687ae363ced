// Package clock measures time for a load: the clock of a run, its relation to the wall clock by
// which the kernel stamps what arrives, precise waits, and whether the process ran meanwhile. All
// instants are nanoseconds since the start of the run.
package clock

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
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

// Heartbeat tells when the process last ran for certain: what is read now arrived after the
// heartbeat before the latest.
type Heartbeat struct{ latest, before atomic.Int64 }

// heartbeatEvery is the time between heartbeats.
const heartbeatEvery = 2 * time.Millisecond

// Run beats until ctx ends. late is called with the stalls that it notices.
func (h *Heartbeat) Run(ctx context.Context, now func() int64, late func(record.Stall)) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			last, at := h.latest.Load(), now()
			h.before.Store(last)
			h.latest.Store(at)
			if last > 0 && at-last > int64(heartbeatEvery)+LateWake {
				late(record.Stall{From: last, To: at})
			}
		}
	}
}

// Since is the instant after which what is read now arrived.
func (h *Heartbeat) Since() int64 {
	return h.before.Load()
}

// Limits of a wall clock's offset, nanoseconds.
const (
	stampSlack  = int64(50 * time.Microsecond) // of the kernel's stamps, which are of the wall clock
	offsetEvery = int64(100 * time.Millisecond)
)

// WallOffset is the wall clock minus nanoseconds since the start, as it was last read.
type WallOffset struct {
	// offset was read at the instant offsetAt, and is the same since offsetFrom.
	offset, offsetAt, offsetFrom int64
}

// Refresh reads the offset at the instant at, unless it was read a short time before.
func (o *WallOffset) Refresh(c *Clock, at int64) {
	if o.offset == 0 || at-o.offsetAt > offsetEvery {
		o.ReadOffset(c, at)
	}
}

// ReadOffset reads the offset at the instant at.
func (o *WallOffset) ReadOffset(c *Clock, at int64) {
	before := o.offset
	o.offset, o.offsetAt = c.wallOffset(), at
	if max(o.offset-before, before-o.offset) > stampSlack { // the clock was set
		o.offsetFrom = at
	}
}

// Arrived returns when data arrived that was read at the instant read, by the kernel's stamp (wall
// clock, nanoseconds; 0 = none). At the instant since the sockets had no data. A stamp from before
// since is true nevertheless: on a busy machine the kernel passes packets on to their sockets many
// milliseconds after it stamped them. It is ignored if the wall clock was set since then, and so is
// an impossible one.
func (o *WallOffset) Arrived(c *Clock, stamp, since, read int64) (at int64, ok bool) {
	if stamp == 0 {
		return read, false
	}
	at = stamp - o.offset
	if at > read+stampSlack {
		return read, false
	}
	if at < since-stampSlack {
		if o.ReadOffset(c, read); at < o.offsetFrom {
			return read, false
		}
	}
	return min(at, read), true
}
