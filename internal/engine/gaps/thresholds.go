package gaps

import (
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Thresholds are those of the gap logs of a pod.
type Thresholds struct{ parts, shards []atomic.Int64 }

// NewThresholds returns thresholds that are equal for all logs, nanoseconds.
func NewThresholds(parts, shards int, each int64) *Thresholds {
	t := &Thresholds{make([]atomic.Int64, parts), make([]atomic.Int64, shards)}
	for _, list := range [][]atomic.Int64{t.parts, t.shards} {
		for i := range list {
			list[i].Store(max(each, Floor))
		}
	}
	return t
}

// Follower has the thresholds of a pod's gap logs follow the pace of the load, of its parts and of
// its shards.
type Follower struct {
	step       int64
	of         Parts
	thresholds *Thresholds
	parts      []*successPace
	shards     []*successPace
}

// NewFollower returns a follower for a load with these parts, in intervals of step nanoseconds.
func NewFollower(step int64, of Parts, t *Thresholds) *Follower {
	s := &Follower{
		step:       step,
		of:         of,
		thresholds: t,
	}
	for range of.Count {
		s.parts = append(s.parts, newSuccessPace(step))
	}
	return s
}

// Follow sets each gap log's threshold to twice the mean time between its successes: the measured
// one, and at least the planned one, nanoseconds.
func (s *Follower) Follow(iv *record.Interval, planned int64) {
	for part, pace := range s.parts {
		var ok uint64
		for op := range iv.Ops {
			if s.of.Of[op]>>part&1 != 0 {
				ok += iv.Ops[op].OK
			}
		}
		s.thresholds.parts[part].Store(pace.threshold(ok, planned))
	}
	for len(s.shards) < len(iv.Shards) {
		s.shards = append(s.shards, newSuccessPace(s.step))
	}
	for shard := range iv.Shards {
		s.thresholds.shards[shard].Store(s.shards[shard].threshold(iv.Shards[shard].OK, planned))
	}
}

// successPace is the mean time between recent successes, which thresholds of gap logs follow.
// Periods longer than pauseCut without a success are excluded, so that an outage does not change
// the mean.
type successPace struct {
	step  int64
	ring  []paceCell
	next  int
	spent int64 // sum of the ring
	count uint64
	quiet int64 // time without a success, in whole intervals
}

type paceCell struct {
	spent int64
	count uint64
}

const (
	paceWindow = int64(10 * time.Second)
	pauseCut   = int64(time.Second)
)

func newSuccessPace(step int64) *successPace {
	return &successPace{step: step, ring: make([]paceCell, max(1, paceWindow/step))}
}

// add adds a finished interval with ok successes.
func (p *successPace) add(ok uint64) {
	if ok > 0 {
		p.quiet = 0
	} else if p.quiet += p.step; p.quiet > pauseCut {
		return
	}
	c := &p.ring[p.next]
	p.spent += p.step - c.spent
	p.count += ok - c.count
	*c = paceCell{spent: p.step, count: ok}
	p.next = (p.next + 1) % len(p.ring)
}

// mean is the mean time between successes, in nanoseconds; 0 if there were none.
func (p *successPace) mean() int64 {
	if p.count == 0 {
		return 0
	}
	return p.spent / int64(p.count)
}

// threshold adds a finished interval, and returns the length above which a period without a success
// is a gap. least is the lower bound of the mean.
func (p *successPace) threshold(ok uint64, least int64) int64 {
	p.add(ok)
	mean := p.mean()
	if mean == 0 {
		mean = UnknownPace
	}
	return max(2*max(mean, least), Floor)
}

// UnknownPace is the assumed time between successes before the first one, nanoseconds.
const UnknownPace = int64(50 * time.Millisecond)

// proof collects when a request was unanswered, or failed, since the last success: only that proves
// an outage.
type proof struct {
	from, to       int64 // of the current period; 0, 0 = none
	bestFrom, best int64 // the longest earlier one
	waiting        bool  // a request has been in flight since waitFrom
	waitFrom       int64
	failedTo       int64 // the end of what was proven before waitFrom; 0 = nothing
	// for how long the client did not run within the current period, and since its end
	skipped, away int64
	skippedBefore int64 // skipped when a request began to wait
	failure       int64 // the latest failed request or refused connection; 0 = none
}

// failed adds that a request failed that was in flight from one instant to the other. Whether
// another is in flight will be noted next.
func (p *proof) failed(from, to, bridge int64) {
	p.seen(from, to, bridge)
	p.failure = max(p.failure, to)
	p.waiting = false
}

// seen adds that the period from one instant to the other is proven; a pause up to bridge before it
// is, too.
func (p *proof) seen(from, to, bridge int64) {
	if p.to > 0 && !p.waiting && from > p.to+bridge {
		if length := p.to - p.from - p.skipped; length > p.best {
			p.bestFrom, p.best = p.from, length
		}
		p.from, p.to, p.skipped, p.away = from, to, 0, 0
		return
	}
	p.skipped, p.away = p.skipped+p.away, 0
	if p.to == 0 {
		p.from = from
	}
	p.from, p.to = min(p.from, from), max(p.to, to)
}

// wait adds that a request is in flight at an instant. It stays in flight until lost or idle is
// called.
func (p *proof) wait(at, bridge int64) {
	if p.waiting {
		return
	}
	p.failedTo, p.skippedBefore = 0, p.skipped
	if p.to > 0 && at <= p.to+bridge {
		p.failedTo = p.to
	}
	p.seen(at, at, bridge)
	p.waiting, p.waitFrom = true, at
}

// idle notes that no request is in flight any more: they failed.
func (p *proof) idle() {
	p.waiting = false
}

// lost notes that a request in flight lost its connection, after the instant until.
func (p *proof) lost(until int64) {
	if p.waiting {
		p.to = max(p.to, until)
		p.waiting = false
	}
}

// skip notes that the client did not run from one instant to the other, so that nothing is proven
// there.
func (p *proof) skip(from, to int64) {
	p.lost(from)
	if p.to > 0 {
		p.away += max(0, to-max(from, p.to))
	}
}

// longest returns the longest period, later by what it skips; end is its end if a request is still
// in flight. Without any it returns 0, 0. That a request waited does not prove a pause before it
// that was longer: it has only been answered.
func (p *proof) longest(end int64) (from, to int64) {
	from, to = p.from+p.skipped, p.to
	switch {
	case !p.waiting:
	case p.failedTo > 0 && p.waitFrom-p.failedTo > end-p.waitFrom:
		from, to = p.from+p.skippedBefore, p.failedTo
	default:
		to = end
	}
	if p.best > to-from {
		return p.bestFrom, p.bestFrom + p.best
	}
	return from, to
}
