package loop

import (
	"context"
	"net"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Conn is one of the load's connections. It outlives its sockets: when one breaks, conn dials a new
// one. Only its loop's goroutine accesses it.
type Conn struct {
	loop   *Loop
	pool   *pool
	Number int64 // over all pods; selects the address that is dialled first
	index  int32 // in the loop
	Depth  int   // requests in flight at most

	// generation counts the sockets, so that events of a previous socket can be recognized.
	generation   int32
	attempt      int32 // counts the dials in the same way
	up           bool
	replacing    bool // a dial is in progress although it is up, as its server is silent
	free         bool // it is in the pool's list of connections that can send
	renewPending bool // replace the socket as soon as nothing is in flight
	address      string
	stopDial     context.CancelFunc
	signs
	channel

	scan   resp.Scanner
	flight queue  // written, without an outcome, in order
	held   int    // replies that were received and are being delayed
	raw    []byte // received part of a reply that is read as a value
}

// signs are when a connection was made, written and heard, nanoseconds since the start.
type signs struct {
	born int64 // when it was made
	// when a reply arrived that is no outcome: to the greeting, or a late one; 0 after an outcome, and
	// if not known
	alive int64
	heard int64 // when data was last received
	// when the last request that it wrote was surely on its way: at the end of that wake-up
	onWay      int64
	silentFrom int64 // heard when the dial of the replacement began
	renewed    int64 // when it was last replaced because its server was no primary
}

// channel is what a connection reads and writes.
type channel struct {
	socket  socket.FD
	secured *socket.TLS  // reads and writes socket where the connection uses TLS
	pump    *socket.Pump // replaces socket where there is no epoll
	unsent  []byte       // not yet accepted by the kernel
}

// Adopt starts to send load over an established connection.
func (c *Conn) Adopt(stands dial.Line) {
	l := c.loop
	if c.stopDial != nil {
		c.stopDial()
	}
	c.generation++
	c.attempt++
	c.scan.Reset()
	c.unsent, c.raw = c.unsent[:0], c.raw[:0]
	c.pool.up++
	c.up = true
	c.renewPending = false
	c.replacing = false
	c.address = stands.Address
	c.born = l.run.Now()
	c.heard, c.alive = c.born, l.look.greeted(&l.run.Clock, stands.Conn, c.born)
	l.run.Connections.Add(1)
	if c.takeSocket(stands.Conn) {
		c.release()
		return
	}
	generation := c.generation
	l.pumped = true
	c.pump = socket.NewPump(stands.Conn, func(p *socket.Piece, err error) {
		l.notify(note{
			conn:       c,
			generation: generation,
			piece:      p,
			err:        err,
		})
	})
	c.release()
}

// takeSocket takes the socket of a connection from Go's poller to the loop's; false if that is not
// possible.
func (c *Conn) takeSocket(stands net.Conn) (ok bool) {
	c.pump = nil
	c.socket, c.secured, ok = socket.Take(stands, c.loop.poll, socket.Event{
		Number:     c.index,
		Generation: c.generation,
	})
	return ok
}

// inFlight is since when a request with a reply was surely on its way; 0 = not known. Of others
// than those of one round trip some server was heard meanwhile; where another goroutine writes, a
// stall may have kept it from that.
func (c *Conn) inFlight(r *request) int64 {
	if c.onWay < r.sent || r.hops > 0 || r.tries > 0 || r.follows ||
		c.pump != nil && c.loop.stalledUntil >= r.sent {
		return 0
	}
	return c.onWay
}

// send takes as many requests from the pool's queue as may be in flight, and writes them with one
// system call.
func (c *Conn) send() {
	l := c.loop
	at := l.stamp()
	out := l.out[:0]
	for c.pool.waiting.count > 0 && c.flight.count < c.Depth {
		r := c.flight.push()
		*r = *c.pool.waiting.at(0)
		c.pool.waiting.pop()
		l.queued--
		before := len(out)
		out = l.encode(out, r)
		l.inFlight++
		l.flying[r.Op]++
		c.pool.flying++
		if r.sent == 0 {
			r.sent = at
			l.recordSent(r, at, len(out)-before)
		}
	}
	l.out = out
	c.write(out)
	l.wrote = append(l.wrote, c)
	if l.multiplexed {
		c.release()
	}
}

// flush writes what the kernel did not accept earlier.
func (c *Conn) flush() {
	if len(c.unsent) == 0 || c.pump != nil {
		return
	}
	n, err := c.socket.Write(c.unsent)
	if err == socket.ErrAgain { //nolint:errorlint // a bare errno, on the hot path
		c.loop.eager()
		return
	}
	if err != nil {
		c.lose(err)
		return
	}
	c.loop.eager()
	c.unsent = c.unsent[:copy(c.unsent, c.unsent[n:])]
}

// release puts the connection into the pool's list of connections that can send, or replaces it if
// it has reached its maximum age.
func (c *Conn) release() {
	switch {
	case !c.up || c.free:
	case c.flight.count+c.held == 0 &&
		(c.renewPending || c.loop.maxAge > 0 && c.loop.at-c.born > c.maxAge()):
		c.renew()
	case c.flight.count+c.held == 0 ||
		c.loop.multiplexed && c.flight.count < c.Depth && !c.renewPending:
		c.free = true
		c.pool.free.push(c)
	}
}

// maxAge is up to a tenth shorter for some connections, so that not all of them are replaced at
// once.
func (c *Conn) maxAge() int64 {
	return c.loop.maxAge - c.loop.maxAge/10*(c.Number%16)/16
}

// renew replaces the connection, immediately or once nothing is in flight.
func (c *Conn) renew() {
	if c.renewPending = true; c.flight.count+c.held > 0 {
		if c.replacing { // perhaps by a connection to an outdated address
			c.connect(c.loop.dialing)
		}
		return
	}
	c.disconnect()
	if !c.loop.closing() {
		c.connect(c.loop.dialing)
	}
}

func (c *Conn) write(p []byte) {
	c.loop.invalidateClock() // a system call takes time
	if c.pump != nil {
		c.pump.Write(p)
		return
	}
	if c.secured != nil {
		var err error
		if p, err = c.secured.Seal(p); err != nil {
			c.lose(err)
			return
		}
	}
	if len(c.unsent) > 0 {
		c.unsent = append(c.unsent, p...)
		return
	}
	n, err := c.socket.Write(p)
	switch {
	case err == socket.ErrAgain: //nolint:errorlint // a bare errno, on the hot path
		c.unsent = append(c.unsent, p...)
		c.loop.eager()
	case err != nil:
		c.lose(err)
	case n < len(p):
		c.unsent = append(c.unsent, p[n:]...)
		c.loop.eager()
	}
}

// lose closes the connection: the outcome of requests in flight is unknown. A new connection is
// dialled immediately.
func (c *Conn) lose(err error) {
	if !c.up {
		return
	}
	c.breakOff(dial.LossClass(err))
	c.loop.run.Routes.Refresh("a connection broke")
	if !c.loop.closing() {
		c.connect(c.loop.dialing)
	}
}

// breakOff closes the connection: the outcome of requests in flight is unknown.
func (c *Conn) breakOff(class record.Class) {
	l := c.loop
	c.disconnect()
	at := l.stamp()
	l.eager()
	if c.flight.count > 0 {
		l.gaps.Lost(c.pool.place.Shard, l.look.since)
	}
	for c.flight.count > 0 {
		r := *c.flight.at(0)
		c.flight.pop()
		if r.expired {
			continue
		}
		c.landed(&r)
		l.recordUnknown(c.pool, &r, at, class)
		l.ended(&r, at)
	}
}

// connect dials in the background until a connection is established or ctx ends, and notifies the
// loop of each result. A dial in progress is cancelled. A connection that is up stays so until its
// replacement is established.
func (c *Conn) connect(ctx context.Context) {
	if c.stopDial != nil {
		c.stopDial()
	}
	ctx, c.stopDial = context.WithCancel(ctx)
	c.attempt++
	c.replacing, c.silentFrom = c.up, c.heard
	l, attempt := c.loop, c.attempt
	dialer := l.run.Routes.DialerTo(c.pool.place, c.Number)
	grace := time.Duration(0)
	// established cannot read what arrived on the silent connection just then: the pump must pass it
	// on first
	if c.replacing && c.pump != nil {
		grace = time.Duration(lookEvery)
	}
	go func() {
		stands, err := dialer.Connect(ctx, func(err error, began time.Time) {
			at := l.run.Now()
			if redis.IsOutOfFiles(err) { // no server says so: the sample is this process's own
				l.run.Samples.Note(dial.ClassOf(err), []byte(dial.Explain(err).Message))
			}
			l.notify(note{
				conn:    c,
				attempt: attempt,
				refused: true,
				class:   dial.ClassOf(err),
				at:      at,
				waited:  at - l.run.At(began),
			})
		})
		if err != nil {
			return
		}
		time.Sleep(grace)
		if !l.notify(note{
			conn:    c,
			attempt: attempt,
			line:    stands,
		}) {
			_ = stands.Close()
		}
	}()
}

func (c *Conn) disconnect() {
	if !c.up {
		return
	}
	c.up = false
	c.pool.up--
	c.generation++
	c.loop.run.Connections.Add(-1)
	switch {
	case c.pump != nil:
		c.pump.Close()
	case c.secured != nil:
		c.secured.Close()
	default:
		c.socket.Close()
	}
}
