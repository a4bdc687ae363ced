package loop

import (
	"net"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/record"
)

// Limits of a loop's looks at its sockets, nanoseconds.
const (
	// while requests wait for longer than a gap's minimum: what is read next then arrived after the
	// last look
	lookEvery = int64(time.Millisecond)
	// a longer wake-up is a stall: the loop was kept from running
	stalledAwake = int64(20 * time.Millisecond)
)

// look is when a loop looked at its sockets, which tells when what it reads can have arrived. All
// instants are nanoseconds since the start.
type look struct {
	entered int64 // the loop entered the current wait
	// since is when the last wait before the current one was entered that reported all sockets with
	// data: what is read now arrived after it. The instant at which a wait returned will not do, as
	// the thread can be suspended between the kernel's answer and reading the clock.
	since, next int64
	lateSince   int64 // when the loop should have woken up, if it woke up late; otherwise 0
	until       int64
	wokeAt      int64
	overslept   bool
	full        bool // the last look need not have reported all sockets with data

	clock.WallOffset
}

// returned notes the end of a wait that was to end at the instant until, with n events.
func (k *look) returned(n int, until int64) {
	k.since = k.next
	k.full = n >= socket.MaxEvents-2 // the poller has two events of its own
	if !k.full {
		k.next = k.entered
	}
	k.until = until
}

// looked notes that a look after a sleep reported n events.
func (k *look) looked(n int) {
	if k.full = n >= socket.MaxEvents-2; k.full {
		k.next = k.since
	}
}

// woke notes the instant at which the loop continues.
func (k *look) woke(c *clock.Clock, at int64) {
	k.wokeAt, k.lateSince = at, 0
	should := max(k.until, k.entered)
	if k.until > 0 && at-should > clock.LateWake {
		k.lateSince = should
	}
	k.overslept = k.lateSince > 0
	k.Refresh(c, at)
}

// greeted returns when the last reply to the greeting on a new connection arrived; 0 if it is not
// known.
func (k *look) greeted(c *clock.Clock, by net.Conn, now int64) int64 {
	at, ok := k.Arrived(c, socket.LastStamp(socket.StamperOf(by)), 0, now)
	if !ok {
		return 0
	}
	return at
}

// patience is for how long at most a loop leaves replies unread, and eagerFor for how long it leaves
// none after something that needs it soon; nanoseconds.
const (
	patience = int64(time.Millisecond)
	eagerFor = int64(100 * time.Millisecond)
)

// patient reports whether the loop may sleep until the instant at which the next request is due,
// whatever arrives meanwhile: nothing waits for a reply, and the kernel stamps when each arrives. To
// wake up for a reply costs as much as to send a request.
func (l *Loop) patient(next int64) bool {
	return l.stamped && l.queued == 0 && l.isOpen() && !l.pumped && !l.multiplexed && l.follower == nil &&
		l.addedLatency == 0 && !l.look.full &&
		next-l.look.entered < patience && l.look.entered > l.eagerUntil
}

// isOpen reports whether the requests are sent when they are due, whatever was answered.
func (l *Loop) isOpen() bool {
	_, ok := l.demand.(*openLoop)
	return ok
}

// eager has the loop read at once what arrives: a request did not succeed, and may be sent again; or
// the kernel has not taken all of one, or not passed on all of a reply.
func (l *Loop) eager() {
	l.eagerUntil = l.at + eagerFor
}

// noteStall records that the loop did not run from an instant, if it is not 0.
func (l *Loop) noteStall(from, to int64) {
	if from > 0 {
		l.partial.Stalls = append(l.partial.Stalls, record.Stall{From: from, To: to})
		l.stalledUntil = to
	}
}

// noteWaiting notes at an instant which parts of the load have requests in flight, or requests that
// wait for a connection which is being dialled.
func (l *Loop) noteWaiting(at int64) {
	var logs uint64
	for _, p := range l.pools {
		if p.dialled() {
			logs = l.gaps.All()
		}
	}
	if l.inFlight > 0 {
		for op, n := range l.flying {
			if n > 0 {
				logs |= l.run.Parts.Of[op]
			}
		}
	}
	l.gaps.Waiting(at, logs)
	if !l.gaps.Sharded {
		return
	}
	for _, p := range l.pools {
		if p.place.Replica {
			continue
		}
		if s := l.gaps.Shard(p.place.Shard); s == nil {
			continue
		} else if p.flying > 0 || p.dialled() {
			s.Wait(at)
		} else {
			s.Idle()
		}
	}
}

// settled is the instant up to which all arrivals are in the loop's gap logs. The stripe is locked.
func (l *Loop) settled() int64 {
	if l.inFlight == 0 {
		return clock.Never
	}
	return l.look.entered
}

// enqueueLedger queues a ledger write, to the shards round-robin. It returns false once the book is
// full.
func (l *Loop) enqueueLedger(user, due int64, t *pace.Turn) bool {
	shard := int(l.rotation % uint64(l.Book.Shards()))
	l.rotation++
	number, ok := l.Book.Next(shard, due)
	if !ok {
		return false
	}
	l.drawn = request{
		due:    due,
		turn:   t,
		ledger: int64(number) + 1,
	}
	r := &l.drawn
	r.Op = l.run.LedgerOp()
	r.User = user
	r.Key = int64(shard)
	r.Slot = workload.NoSlot
	if l.Book.Shards() > 1 {
		r.Slot = l.Book.Slot(shard)
	}
	l.queued++
	*l.route(r).waiting.push() = *r
	return true
}

// account records the outcome of a ledger write, and of any other request that did not succeed.
func (l *Loop) account(r *request, outcome ledger.Outcome, at int64) {
	switch {
	case l.Book == nil:
	case r.ledger > 0:
		l.Book.Settle(int(r.Key), uint64(r.ledger-1), outcome, at)
	case outcome != ledger.Acked:
		l.Book.Erred(at)
	}
	if l.actor != nil && r.ledger == 0 && r.turn != nil {
		r.turn.NotBefore = l.actor.Ended(&r.Request, outcomes[outcome], r.sent, at)
	}
}

// outcomes are those of ledger writes as workloads know them.
var outcomes = [...]workload.Outcome{
	ledger.Unknown: workload.Unknown,
	ledger.Acked:   workload.OK,
	ledger.Failed:  workload.Fail,
}
