package loop

import (
	"math"

	"github.com/redquake/redquake/internal/engine/pace"
)

// openLoop is the demand of arrivals that are scheduled in advance: every loops-th arrival of the
// pod belongs to this loop.
type openLoop struct {
	loop          *Loop
	pacer         *pace.Pacer
	number, loops int64
	next          int64 // number of the next arrival among the pod's
	due           int64 // when it is due
}

// maxQueued bounds the arrivals that a loop has taken from the schedule and cannot send yet. Those
// behind it wait in the schedule, whatever server they go to: of several servers one that hangs
// must not keep the others from being asked, so that there are more of maxQueuedOfSeveral, of 120
// bytes each.
const (
	maxQueued          = 16 << 10
	maxQueuedOfSeveral = 128 << 10
)

// mayQueue reports whether the loop may take another arrival from the schedule.
func (l *Loop) mayQueue() bool {
	if len(l.pools) > 1 {
		return l.queued < maxQueuedOfSeveral
	}
	return l.queued < maxQueued
}

func newOpenLoop(l *Loop, number, loops int64) *openLoop {
	d := &openLoop{
		loop:   l,
		pacer:  l.run.Pacer.Load(),
		number: number,
		loops:  loops,
		next:   number,
	}
	d.due = d.pacer.Due(d.next)
	return d
}

func (d *openLoop) issue(now int64) int64 {
	l := d.loop
	if p := l.run.Pacer.Load(); p != d.pacer { // the rate was changed by Runner.Step
		d.pacer, d.due = p, p.Due(d.next)
	}
	forgone := d.pacer.DiscardBefore(now)
	for d.due <= now {
		late := d.due + l.run.Timeout
		switch {
		case late < now:
			l.stripe.PartialAt(late).Dropped(l.run.OpOf(d.next))
		case d.due < forgone:
			l.stripe.PartialAt(now).Dropped(l.run.OpOf(d.next))
		case !l.mayQueue() || l.closing():
			return late // or when a request ends, which wakes the loop
		default:
			ledgerWrite := l.Book != nil && l.run.IsLedgerWrite(l.run.Arrival(d.next))
			if !ledgerWrite || !l.enqueueLedger(d.number, d.due, nil) { // the book may be full
				l.enqueue(l.run.UnledgeredOp(d.next), d.number, d.due, nil)
			}
		}
		d.next += d.loops
		d.due = d.pacer.Due(d.next)
	}
	if d.due == math.MaxInt64 && !d.over(now) {
		return l.run.Length // a step may still add arrivals
	}
	return d.due
}

func (d *openLoop) ended(*request, int64) {}

func (d *openLoop) over(now int64) bool {
	return d.due == math.MaxInt64 && !d.loop.run.MayStep(now)
}
