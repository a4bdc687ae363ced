package engine

import (
	"math"

	"github.com/redquake/redquake/internal/plan"
)

// users are virtual users. A user sends one batch per turn; after the batch's last reply it pauses for the think time, then its next turn is due.
type users struct {
	level plan.Schedule // how many are active, over all pods
	flat  int64         // instant after which the level is constant
	think int64
	idle  turnHeap // ordered by due time
}

// closedLoop is the demand of the virtual users of one event loop.
type closedLoop struct {
	*users
	loop        *loop
	batch       int // requests of a turn
	activeTurns int // users whose turn is in progress
	exhausted   bool
}

func newClosedLoop(l *loop, number, loops int64) *closedLoop {
	return &closedLoop{users: newUsers(l.run, number, loops), loop: l, batch: l.run.plan.Client.Pipeline}
}

// newUsers returns part number of parts of the pod's users. Users are assigned round-robin, first to pods, then to parts, so that a ramp-up is
// spread evenly.
func newUsers(r *runState, number, parts int64) *users {
	p := r.plan
	u := &users{level: plan.NewSchedule(p.Shape), think: int64(p.Shape.ThinkTime)}
	u.flat = u.level.FlatFrom()
	mine := share(int64(math.Ceil(u.level.Peak())), int64(p.Pods), int64(r.pod))
	for i := number; i < mine; i += parts {
		u.schedule(&turn{user: i*int64(p.Pods) + int64(r.pod)}, 0)
	}
	return u
}

func (d *closedLoop) issue(now int64) int64 {
	for len(d.idle) > 0 && d.idle[0].due <= now {
		t := d.idle.pop()
		if d.active(t, now) {
			d.begin(t)
		} else {
			d.schedule(t, now) // its stage ended in the meantime
		}
	}
	next := int64(math.MaxInt64)
	if d.loop.run.length > now {
		next = d.loop.run.length // the end of the run
	}
	if len(d.idle) > 0 {
		next = min(next, d.idle[0].due)
	}
	return next
}

func (d *closedLoop) ended(r *request, at int64) {
	t := r.turn
	if t.left--; t.left > 0 {
		return
	}
	d.activeTurns--
	if d.think == 0 && d.active(t, at) {
		d.begin(t)
	} else {
		d.schedule(t, at+d.think)
	}
}

// schedule makes the user's next turn due at the instant at, or when the user is next active, whichever is later.
func (u *users) schedule(t *turn, at int64) {
	if t.due = u.level.WhenAbove(float64(t.user), at); t.due != math.MaxInt64 {
		u.idle.push(t)
	}
}

// active reports whether the user is part of the load at the instant at.
func (u *users) active(t *turn, at int64) bool {
	if at >= u.flat {
		return u.level.Final() > float64(t.user)
	}
	return u.level.WhenAbove(float64(t.user), at) <= at
}

// begin queues the user's next turn.
func (d *closedLoop) begin(t *turn) {
	l := d.loop
	if l.run.over(l.at) {
		d.exhausted = true
		return
	}
	if t.left = l.run.budget.claim(d.batch); t.left == 0 {
		d.exhausted = true
		return
	}
	d.activeTurns++
	for range t.left {
		if l.book != nil {
			if l.issued++; l.run.isLedgerWrite(l.issued) && l.enqueueLedger(t.user, -1, t) {
				continue
			}
		}
		l.enqueue(l.run.pick(l.source, l.at), t.user, -1, t)
	}
}

// over also drops the requests that are still queued when the run's length is reached.
func (d *closedLoop) over(now int64) bool {
	if d.loop.run.over(now) {
		d.loop.dropQueued()
		return true
	}
	return d.activeTurns == 0 && (d.exhausted || len(d.idle) == 0)
}

// turnHeap is a binary min-heap of users, ordered by due time.
type turnHeap []*turn

func (h *turnHeap) push(t *turn) {
	*h = append(*h, t)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent].due <= q[i].due {
			break
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

func (h *turnHeap) pop() *turn {
	q := *h
	first, end := q[0], len(q)-1
	q[0] = q[end]
	q[end] = nil
	q = q[:end]
	*h = q
	for i := 0; ; {
		least, left, right := i, 2*i+1, 2*i+2
		if left < end && q[left].due < q[least].due {
			least = left
		}
		if right < end && q[right].due < q[least].due {
			least = right
		}
		if least == i {
			return first
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
}
