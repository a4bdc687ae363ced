package probe

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/redis/resp"
)

// idleProbes is how many idle connections a probe keeps for the next arrivals.
const idleProbes = 4

// lastLook is for how long a probe that woke up late looks once more for a reply, nanoseconds.
const lastLook = int64(time.Millisecond)

// probeConn is a connection of the probe, with one request in flight or none.
type probeConn struct {
	prober  *Prober
	number  int32
	address string
	socket  socket.FD
	secured *socket.TLS  // reads and writes socket where the connection uses TLS
	pump    *socket.Pump // replaces socket where there is no epoll
	closed  bool
	unsent  []byte // not yet accepted by the kernel
	scan    resp.Scanner

	arrival  *arrival // nil = it is idle
	asking   bool     // the reply to ASKING comes first
	deadline int64    // of the reply
	looked   bool     // the deadline was moved by lastLook
}

// adopt takes a connection that was dialled.
func (p *Prober) adopt(line dial.Line) *probeConn {
	p.dialled++
	c := &probeConn{
		prober:  p,
		number:  p.dialled,
		address: line.Address,
	}
	var ok bool
	c.socket, c.secured, ok = socket.Take(line.Conn, p.poll, socket.Event{Number: c.number})
	if !ok {
		c.pump = socket.NewPump(line.Conn, func(piece *socket.Piece, err error) {
			p.notify(note{
				conn:  c,
				piece: piece,
				err:   err,
			})
		})
	}
	p.byNumber[c.number] = c
	return c
}

// pumped takes what a pump has read.
func (p *Prober) pumped(n *note) {
	switch c := n.conn; {
	case c.closed:
	case n.err != nil:
		p.lose(c, n.err)
	default:
		p.got(c, n.piece.Bytes[:n.piece.Length], n.piece.Arrived)
	}
}

// dialEnded sends the arrival that waited for a dial, or records that it failed.
func (p *Prober) dialEnded(n *note) {
	p.waiting--
	if n.err != nil {
		p.unsent(n.arrival, n.err)
		return
	}
	p.send(p.adopt(n.line), n.arrival)
}

// dial dials for an arrival, within its requestTimeout.
func (p *Prober) dial(ctx context.Context, d *dial.Dialer, a *arrival) {
	p.waiting++
	greeting := p.greeting
	go func() {
		ctx, cancel := context.WithDeadline(ctx,
			p.run.Start.Add(time.Duration(a.due+p.run.Timeout)))
		defer cancel()
		line, err := d.Dial(ctx, 0, greeting)
		p.notify(note{
			prober:  p,
			arrival: a,
			line:    line,
			err:     err,
		})
	}()
}

// write writes as much as the kernel accepts.
func (p *Prober) write(c *probeConn, out []byte) {
	switch {
	case c.pump != nil:
		c.pump.Write(out)
		return
	case c.secured != nil:
		var err error
		if out, err = c.secured.Seal(out); err != nil {
			p.lose(c, err)
			return
		}
	}
	c.unsent = append(c.unsent, out...)
	p.flush(c)
}

// flush writes what the kernel did not accept before.
func (p *Prober) flush(c *probeConn) {
	if len(c.unsent) == 0 {
		return
	}
	n, err := c.socket.Write(c.unsent)
	switch {
	case err == socket.ErrAgain: //nolint:errorlint // a bare errno
	case err != nil:
		p.lose(c, err)
	default:
		c.unsent = c.unsent[:copy(c.unsent, c.unsent[n:])]
	}
}

// receive reads all that has arrived.
func (p *Prober) receive(c *probeConn) {
	p.flush(c)
	if c.secured != nil {
		c.secured.Begin(true)
	}
	for !c.closed {
		n, stamp, err := p.read(c)
		switch {
		case err == socket.ErrAgain: //nolint:errorlint // a bare errno
			return
		case err != nil:
			p.lose(c, err)
		case n == 0:
			p.lose(c, io.EOF)
		default:
			p.got(c, p.in[:n], stamp)
		}
	}
}

func (p *Prober) read(c *probeConn) (n int, stamp int64, err error) {
	if c.secured != nil {
		return c.secured.Read(p.in[:])
	}
	return p.receiver.Read(c.socket, p.in[:])
}

// got takes what a connection has received; stamp is the kernel's of the last byte, 0 = none.
func (p *Prober) got(c *probeConn, in []byte, stamp int64) {
	for len(in) > 0 && !c.closed {
		used, reply, done, err := c.scan.Next(in)
		in = in[used:]
		switch {
		case err != nil:
			p.lose(c, err)
		case !done:
			return
		case c.asking:
			c.asking = false
		case c.arrival == nil:
			p.lose(c, dial.ErrUnexpectedReply)
		default: // the stamp is that of the last byte: of a push message, if one follows
			p.replied(c, p.land(c), reply, stamp, len(in) == 0)
		}
	}
}

// land notes that the request of a connection is no longer in flight.
func (p *Prober) land(c *probeConn) *arrival {
	a := c.arrival
	if i := slices.Index(p.flying, c); i >= 0 {
		p.flying = slices.Delete(p.flying, i, i+1)
	}
	c.arrival, c.asking = nil, false
	return a
}

// lose closes a broken connection, and the idle ones to the same server. The next arrival dials a
// new one.
func (p *Prober) lose(c *probeConn, err error) {
	if c.closed {
		return
	}
	p.drop(c)
	for _, idle := range slices.Clone(p.idle) {
		if idle.address == c.address {
			p.drop(idle)
		}
	}
	if c.arrival != nil {
		p.broken(p.land(c), err)
	}
}

// drop closes a connection.
func (p *Prober) drop(c *probeConn) {
	c.closed = true
	delete(p.byNumber, c.number)
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	switch {
	case c.pump != nil:
		c.pump.Close()
	case c.secured != nil:
		c.secured.Close()
	default:
		c.socket.Close()
	}
}

// expire ends the requests that have exceeded requestTimeout, and returns when it must be called
// again. If this process did not run when the time was over, there may be a reply all the same.
func (p *Prober) expire(now int64) int64 {
	for len(p.flying) > 0 && p.flying[0].deadline <= now {
		c := p.flying[0]
		if now-c.deadline <= clock.LateWake || c.looked {
			p.lose(c, os.ErrDeadlineExceeded)
			continue
		}
		c.looked, c.deadline = true, now+lastLook
		slices.SortStableFunc(p.flying, func(a, b *probeConn) int {
			return cmp.Compare(a.deadline, b.deadline)
		})
	}
	if len(p.flying) == 0 {
		return clock.Never
	}
	return p.flying[0].deadline
}

// abandon ends what is in flight: the run was aborted.
func (p *Prober) abandon() {
	for len(p.flying) > 0 {
		p.lose(p.flying[0], os.ErrDeadlineExceeded)
	}
}

// takeIdle returns an idle connection; nil if there is none.
func (p *Prober) takeIdle() *probeConn {
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !p.leadsElsewhere(c) {
			return c
		}
		p.drop(c)
	}
	return nil
}

func (p *Prober) putIdle(c *probeConn) {
	if len(p.idle) >= idleProbes {
		p.drop(c)
		return
	}
	p.idle = append(p.idle, c)
}

// begin takes the connection of Establish.
func (p *Prober) begin() {
	if p.first != nil {
		p.putIdle(p.adopt(*p.first))
		p.first = nil
	}
}

// end closes the idle connections: the others are none any more.
func (p *Prober) end() {
	for len(p.idle) > 0 {
		p.drop(p.idle[0])
	}
}
