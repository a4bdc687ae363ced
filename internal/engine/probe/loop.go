package probe

import (
	"context"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/socket"
)

// Loop serves the probes of a pod, one of each shard, in one event loop: a goroutine for each request
// costs three times the CPU, as Go's scheduler wakes up a thread for it and another one that looks
// for more. Other goroutines dial.
type Loop struct {
	run     *load.State
	probers []*Prober
	turns   socket.Turns
	common
}

// common is what the probers of a loop share.
type common struct {
	dialing  context.Context // ends when the run is aborted
	byNumber map[int32]*probeConn
	dialled  int32 // connections so far, which numbers them
	receiver socket.Receiver
	in       [4 << 10]byte
	wall     clock.WallOffset
	mailbox
}

// NewLoop returns the loop of all probers of a pod.
func NewLoop(n *load.State, probers []*Prober) *Loop {
	l := &Loop{
		run:     n,
		probers: probers,
		common:  common{byNumber: map[int32]*probeConn{}},
	}
	for _, p := range probers {
		p.common = &l.common
	}
	return l
}

// Open makes the poller of Run.
func (l *Loop) Open() (err error) {
	l.poll, err = l.run.NewPoller()
	return err
}

// Run sends each arrival, until none is left or probing ends. It returns once none is in flight;
// the end of ctx abandons those.
func (l *Loop) Run(ctx, probing context.Context) {
	l.dialing = ctx
	defer context.AfterFunc(probing, l.nudge)()
	defer context.AfterFunc(ctx, l.nudge)()
	for _, p := range l.probers {
		p.begin()
		defer p.end()
	}
	for {
		l.drainNotes()
		until, over := l.serve(ctx.Err() != nil, probing.Err() != nil)
		if over {
			return
		}
		now := l.run.Now()
		l.turns.Yield(now)
		for _, e := range l.poll.Wait(now, until) {
			if c := l.byNumber[e.Number]; c != nil {
				c.prober.receive(c)
			}
		}
	}
}

// serve sends what is due and ends what has exceeded its time; aborted ends all that is in flight.
// over tells that nothing is left, until when it must be called again.
func (l *Loop) serve(aborted, ended bool) (until int64, over bool) {
	until, over = clock.Never, true
	for _, p := range l.probers {
		due := clock.Never
		if !ended {
			due = p.issue()
		}
		if aborted {
			p.abandon()
		}
		until = min(until, due, p.expire(l.run.Now()))
		over = over && due == clock.Never && p.inFlight() == 0
	}
	return until, over
}

// drainNotes handles the notes of other goroutines.
func (l *Loop) drainNotes() {
	for _, n := range l.take() {
		if n.conn != nil {
			n.conn.prober.pumped(&n)
			n.release()
			continue
		}
		n.prober.dialEnded(&n)
	}
}

// Close closes the poller, and connections that were dialled in vain. It must not be called during
// Run, and may be repeated.
func (l *Loop) Close() {
	l.mailbox.close()
}
