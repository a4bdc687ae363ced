package engine

import "math"

// closedLoop is the demand of the virtual users of one event loop.
type closedLoop struct {
	*users
	loop        *loop
	batch       int // requests of a turn
	activeTurns int // users whose turn is in progress
	exhausted   bool
}

func newClosedLoop(l *loop, number, loops int64) *closedLoop {
	return &closedLoop{users: newUsers(&l.run.work, number, loops), loop: l, batch: l.run.plan.Client.Pipeline}
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
