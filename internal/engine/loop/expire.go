package loop

import (
	"math"
	"time"

	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/record"
)

// expire ends the requests that have exceeded requestTimeout.
func (l *Loop) expire(now int64) {
	if l.run.Aborted.Load() {
		l.abort(now)
		return
	}
	if l.inFlight == 0 && l.queued == 0 {
		l.nextScan = math.MaxInt64
		return
	}
	if l.nextScan == math.MaxInt64 {
		l.nextScan = now + l.scanEvery
	}
	if now < l.nextScan {
		return
	}
	l.nextScan = now + l.scanEvery
	for _, c := range l.conns {
		c.expireAfterReading(now - l.run.Timeout)
	}
	for _, p := range l.pools {
		l.dropLate(p, now)
	}
	l.pump()
}

// dropLate drops arrivals that could not be sent in time. They are recorded at the instant at which
// requestTimeout passed.
func (l *Loop) dropLate(p *pool, now int64) {
	forgone := int64(0)
	if pacer := l.run.Pacer.Load(); pacer != nil {
		forgone = pacer.DiscardBefore(now)
	}
	for p.waiting.count > 0 {
		r := *p.waiting.at(0)
		late := r.due + l.run.Timeout
		if r.due >= 0 && r.due < forgone {
			late = min(late, now)
		}
		if r.due < 0 || late > now {
			return
		}
		p.waiting.pop()
		l.queued--
		if r.sent == 0 {
			l.stripe.PartialAt(late).Dropped(r.Op)
		} else { // it was redirected and could not be sent again in time
			l.stripe.PartialAt(late).Fail(r.Op, late, record.ClassMoved, late-r.due, 0)
		}
		l.account(&r, ledger.Failed, late)
	}
}

// abort stops sending, waits up to abortGrace for requests in flight, and then abandons them.
func (l *Loop) abort(now int64) {
	if l.ending == 0 {
		l.ending = max(1, now+min(int64(abortGrace), l.run.Timeout))
		l.dropQueued()
	}
	if now >= l.ending {
		for _, c := range l.conns {
			c.expire(math.MaxInt64)
		}
	}
}

// dropQueued discards the requests that have not been sent.
func (l *Loop) dropQueued() {
	for _, p := range l.pools {
		for i := range p.waiting.count {
			if r := p.waiting.at(i); r.ledger > 0 && r.sent == 0 {
				l.account(r, ledger.Failed, l.at)
			}
		}
		l.queued -= p.waiting.count
		p.waiting.clear()
	}
	l.queued -= l.retries.count()
	l.retries = delays{}
}

const abortGrace = 100 * time.Millisecond

// expireAfterReading is expire for a loop that may not have read yet what arrived in time.
func (c *Conn) expireAfterReading(before int64) {
	if c.flight.count == 0 || c.flight.at(0).sent >= before || !c.up {
		return
	}
	switch {
	case c.pump == nil:
		c.receive(true)
	case c.loop.look.overslept: // the pump may not have run either
		return
	}
	c.expire(before)
}
