package loop

import (
	"math"
	"os"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/record"
)

// expire ends the requests that were sent before the given instant: they have timed out. The
// requests of a connection that is not shared were sent together, and it is closed, as a client
// does. On a shared one the replies to others may still arrive in time.
func (c *Conn) expire(before int64) {
	switch {
	case c.flight.count == 0 || c.flight.at(0).sent >= before:
	case c.loop.multiplexed && before != math.MaxInt64:
		c.expireEach(before)
	default:
		c.lose(os.ErrDeadlineExceeded)
	}
}

// expireEach ends the requests that were sent before the given instant, and dials a replacement if
// nothing has been received since that instant.
func (c *Conn) expireEach(before int64) {
	l := c.loop
	at := l.stamp()
	for i := range c.flight.count {
		r := c.flight.at(i)
		if r.sent >= before {
			break
		}
		if r.expired {
			continue
		}
		r.expired = true
		c.landed(r)
		l.gaps.Lost(c.pool.place.Shard, l.look.since)
		l.recordUnknown(c.pool, r, at, record.ClassTimeout)
		l.ended(r, at)
	}
	if c.heard < before && !c.replacing && !l.closing() {
		l.run.Routes.Refresh("a connection is silent")
		c.connect(l.dialing)
	}
}

// established adopts a connection that was dialled, unless it is a replacement and the silent
// connection has received data in the meantime.
func (c *Conn) established(stands dial.Line) {
	if c.up && c.pump == nil {
		c.receive()
	}
	switch {
	case c.up && c.heard != c.silentFrom:
		c.replacing = false
		_ = stands.Close()
		return
	case c.up:
		c.breakOff(record.ClassReset)
	}
	c.Adopt(stands)
}
