package loop

import (
	"bytes"
	"math"

	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/redis/resp"
)

// closedLoop is the demand of the virtual users of one event loop.
type closedLoop struct {
	*pace.Users
	loop        *Loop
	batch       int // requests of a turn
	activeTurns int // users whose turn is in progress
	exhausted   bool
}

func newClosedLoop(l *Loop, number, loops int64) *closedLoop {
	return &closedLoop{
		Users: pace.NewUsers(&l.run.Work, number, loops),
		loop:  l,
		batch: l.run.Plan.Client.Pipeline,
	}
}

func (d *closedLoop) issue(now int64) int64 {
	for len(d.Idle) > 0 && d.Idle[0].Due <= now {
		t := d.Idle.Pop()
		if d.Active(t, now) {
			d.begin(t)
		} else {
			d.Schedule(t, now) // its stage ended in the meantime
		}
	}
	next := int64(math.MaxInt64)
	if d.loop.run.Length > now {
		next = d.loop.run.Length // the end of the run
	}
	if len(d.Idle) > 0 {
		next = min(next, d.Idle[0].Due)
	}
	return next
}

func (d *closedLoop) ended(r *request, at int64) {
	t := r.turn
	if t.Left--; t.Left > 0 {
		return
	}
	d.activeTurns--
	next := max(at+d.Think, t.NotBefore)
	if next <= at && d.Active(t, at) {
		d.begin(t)
	} else {
		d.Schedule(t, next)
	}
}

// begin queues the user's next turn.
func (d *closedLoop) begin(t *pace.Turn) {
	l := d.loop
	if l.run.Over(l.at) {
		d.exhausted = true
		return
	}
	if t.Left = l.run.Budget.Claim(d.batch); t.Left == 0 {
		d.exhausted = true
		return
	}
	d.activeTurns++
	for range t.Left {
		if l.Book != nil {
			if l.issued++; l.run.IsLedgerWrite(l.issued) && l.enqueueLedger(t.User, -1, t) {
				continue
			}
		}
		l.enqueue(l.pick(t.User), t.User, -1, t)
	}
}

// pick returns the operation of a user's next request.
func (l *Loop) pick(user int64) int {
	if l.actor != nil {
		return l.actor.Turn(user, l.at)
	}
	return l.run.Pick(l.source, l.at)
}

// over also drops the requests that are still queued when the run's length is reached.
func (d *closedLoop) over(now int64) bool {
	if d.loop.run.Over(now) {
		d.loop.dropQueued()
		return true
	}
	return d.activeTurns == 0 && (d.exhausted || len(d.Idle) == 0)
}

// request is one request, from its creation until its outcome is known.
type request struct {
	workload.Request
	due     int64      // open loop: when it was due; closed loop: -1
	sent    int64      // when it was first written, 0 = not yet
	turn    *pace.Turn // closed loop
	reply   resp.Reply // combined reply so far; an error is kept
	replies int32      // of the current round trip that are still missing
	follows bool       // its replies are read as values, and may lead to further round trips
	asked   bool       // ASKING precedes each command
	asking  bool       // the next reply is that to ASKING
	hops    int8       // how often it was redirected
	tries   int32      // how often it was retried
	expired bool       // timed out: its outcome is recorded, and its reply will be discarded
	ledger  int64      // number of the ledger write, from 1; 0 = not a ledger write

	redirection *route.Redirection // in the error reply; nil = none
}

// queue is a FIFO queue of requests in a ring buffer that grows. The zero value is an empty queue.
type queue struct {
	ring  []request
	head  int
	count int
}

// push appends a request and returns it for the caller to fill; it is valid until the next push.
func (q *queue) push() *request {
	if q.count == len(q.ring) {
		q.grow()
	}
	r := &q.ring[(q.head+q.count)&(len(q.ring)-1)]
	q.count++
	return r
}

// pop removes the first request; the result of at(0) stays readable until the next push.
func (q *queue) pop() {
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
}

func (q *queue) clear() {
	q.head, q.count = 0, 0
}

func (q *queue) grow() {
	ring := make([]request, max(4, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
}

// at is the i-th request from the front, 0 <= i < count.
func (q *queue) at(i int) *request {
	return &q.ring[(q.head+i)&(len(q.ring)-1)]
}

var replyNone resp.Reply

// ask puts ASKING before each of the request's commands, which begin at out[begin:], if the request
// needs it.
func (r *request) ask(out []byte, begin int) []byte {
	if r.asking = r.asked; !r.asked {
		return out
	}
	return route.AppendAsking(out[:begin], bytes.Clone(out[begin:]))
}
