// Package loop sends a load from event loops: each serves its connections in one goroutine, and
// allocates nothing and takes no lock per request.
package loop

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Loop is one event loop: it serves an equal part of the pod's connections and of its users or
// arrivals in one goroutine. It takes no lock and allocates nothing per request. Other goroutines
// (dials, pumps) report to it by notes.
type Loop struct {
	run      *load.State
	poll     socket.Poller
	source   workload.Source
	follower workload.Follower // nil if no operation has several round trips
	actor    workload.Actor    // nil if users do not decide by what became of their requests
	demand   demand
	stripe   *interval.Stripe
	gaps     gaps.Logs
	Book     *ledger.Book // nil if there is no ledger
	dialing  context.Context

	settings
	destinations
	wake
	traffic
	postponed
	buffers
	mailbox
}

// settings do not change once the loop is served.
type settings struct {
	connsPerPool  int64
	depth         func(i int64) int // requests in flight on connection i of the pod at most
	first, stride int64             // the loop's connections have the numbers first, first+stride, ...
	readsReplicas bool              // reads may go to replicas
	multiplexed   bool              // requests of several users are in flight on one connection
	maxAge        int64             // of a connection, nanoseconds; 0 = none
	addedLatency  int64             // to each round trip, nanoseconds
	// how often the loop checks for requests that have exceeded requestTimeout, nanoseconds
	scanEvery int64
}

// destinations are where requests go.
type destinations struct {
	layout    *topology.Map // as this loop knows it
	pools     []*pool
	primaries []*pool // by shard
	replicas  []*pool // by shard; nil = none yet
	conns     []*Conn // of all pools
	rotation  uint64  // counter for round-robin choices
}

// wake is the state of the current wake-up. The stripe is locked while the loop is awake.
type wake struct {
	partial    *interval.Partial
	partialEnd int64
	at         int64         // the last reading of the clock
	read       bool          // no system call was made since
	batch      batch         // successes that are not recorded yet
	receipts   gaps.Receipts // of this wake-up
	wrote      []*Conn       // in this wake-up
	lastOK     int64
	nextScan   int64
	// stalledUntil is when the last stall that the loop noticed was over.
	stalledUntil int64
	// other goroutines write: what is in flight need not have been written when the process is stopped
	pumped     bool
	turns      socket.Turns
	stamped    bool  // the kernel has stamped what was read last
	eagerUntil int64 // see eager
	look       look
}

// traffic counts requests.
type traffic struct {
	inFlight, queued int
	flying           []int32 // requests in flight by operation
	ending           int64   // after an abort: when requests in flight are abandoned; 0 = no abort
	unrecorded       uint64  // requests that ended while recording is disabled
	issued           int64   // requests of a closed loop so far; selects the ledger writes
}

// postponed are the requests that the client holds back.
type postponed struct {
	held, retries delays
	released      []delayed
}

// buffers are kept between wake-ups, so that none is allocated.
type buffers struct {
	in, out  []byte
	receiver socket.Receiver
	values   []resp.Value
	drawn    request
}

// mailbox holds the notes from other goroutines.
type mailbox struct {
	notes struct {
		mu     sync.Mutex
		list   []note
		closed bool
	}
	drained []note
}

// readBuffer is the size of the read buffer that all connections of a loop share, in bytes.
const readBuffer = 64 << 10

// note is a message to the loop from another goroutine: a connection was established, a dial
// failed, or a pump has read data.
type note struct {
	conn *Conn

	line dial.Line

	refused    bool
	class      record.Class
	at, waited int64

	attempt    int32 // of a dial
	generation int32 // of a pump
	piece      *socket.Piece
	err        error
}

// outdated reports whether the note is about a previous dial or socket.
func (n *note) outdated() bool {
	if n.refused || n.line.Conn != nil {
		return n.attempt != n.conn.attempt
	}
	return n.generation != n.conn.generation
}

// demand decides which requests a loop sends and when.
type demand interface {
	// issue queues the requests that are due at the instant now, and returns when it must be called
	// again.
	issue(now int64) (next int64)
	// ended is called when a request of a closed loop has ended, at the instant at.
	ended(r *request, at int64)
	// over reports whether nothing more will be queued, even if requests in flight end.
	over(now int64) bool
}

// Open creates the loop's poller.
func (l *Loop) Open() (err error) {
	l.notes.mu.Lock() // the tracker calls nudge from its own goroutine
	defer l.notes.mu.Unlock()
	if l.poll == nil {
		l.poll, err = l.run.NewPoller()
	}
	return err
}

