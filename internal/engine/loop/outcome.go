package loop

import (
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

func (l *Loop) recordSent(r *request, at int64, size int) {
	if l.run.NoRecording {
		return
	}
	l.partial.Sent(r.Op, size)
	if r.due >= 0 {
		l.partial.Lag(at - r.due)
	}
}

// settle records the outcome of a request whose replies are complete, or follows their redirection.
// They arrived within [lo, at].
func (l *Loop) settle(c *Conn, r *request, lo, at int64) {
	lo, at = max(lo, r.sent), max(at, r.sent)
	service, alive := at-r.sent, c.lastAlive(r)
	reply := &r.reply
	switch {
	case l.run.NoRecording:
		l.unrecorded++
	case service > l.run.Timeout:
		l.partialFor(at).Unknown(r.Op, at, record.ClassTimeout, service, reply.Bytes)
		l.failed(l.partialFor(at), c.pool.place.Shard)
		l.account(r, ledger.Unknown, at)
		if reply.Kind != resp.Error {
			c.alive = at
		}
	case reply.Kind == resp.Error:
		l.eager()
		if reply.Class == record.ClassMoved && l.redirect(r) {
			l.partialFor(at).Redirected(r.Op)
			return
		}
		if reply.Class == record.ClassReadOnly && !c.pool.place.Replica {
			l.onReadOnly(c, at)
		}
		if retried[reply.Class] && l.retryLater(r, at) {
			return
		}
		l.partialFor(at).Fail(r.Op, at, reply.Class, service, reply.Bytes)
		l.failed(l.partialFor(at), c.pool.place.Shard)
		l.noteReceipt(gaps.Receipt{
			Hi:     at,
			Lo:     lo,
			Surely: lo,
			Sent:   r.sent,
			Failed: l.run.Parts.Of[r.Op],
			Shard:  c.pool.place.Shard,
		})
		l.account(r, ledger.Failed, at)
	default:
		l.noteSuccess(c, r, alive, lo, at)
		if r.ledger > 0 || l.actor != nil {
			l.account(r, ledger.Acked, at)
		}
	}
	l.ended(r, l.at)
}

// lastAlive is the server's latest sign of life on the connection before a request was sent, if it
// is the first since; otherwise 0.
func (c *Conn) lastAlive(r *request) int64 {
	alive := c.alive
	c.alive = 0
	if alive >= r.sent {
		return 0
	}
	return alive
}

// noteSuccess counts a success, to be recorded with those that are equal. Its reply arrived within
// [lo, at]; see lastAlive.
func (l *Loop) noteSuccess(c *Conn, r *request, alive, lo, at int64) {
	shard := c.pool.place.Shard
	latency, service, since := at-r.sent, int64(-1), at
	if r.due >= 0 { // users of a closed loop wait for one another's replies where a server is slow
		latency, service, since = at-r.due, latency, r.sent
	}
	b := &l.batch
	// Compared field by field, as building a struct to compare costs more than all else here.
	if b.count == 0 || b.at != at || b.lo != lo || b.latency != latency || b.service != service ||
		b.op != r.Op || b.shard != shard || alive > 0 {
		l.recordBatch()
		*b = batch{
			op:      r.Op,
			shard:   shard,
			lo:      lo,
			at:      at,
			latency: latency,
			service: service,
		}
		a := gaps.Receipt{
			Hi:     at,
			Lo:     lo,
			Surely: lo,
			OK:     l.run.Parts.Of[r.Op],
			Since:  since,
			Flight: c.inFlight(r),
			Shard:  shard,
		}
		if alive > 0 {
			a.Alive, a.Asked, a.Early = alive, r.sent, max(1, alive+lo-r.sent)
		}
		l.noteReceipt(a)
	}
	b.count++
	if r.reply.Kind == resp.Null && l.run.Operations[r.Op].ReadOnly {
		b.missed++
	}
	b.bytes += uint64(r.reply.Bytes)
}

// partialFor returns the partial for an outcome at an instant, which may be before the wake-up's
// interval.
func (l *Loop) partialFor(at int64) *interval.Partial {
	if at >= l.partialEnd-l.stripe.Step {
		return l.partial
	}
	return l.stripe.PartialAt(at)
}

// noteReceipt notes an outcome for the gap logs.
func (l *Loop) noteReceipt(a gaps.Receipt) {
	if socket.Bounded {
		l.receipts.Note(a)
	}
}

// retried are the errors after which a client may retry: the server did not apply the request, and
// may do so later, or another server may.
var retried = [record.NumClasses]bool{
	record.ClassReadOnly:    true,
	record.ClassMoved:       true,
	record.ClassClusterDown: true,
	record.ClassLoading:     true,
	record.ClassMasterDown:  true,
	record.ClassBusy:        true,
	record.ClassNoReplicas:  true,
}

// onReadOnly handles a server that is no primary: the topology is refreshed and the connection
// replaced, as clients do.
func (l *Loop) onReadOnly(c *Conn, at int64) {
	l.run.Routes.Refresh("a primary replied READONLY")
	if at-c.renewed > route.RenewEvery || c.renewed == 0 {
		c.renewed = max(at, 1)
		c.renewPending = true
	}
}

// recordUnknown records a request that will not receive a reply.
func (l *Loop) recordUnknown(p *pool, r *request, at int64, class record.Class) {
	l.partial.Unknown(r.Op, at, class, at-r.sent, 0)
	l.failed(l.partial, p.place.Shard)
	l.account(r, ledger.Unknown, at)
}

func (l *Loop) ended(r *request, at int64) {
	if r.turn != nil && !l.closing() {
		l.demand.ended(r, at)
	}
}

// batch is a number of successes that are equal, as those mostly are that were sent by one write
// and received by one read.
type batch struct {
	op, shard        int
	lo, at           int64 // when the reply arrived: within [lo, at]
	latency, service int64 // service -1 in a closed loop
	count, missed    uint32
	bytes            uint64 // of all replies
}

// recordBatch records the equal successes counted so far.
func (l *Loop) recordBatch() {
	a := &l.batch
	if a.count == 0 {
		return
	}
	p := l.partialFor(a.at)
	p.OK(a.op, a.at, a.latency, a.service, a.bytes, a.count)
	if a.missed > 0 {
		p.Missed(a.op, a.missed)
	}
	l.lastOK = max(l.lastOK, a.at)
	if l.gaps.Sharded && a.shard < record.MaxShards && a.at < p.End {
		p.Shard(a.shard).OK += uint64(a.count)
	}
	a.count, a.missed, a.bytes = 0, 0, 0
}

// failed records an outcome other than success at a shard.
func (l *Loop) failed(s *interval.Partial, shard int) {
	if l.run.Sharded && shard < record.MaxShards {
		s.Shard(shard).Errors++
	}
}
