package loop

import (
	"bufio"
	"bytes"
	"io"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// maxRawReply bounds a reply that is read as a value, in bytes. No workload needs larger ones.
const maxRawReply = 1 << 20

// receive reads from the socket until a read returns less than the buffer holds; of a connection
// with TLS, until no record is complete; of one that has ended, until the end.
func (c *Conn) receive(ended bool) {
	l := c.loop
	c.flush()
	if c.secured != nil {
		c.secured.Begin(ended)
	}
	for generation := c.generation; c.up && generation == c.generation; {
		n, stamp, err := c.read(l.in)
		l.invalidateClock()
		switch {
		case err == socket.ErrAgain: //nolint:errorlint // a bare errno, on the hot path
			return
		case err != nil:
			c.lose(err)
			return
		case n == 0:
			c.lose(io.EOF)
			return
		}
		c.take(l.in[:n], stamp)
		if n < len(l.in) && c.secured == nil && !ended {
			return
		}
	}
}

func (c *Conn) read(p []byte) (n int, stamp int64, err error) {
	if c.secured != nil {
		return c.secured.Read(p)
	}
	return c.loop.receiver.Read(c.socket, p)
}

// take scans the replies in p and settles their requests. stamp is the kernel's stamp of their last
// byte, 0 = none.
func (c *Conn) take(p []byte, stamp int64) {
	came := c.reception(stamp)
	c.heard = c.loop.at
	for len(p) > 0 {
		k, reply, done, err := c.scan.Next(p)
		if c.flight.count > 0 && c.flight.at(0).follows {
			if len(c.raw)+k > maxRawReply {
				c.raw = nil
				c.lose(resp.ErrProtocol)
				return
			}
			c.raw = append(c.raw, p[:k]...)
		}
		p = p[k:]
		if err != nil {
			c.lose(err)
			return
		}
		if !done { // the rest of p is an incomplete reply, or a push message
			c.loop.eager()
			break
		}
		if c.flight.count == 0 {
			c.lose(dial.ErrUnexpectedReply)
			return
		}
		if r := c.flight.at(0); r.asking {
			r.asking = false
			c.raw = c.raw[:max(0, len(c.raw)-reply.Bytes)] // the reply to ASKING is none of the request's
		} else if c.noteReply(r, &reply) {
			c.flight.pop() // r stays readable: nothing is sent on this connection until it is settled
			c.replied(r, came, len(p) == 0)
			c.raw = c.raw[:0]
		}
	}
	c.release()
}

// reception is when data arrived that was read at once.
type reception struct {
	at    int64 // the last of it: by the kernel's stamp, or when it was read
	since int64 // all of it arrived after that instant
	exact bool  // at is a stamp
}

func (c *Conn) reception(stamp int64) reception {
	l := c.loop
	earliest := l.look.since
	if c.pump != nil {
		earliest = 0 // the pump may have read long before
	}
	at, exact := l.look.Arrived(&l.run.Clock, stamp, earliest, l.stamp())
	l.stamped = exact && c.pump == nil
	return reception{at, min(at, l.look.since), exact}
}

// replied continues a request whose replies are complete. last tells that nothing else was read
// after them: then the stamp is theirs, unless a pump or TLS may have read further replies.
func (c *Conn) replied(r *request, came reception, last bool) {
	l := c.loop
	if r.expired {
		c.alive = came.at
		return
	}
	lo := came.since
	if came.exact && (c.flight.count == 0 || last && c.pump == nil && c.secured == nil) {
		lo = came.at
	}
	if slower := l.addedLatency; slower > 0 {
		c.held++
		l.held.push(delayed{
			lo:      lo + slower,
			at:      came.at + slower,
			conn:    c,
			request: *r,
			raw:     bytes.Clone(c.raw),
		})
		return
	}
	c.finishRound(r, c.raw, lo, came.at)
}

// finishRound continues a request whose round trip has ended: with the next round trip, or with its
// outcome.
func (c *Conn) finishRound(r *request, raw []byte, lo, at int64) {
	if r.follows && r.reply.Kind != resp.Error && c.up && c.sendNextRound(r, raw, at) {
		return
	}
	c.landed(r)
	c.loop.settle(c, r, lo, at)
}

// landed notes that a request is no longer in flight.
func (c *Conn) landed(r *request) {
	c.loop.inFlight--
	c.loop.flying[r.Op]--
	c.pool.flying--
}

// noteReply adds a reply to the request at the front and reports whether its round trip has ended.
func (c *Conn) noteReply(r *request, reply *resp.Reply) bool {
	if r.reply.Kind != resp.Error {
		r.reply.Kind, r.reply.Class = reply.Kind, reply.Class
		if reply.Kind == resp.Error {
			c.loop.run.Samples.Note(reply.Class, c.scan.Message())
		}
		if reply.Kind == resp.Error && reply.Class == record.ClassMoved {
			r.redirection = route.ParseRedirection(c.scan.Message(), c.address)
		}
	}
	r.reply.Bytes += reply.Bytes
	r.replies--
	r.asking = r.asked
	return r.replies == 0
}

// sendNextRound writes a request's next round trip; false if there is none: its replies arrived at
// the instant at.
func (c *Conn) sendNextRound(r *request, raw []byte, at int64) bool {
	l := c.loop
	l.values = l.values[:0]
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		v, err := resp.ReadValue(in)
		if err != nil {
			break
		}
		l.values = append(l.values, v)
	}
	out, replies := l.follower.Next(l.out[:0], &r.Request, l.values, l.partialFor(at).Tallies)
	if l.out = out; replies == 0 {
		return false
	}
	r.replies = int32(replies)
	l.out = r.ask(out, 0)
	*c.flight.push() = *r
	c.write(l.out)
	return true
}