// Nudge wakes the loop. A loop that is not open yet checks for changes when it starts.
func (l *Loop) Nudge() {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	if l.poll != nil && !l.notes.closed {
		l.poll.Wake()
	}
}

// notify delivers a note to the loop; false if the loop has ended.
func (l *Loop) notify(n note) bool {
	l.notes.mu.Lock()
	defer l.notes.mu.Unlock()
	if l.notes.closed {
		return false
	}
	l.notes.list = append(l.notes.list, n)
	if len(l.notes.list) == 1 {
		l.poll.Wake()
	}
	return true
}

// Bounds of scanEvery, which is a twentieth of requestTimeout.
const (
	scanShortest = int64(time.Millisecond)
	scanLongest  = int64(10 * time.Millisecond)
)

// Serve runs the loop until its demand is over and nothing is in flight.
func (l *Loop) Serve(ctx context.Context) {
	var cancel context.CancelFunc
	l.dialing, cancel = context.WithCancel(ctx)
	defer cancel()
	defer l.Close()
	defer l.flushUnrecorded()
	l.nextScan = math.MaxInt64
	l.invalidateClock()
	for _, c := range l.conns {
		if !c.up {
			c.connect(l.dialing)
		}
		c.born = 0 // it was connected before the start, from which ages count
	}
	var ready []socket.Event
	slept := false
	for {
		l.wakeUp()
		l.drainNotes()
		if slept { // what is due goes first: what has arrived is stamped
			l.demand.issue(l.at)
			l.pump()
			ready = l.poll.Wait(l.at, l.at)
			l.look.looked(len(ready))
			l.drainNotes() // the look may have been the wake-up for one
		}
		for _, e := range ready {
			c := l.conns[e.Number]
			if c.up && c.generation == e.Generation {
				c.receive(e.Ended)
				c.pool.pump()
			}
		}
		if m := l.run.Routes.Current(); m != l.layout {
			l.follow(m)
		}
		now := l.stamp()
		l.runDelayed(now)
		next := l.demand.issue(now)
		l.pump()
		l.expire(now)
		over := l.demand.over(l.at)
		done := l.inFlight == 0 && (l.closing() || over && l.queued == 0)
		l.sleep()
		if done {
			return
		}
		ready, slept = l.rest(next)
	}
}

// rest waits until there is something to do, at the latest when the next request is due, and returns
// the sockets that can be read. With slept it did not look at them.
func (l *Loop) rest(next int64) (ready []socket.Event, slept bool) {
	until := min(next, l.nextWake(), l.held.next(), l.retries.next())
	l.turns.Yield(l.at)
	switch patient := l.patient(next); {
	case !patient:
		ready = l.poll.Wait(l.look.entered, until)
	case l.poll.Sleep(l.look.entered, until):
		slept = true
	default: // a connection has ended
		ready = l.poll.Wait(l.look.entered, l.look.entered)
	}
	l.look.returned(len(ready), until)
	return ready, slept
}

// flushUnrecorded adds the requests that were only counted to the last interval.
func (l *Loop) flushUnrecorded() {
	if l.unrecorded > 0 {
		s, _ := l.stripe.Lock(l.run.Now())
		s.Ops[0].Sent, s.Ops[0].OK = l.unrecorded, l.unrecorded
		l.stripe.Unlock()
	}
}

// wakeUp reads the clock and locks the loop's stripe for recording.
func (l *Loop) wakeUp() {
	l.at, l.read = l.run.Now(), true
	l.look.woke(&l.run.Clock, l.at)
	l.partial, l.partialEnd = l.stripe.Lock(l.at)
	l.noteStall(l.look.lateSince, l.at)
	if l.look.lateSince > 0 && socket.Bounded {
		l.gaps.Stalled(l.look.lateSince, l.at, l.inFlight > 0 && !l.pumped)
	}
}

// sleep passes the wake-up's receipts to the gap logs and unlocks the stripe.
func (l *Loop) sleep() {
	l.recordBatch()
	if len(l.receipts) > 0 {
		l.gaps.Add(l.receipts)
		l.receipts = l.receipts[:0]
	}
	l.look.entered = l.run.Now()
	for _, c := range l.wrote {
		c.onWay = l.look.entered
	}
	l.wrote = l.wrote[:0]
	if l.look.entered-l.look.wokeAt > stalledAwake {
		l.noteStall(l.look.wokeAt, l.look.entered)
	}
	if socket.Bounded {
		l.noteWaiting(l.look.entered)
	}
	l.stripe.Unlock()
	l.partial = nil
}

