package loop

import (
	"math"
	"os"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/record"
)

// delayed is a request that is held back in the client: its reply is delayed to simulate a slower
// network, or the request waits for a retry.
type delayed struct {
	lo, at  int64 // when it continues; a reply can have arrived as early as lo
	conn    *Conn // that received the reply; nil for a retry
	request request
	raw     []byte // the reply's bytes, where they are read as values
}

// delays is a FIFO queue of requests that are all delayed by the same time.
type delays struct {
	list []delayed
	head int
}

func (d *delays) count() int {
	return len(d.list) - d.head
}

// retryAfter is the delay before a failed request is retried: an immediate retry would reach the
// same server in the same state.
const retryAfter = int64(10 * time.Millisecond)

// runDelayed continues the requests whose delay has passed.
func (l *Loop) runDelayed(now int64) {
	if l.held.next() <= now {
		l.released = l.held.take(now, l.released[:0])
		for i := range l.released {
			e := &l.released[i]
			e.conn.held--
			// not now: a loop that is late does not make the network slower
			e.conn.finishRound(&e.request, e.raw, e.lo, e.at)
			e.conn.release()
		}
	}
	if l.retries.next() <= now {
		l.released = l.retries.take(now, l.released[:0])
		for i := range l.released {
			r := &l.released[i].request
			l.requeue(r, l.route(r))
			l.queued-- // it was counted while it waited
		}
	}
}

// take moves the requests that are due at the instant now to ready.
func (d *delays) take(now int64, ready []delayed) []delayed {
	for d.head < len(d.list) && d.list[d.head].at <= now {
		ready = append(ready, d.list[d.head])
		d.list[d.head] = delayed{}
		d.head++
	}
	if d.head == len(d.list) {
		d.list, d.head = d.list[:0], 0
	}
	return ready
}

// next is when the first request is due.
func (d *delays) next() int64 {
	if d.head == len(d.list) {
		return clock.Never
	}
	return d.list[d.head].at
}

// retryLater keeps a request that was certainly not applied for another attempt, if the plan allows
// one.
func (l *Loop) retryLater(r *request, at int64) bool {
	if int(r.tries) >= l.run.Plan.Client.Retries || l.closing() {
		return false
	}
	if r.sent > 0 && at+retryAfter-r.sent > l.run.Timeout {
		return false // it would exceed requestTimeout
	}
	r.tries++
	l.retries.push(delayed{at: at + retryAfter, request: *r})
	l.queued++
	return true
}

func (d *delays) push(e delayed) {
	d.list = append(d.list, e)
}

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
		c.receive(true)
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
