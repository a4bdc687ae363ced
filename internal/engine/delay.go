package engine

import (
	"math"
	"time"
)

// delayed is a request whose way is held up in the client: a reply that came over a network made slower, or a failure that is tried again.
type delayed struct {
	at      int64 // when it goes on
	conn    *conn // of a reply
	request request
	raw     []byte // the reply's bytes, where they are read as values
}

// delays is a first-in-first-out of what was delayed by equal times.
type delays struct {
	list []delayed
	head int
}

func (d *delays) count() int { return len(d.list) - d.head }

// never is an instant that does not come.
const never = int64(math.MaxInt64)

// retryAfter is how long a request that failed waits before it is tried again: a client that tries at once again meets the same server.
const retryAfter = int64(10 * time.Millisecond)

// runDelayed goes on with what was delayed until now.
func (l *loop) runDelayed(now int64) {
	if l.held.next() <= now {
		l.released = l.held.take(now, l.released[:0])
		for i := range l.released {
			e := &l.released[i]
			e.conn.held--
			e.conn.finishRound(&e.request, e.raw, now)
			e.conn.release()
		}
	}
	if l.retries.next() <= now {
		l.released = l.retries.take(now, l.released[:0])
		for i := range l.released {
			r := &l.released[i].request
			l.requeue(r, l.route(r))
			l.queued-- // it counted while it waited
		}
	}
}

// take moves what is ripe at the instant now into ready.
func (d *delays) take(now int64, ready []delayed) []delayed {
	for d.head < len(d.list) && d.list[d.head].at <= now {
		ready = append(ready, d.list[d.head])
		d.list[d.head] = delayed{}
		d.head++
	}
	if d.head == len(d.list) {
		d.list, d.head = d.list[:0], 0
	}
	return ready
}

// next is when the first of them is ripe.
func (d *delays) next() int64 {
	if d.head == len(d.list) {
		return never
	}
	return d.list[d.head].at
}

// triesAgain keeps a request that surely was not applied for another attempt, where the plan grants one.
func (l *loop) retryLater(r *request, at int64) bool {
	if int(r.tries) >= l.run.plan.Client.Retries || l.closing() {
		return false
	}
	if r.sent > 0 && at+retryAfter-r.sent > l.run.timeout {
		return false // it would only be late
	}
	r.tries++
	l.retries.push(delayed{at: at + retryAfter, request: *r})
	l.queued++
	return true
}

func (d *delays) push(e delayed) { d.list = append(d.list, e) }
