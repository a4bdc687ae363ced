// Package locks finds out whether two clients held the same lock at the same time. Each client says
// when it was told that it holds a lock, and until when it counted on that; all of them read the
// clock of one machine. It uses neither Redis nor a clock.
//
// Instants are nanoseconds since the run's start, as in package engine.
package locks

import (
	"cmp"
	"slices"
	"sync"

	"github.com/redquake/redquake/internal/record"
)

// End is why a client no longer counts on a lock.
type End uint8

// The ends.
const (
	Released End = iota // the client gave it up
	// it was gone, or another client's, before the client gave it up and before its TTL had passed
	Lost
	Expired // the client could not renew it before its TTL had passed
)

// Book is what the clients of a load pod say of its locks. It is safe for concurrent use.
type Book struct {
	mu    sync.Mutex
	locks []lock
	sum   record.Lock
}

// lock is one lock.
type lock struct {
	active []int64 // when the clients that count on it were told so
	ended  []span  // not folded yet
	folded int64   // the latest end of all spans that were folded; below 0 = there was none
	fence  int64   // the highest fencing token so far
}

// span is the time for which a client counted on a lock.
type span struct{ from, until int64 }

// NewBook is the book of a number of locks.
func NewBook(locks int) *Book {
	b := &Book{locks: make([]lock, locks)}
	for i := range b.locks {
		b.locks[i].folded = -1
	}
	return b
}

const (
	// foldAt is how many spans of a lock are kept apart.
	foldAt = 4096
	// foldBefore is how long after its begin a span of another client may be told, in ns.
	foldBefore = 60_000_000_000
)

// Take says that a client was told at an instant that it holds a lock. Leave must follow.
func (b *Book) Take(number int, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	l.active = append(l.active, at)
	b.sum.Taken++
}

// GiveUp says that a lock was given up at once, as too few replicas had it in time.
func (b *Book) GiveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum.Unreplicated++
}

// Fence says which fencing token a client got with a lock: each must be above all earlier ones.
func (b *Book) Fence(number int, token int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	back := uint64(0)
	if token <= l.fence {
		back = 1
	}
	b.sum.CountFences(back)
	l.fence = max(l.fence, token)
}

// Leave says until when a client counted on a lock that it took at the instant from, and why it no
// longer does.
func (b *Book) Leave(number int, from, until int64, end End) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	i := slices.Index(l.active, from)
	if i < 0 {
		return
	}
	l.active = slices.Delete(l.active, i, i+1)
	switch end {
	case Lost:
		b.sum.Lost++
	case Expired:
		b.sum.Expired++
	}
	l.ended = append(l.ended, span{from, until})
	if len(l.ended) >= foldAt {
		b.fold(l, min(until-foldBefore, slices.Min(append(l.active, until))))
	}
}

// fold accounts for the spans of a lock that began before an instant, in their order.
func (b *Book) fold(l *lock, before int64) {
	slices.SortFunc(l.ended, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.until, b.until))
	})
	done := 0
	for _, s := range l.ended {
		if s.from >= before {
			break
		}
		done++
		b.account(l, s)
	}
	l.ended = slices.Delete(l.ended, 0, done)
}

// account adds the next span of a lock.
func (b *Book) account(l *lock, s span) {
	switch {
	case l.folded < 0:
	case s.from >= l.folded:
		b.sum.Unheld = max(b.sum.Unheld, s.from-l.folded)
	default:
		if to := min(s.until, l.folded); to > s.from {
			b.sum.AddOverlap(s.from, to)
		}
	}
	l.folded = max(l.folded, s.until)
}

// Result is what was found until the end of the run. All clients must have left their locks.
func (b *Book) Result(end int64) *record.Lock {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.locks {
		l := &b.locks[i]
		b.fold(l, 1<<62)
		if l.folded >= 0 {
			b.sum.Unheld = max(b.sum.Unheld, end-l.folded)
		}
	}
	sum := b.sum
	return &sum
}
