// Package locks is the workload of users that compete for locks, and finds out whether two of them
// held the same lock at the same time. Each says when it was told that it holds a lock, and until
// when it counted on that; all of them read the clock of one machine.
//
// Instants are nanoseconds since the run's start, as in package engine.
package locks

import (
	"cmp"
	"slices"
	"sync"

	"github.com/redquake/redquake/internal/record"
)

// End is why a user no longer counts on a lock.
type End uint8

// The ends.
const (
	Released End = iota // the user gave it up
	// it was gone, or another user's, before the user gave it up and before its TTL had passed
	Lost
	Expired // the user could not renew it before its TTL had passed
)

// Book is what the users of a load pod say of its locks. It is safe for concurrent use.
type Book struct {
	mu    sync.Mutex
	locks []lock
	sum   record.Lock
}

// lock is one lock.
type lock struct {
	active []span // of the users that count on it: until when they do unless they renew it
	ended  []span // not folded yet
	foldAt int    // how many of these are folded
	folded int64  // the latest end of all spans that were folded; below 0 = there was none
	fence  int64  // the highest fencing token of these
}

// span is the time for which a user counted on a lock.
type span struct {
	from, until int64
	fence       int64 // the fencing token that it got; 0 = none
}

// NewBook is the book of a number of locks.
func NewBook(locks int) *Book {
	b := &Book{locks: make([]lock, locks)}
	for i := range b.locks {
		b.locks[i].folded, b.locks[i].foldAt = -1, foldLeast
	}
	return b
}

const (
	// foldLeast is how many spans of a lock are kept apart at least.
	foldLeast = 64
	// foldBefore is how long after its begin a span of another user may be told, in ns.
	foldBefore = 60_000_000_000
)

// Take says that a user was told at an instant that it holds a lock, on which it counts until another
// unless it renews it. With fencing it got a token, above 0, that must be above all earlier ones.
func (b *Book) Take(number int, at, until, fence int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	l.active = append(l.active, span{at, until, fence})
	b.sum.Taken++
	if fence > 0 {
		b.sum.CountFences(0)
	}
}

// Count says until when a user counts on a lock that it took at the instant from: it has renewed it,
// or decided to give it up.
func (b *Book) Count(number int, from, until int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	if i := l.of(from); i >= 0 {
		l.active[i].until = until
	}
}

// of is the index of the active span that began at an instant; -1 = there is none.
func (l *lock) of(from int64) int {
	return slices.IndexFunc(l.active, func(s span) bool { return s.from == from })
}

// GiveUp says that a lock was given up at once, as too few replicas had it in time.
func (b *Book) GiveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sum.Unreplicated++
}

// Leave says until when a user counted on a lock that it took at the instant from, and why it no
// longer does.
func (b *Book) Leave(number int, from, until int64, end End) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.locks[number]
	if i := l.of(from); i >= 0 {
		b.leave(l, i, until, end)
		b.tidy(l, until-foldBefore)
	}
}

// leave ends an active span.
func (b *Book) leave(l *lock, i int, until int64, end End) {
	switch end {
	case Lost:
		b.sum.Lost++
	case Expired:
		b.sum.Expired++
	}
	s := l.active[i]
	l.active = slices.Delete(l.active, i, i+1)
	l.ended = append(l.ended, span{s.from, max(s.from, until), s.fence})
}

// tidy folds what began before an instant, if there is much: users that have not counted on a lock
// since then do not any more.
func (b *Book) tidy(l *lock, before int64) {
	if len(l.ended) < l.foldAt {
		return
	}
	for i := len(l.active) - 1; i >= 0; i-- {
		if s := l.active[i]; s.until < before {
			b.leave(l, i, s.until, Expired)
		} else {
			before = min(before, s.from)
		}
	}
	b.fold(l, before)
	l.foldAt = max(foldLeast, 2*len(l.ended))
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
	if s.fence > 0 && s.fence <= l.fence {
		b.sum.CountFences(1)
	}
	l.folded, l.fence = max(l.folded, s.until), max(l.fence, s.fence)
}

// Result is what was found until the end of the run, at which no user counts on a lock any more.
func (b *Book) Result(end int64) *record.Lock {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.locks {
		l := &b.locks[i]
		for len(l.active) > 0 {
			b.leave(l, 0, min(l.active[0].until, end), Released)
		}
		b.fold(l, 1<<62)
		if l.folded >= 0 {
			b.sum.Unheld = max(b.sum.Unheld, end-l.folded)
		}
	}
	sum := b.sum
	return &sum
}
