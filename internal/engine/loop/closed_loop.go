package loop

import (
	"math"

	"github.com/redquake/redquake/internal/engine/pace"
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
	if d.Think == 0 && d.Active(t, at) {
		d.begin(t)
	} else {
		d.Schedule(t, at+d.Think)
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
		l.enqueue(l.run.Pick(l.source, l.at), t.User, -1, t)
	}
}

// over also drops the requests that are still queued when the run's length is reached.
func (d *closedLoop) over(now int64) bool {
	if d.loop.run.Over(now) {
		d.loop.dropQueued()
		return true
	}
	return d.activeTurns == 0 && (d.exhausted || len(d.Idle) == 0)
}
