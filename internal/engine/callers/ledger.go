package callers

import (
	"sync"

	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/workload"
)

// Ledger is the ledger of the writes that a client library sends: one book for all goroutines.
type Ledger struct {
	mu     sync.Mutex
	book   *ledger.Book
	turn   int   // shards are written to round-robin
	issued int64 // requests of a closed loop so far; selects the ledger writes
}

// NewLedger is a ledger that keeps book. Nothing else may use that without Lock.
func NewLedger(book *ledger.Book) *Ledger {
	return &Ledger{book: book}
}

// Lock keeps the book from being used until unlock is called.
func (l *Ledger) Lock() (unlock func()) {
	l.mu.Lock()
	return l.mu.Unlock
}

// write is a ledger write, as the book numbers it.
type write struct {
	shard  int
	number uint64
}

// next returns the next write; nil once the book is full, after which the load continues without.
func (l *Ledger) next(at int64) *write {
	defer l.Lock()()
	shard := l.turn
	l.turn = (l.turn + 1) % l.book.Shards()
	number, ok := l.book.Next(shard, at)
	if !ok {
		return nil
	}
	return &write{shard: shard, number: number}
}

// nextOfUsers returns the next write if it is the turn of one in a closed loop; nil if it is not.
func (l *Ledger) nextOfUsers(s *load.State, at int64) *write {
	unlock := l.Lock()
	l.issued++
	issued := l.issued
	unlock()
	if !s.IsLedgerWrite(issued) {
		return nil
	}
	return l.next(at)
}

// slot is the hash slot of a write's key, for a deployment of several shards.
func (l *Ledger) slot(w *write) uint16 {
	if l.book.Shards() == 1 {
		return workload.NoSlot
	}
	return l.book.Slot(w.shard)
}

// account records the outcome of a ledger write at an instant, and of any other request, w nil,
// that did not succeed.
func (l *Ledger) account(w *write, outcome workload.Outcome, at int64) {
	settled := ledger.Unknown
	switch outcome {
	case workload.OK:
		settled = ledger.Acked
	case workload.Fail:
		settled = ledger.Failed
	}
	switch {
	case w != nil:
		defer l.Lock()()
		l.book.Settle(w.shard, w.number, settled, at)
	case settled != ledger.Acked:
		defer l.Lock()()
		l.book.Erred(at)
	}
}
