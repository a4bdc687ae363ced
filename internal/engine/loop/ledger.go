package loop

import (
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/workload"
)

// enqueueLedger queues a ledger write, to the shards round-robin. It returns false once the book is
// full.
func (l *Loop) enqueueLedger(user, due int64, t *pace.Turn) bool {
	shard := int(l.rotation % uint64(l.Book.Shards()))
	l.rotation++
	number, ok := l.Book.Next(shard, due)
	if !ok {
		return false
	}
	l.drawn = request{due: due, turn: t, ledger: int64(number) + 1}
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
}
