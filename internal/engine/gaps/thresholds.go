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
	s := &Follower{step: step, of: of, thresholds: t}
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