// nextWake is when the loop must wake up even without an event.
func (l *Loop) nextWake() int64 {
	if l.ending > l.at {
		return l.ending
	}
	if l.ending > 0 { // only delayed replies are left
		return clock.Never
	}
	if l.inFlight == 0 && l.queued == 0 {
		return math.MaxInt64
	}
	if l.inFlight > 0 && l.at-l.lastOK > gaps.Floor {
		return min(l.nextScan, l.at+lookEvery)
	}
	return l.nextScan
}

// drainNotes handles the notes from other goroutines.
func (l *Loop) drainNotes() {
	l.notes.mu.Lock()
	l.drained, l.notes.list = l.notes.list, l.drained[:0]
	l.notes.mu.Unlock()
	for i := range l.drained {
		n := &l.drained[i]
		c := n.conn
		switch {
		case n.outdated():
			if n.line.Conn != nil {
				_ = n.line.Close()
			}
		case n.line.Conn != nil:
			c.established(n.line)
		case n.refused:
			l.refuse(c, n)
		case n.err != nil:
			c.lose(n.err)
		default:
			l.invalidateClock()
			c.take(n.piece.Bytes[:n.piece.Length], n.piece.Arrived)
		}
		if n.piece != nil {
			n.piece.Release()
		}
		*n = note{}
	}
	if len(l.drained) > 0 {
		l.pump()
	}
}

// invalidateClock makes the next stamp read the clock.
func (l *Loop) invalidateClock() {
	l.read = false
}

func (l *Loop) pump() {
	for _, p := range l.pools {
		p.pump()
	}
}

// refuse fails the next queued request of a connection's pool: the connection could not be
// established.
func (l *Loop) refuse(c *Conn, n *note) {
	p := c.pool
	if c.up || p.waiting.count == 0 || l.closing() {
		return
	}
	r := *p.waiting.at(0)
	p.waiting.pop()
	l.queued--
	waited := n.waited
	if r.due >= 0 {
		waited = n.at - r.due
	}
	l.gaps.Refused(p.place.Shard, n.at-n.waited)
	if l.retryLater(&r, l.stamp()) {
		return
	}
	s := l.stripe.PartialAt(n.at)
	s.Fail(r.Op, n.at, n.class, waited, 0)
	l.failed(s, p.place.Shard)
	l.account(&r, ledger.Failed, n.at)
	l.ended(&r, l.stamp())
}

// stamp returns the current time. The clock is read only after a system call, as nothing else takes
// long.
func (l *Loop) stamp() int64 {
	if !l.read {
		l.at, l.read = l.run.Now(), true
		if l.at >= l.partialEnd {
			l.recordBatch()
			l.stripe.Unlock()
			l.partial, l.partialEnd = l.stripe.Lock(l.at)
		}
	}
	return l.at
}

// closing reports whether the run was aborted: nothing more is sent.
func (l *Loop) closing() bool {
	return l.ending > 0
}

// encode appends the request's bytes.
func (l *Loop) encode(out []byte, r *request) []byte {
	begin := len(out)
	if r.ledger > 0 {
		r.replies = 1
		out = l.Book.Append(out, int(r.Key), uint64(r.ledger-1))
	} else {
		var replies int
		out, replies = l.source.Append(out, &r.Request)
		r.replies = int32(replies)
	}
	return r.ask(out, begin)
}

// enqueue adds a new request to the queue of the pool that will send it.
func (l *Loop) enqueue(op int, user, due int64, t *pace.Turn) {
	l.queued++
	if len(l.pools) == 1 {
		l.draw(l.pools[0].waiting.push(), op, user, due, t)
		return
	}
	l.draw(&l.drawn, op, user, due, t)
	*l.route(&l.drawn).waiting.push() = l.drawn
}

func (l *Loop) draw(r *request, op int, user, due int64, t *pace.Turn) {
	*r = request{due: due, turn: t}
	r.User = user
	l.source.Draw(op, &r.Request)
	r.follows = l.follower != nil && l.follower.Follows(op)
}

// Close closes the loop's connections. Later notes are rejected.
func (l *Loop) Close() {
	l.notes.mu.Lock()
	closed, late := l.notes.closed, l.notes.list
	l.notes.closed = true
	l.notes.mu.Unlock()
	if closed {
		return
	}
	for i := range late {
		if late[i].line.Conn != nil {
			_ = late[i].line.Close()
		}
	}
	for _, c := range l.conns {
		c.disconnect()
	}
	if l.poll != nil {
		l.poll.Close()
	}
}
