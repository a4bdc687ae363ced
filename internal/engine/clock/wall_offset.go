package clock

import "time"

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
