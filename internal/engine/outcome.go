package engine

import (
	"time"

	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

func (l *loop) recordSent(r *request, at int64, size int) {
	if l.run.mute {
		return
	}
	l.slot.sent(r.Op, size)
	if r.due >= 0 {
		l.slot.lag(at - r.due)
	}
}

// settle records what became of a request whose replies have all come, or sends it where they point to.
func (l *loop) settle(c *conn, r *request, at int64) {
	service := at - r.sent
	reply := &r.reply
	switch {
	case l.run.mute:
		l.unrecorded++
	case service > l.run.timeout:
		l.slot.unknown(r.Op, at, record.ClassTimeout, service, reply.Bytes)
		l.failed(l.slot, c.pool.place.shard)
		l.account(r, ledger.Unknown, at)
	case reply.Kind == resp.Error:
		if reply.Class == record.ClassMoved && l.redirect(r, l.message, c.address) {
			return
		}
		if retried[reply.Class] && l.triesAgain(r, at) {
			return
		}
		if reply.Class == record.ClassReadOnly && !c.pool.place.replica {
			l.onReadOnly(c, at)
		}
		l.slot.fail(r.Op, at, reply.Class, service, reply.Bytes)
		l.failed(l.slot, c.pool.place.shard)
		l.account(r, ledger.Failed, at)
	default:
		one := success{op: r.Op, shard: c.pool.place.shard, at: at, latency: service, service: -1}
		if r.due >= 0 {
			one.latency, one.service = at-r.due, service
		}
		if l.alike.success != one {
			l.recordAlike()
			l.alike.success = one
		}
		l.alike.count++
		l.alike.bytes += uint64(reply.Bytes)
		if r.ledger > 0 {
			l.account(r, ledger.Acked, at)
		}
	}
	l.ended(r, at)
}

// retried are the errors after which a client may try again: the server did nothing, and another time or server may do it.
var retried = [record.NumClasses]bool{
	record.ClassReadOnly: true, record.ClassMoved: true, record.ClassClusterDown: true, record.ClassLoading: true, record.ClassMasterDown: true,
	record.ClassBusy: true,
}

// renewEvery bounds how often a connection is made anew because its server turned out to be no primary, nanoseconds.
const renewEvery = int64(100 * time.Millisecond)

// onReadOnly handles a server that refuses writes: the deployment is looked at again, and the connection made anew, as clients do.
func (l *loop) onReadOnly(c *conn, at int64) {
	l.run.routes.refresh("a primary answered READONLY")
	if at-c.renewed > renewEvery || c.renewed == 0 {
		c.renewed = max(at, 1)
		c.old = true
	}
}

// recordUnknown records a request whose reply will not come.
func (l *loop) recordUnknown(p *pool, r *request, at int64, class record.Class) {
	l.slot.unknown(r.Op, at, class, at-r.sent, 0)
	l.failed(l.slot, p.place.shard)
	l.account(r, ledger.Unknown, at)
}

func (l *loop) ended(r *request, at int64) {
	if r.turn != nil && !l.closing() {
		l.demand.ended(r, at)
	}
}

// success is what is recorded of one. Those of one batch are mostly the same to the nanosecond: sent by one write, read by one read.
type success struct {
	op, shard            int
	at, latency, service int64 // service -1 in a closed loop
}

// recordAlike records the successes that were the same.
func (l *loop) recordAlike() {
	a := &l.alike
	if a.count == 0 {
		return
	}
	l.slot.ok(a.op, a.at, a.latency, a.service, a.bytes, a.count)
	l.succeeded(a.shard, a.at, a.count)
	a.count, a.bytes = 0, 0
}
