package engine

import (
	"math"
	"sync"

	"github.com/redquake/redquake/internal/record"
)

// recorder holds what has happened until an interval of the grid is closed. It never reads a clock: every instant is an argument, in
// nanoseconds since the start.
//
// A few shards, each with a lock of its own, keep workers apart; a shard has two slots, the open interval's and the next one's, so that
// an interval can be closed some time after its end and what is recorded meanwhile still lands where it belongs.
// Nothing is lost: a record for a closed interval goes to the open one, a record too far ahead to the next one.
type recorder struct {
	step   int64
	stripes []*stripe // of the load
	probe  *stripe
	last   int64 // no interval after this one: later records go to it; math.MaxInt64 = none set yet
}

type stripe struct {
	step int64
	mu   sync.Mutex
	// open is the first interval that is not closed; top is the last that may be recorded in; last is the run's last interval.
	open, top, last int64
	partials           [2]*partial
}

func newRecorder(step int64, ops, tallies, shards int) *recorder {
	r := &recorder{step: step, probe: newStripe(step, 1, 0), last: math.MaxInt64}
	for range shards {
		r.stripes = append(r.stripes, newStripe(step, ops, tallies))
	}
	return r
}

func newStripe(step int64, ops, tallies int) *stripe {
	return &stripe{step: step, top: 1, last: math.MaxInt64, partials: [2]*partial{newPartial(ops, tallies), newPartial(ops, tallies)}}
}

// lock returns the slot for records of instant at, and the end of at's interval; the caller must unlock the shard when it has written them.
func (s *stripe) lock(at int64) (*partial, int64) {
	s.mu.Lock()
	return s.partialAt(at), (at/s.step + 1) * s.step
}

// slotAt is the slot for records of instant at. The caller holds the lock.
func (s *stripe) partialAt(at int64) *partial {
	return s.partials[min(max(at/s.step, s.open), s.top, s.last)&1]
}

func (s *stripe) unlock() { s.mu.Unlock() }

// setLast makes interval i the last one: what is recorded for later instants counts there.
func (r *recorder) setLast(i int64) {
	r.last = i
	for _, s := range r.all() {
		s.mu.Lock()
		s.last = max(i, s.open)
		s.mu.Unlock()
	}
}

func (r *recorder) all() []*stripe { return append(r.stripes[:len(r.stripes):len(r.stripes)], r.probe) }

// close takes interval i, which must be the open one, out of all shards.
func (r *recorder) close(i int64) *record.Interval {
	iv := &record.Interval{
		Index: i, Pods: 1, Ops: make([]record.Op, len(r.stripes[0].partials[0].ops)),
		FirstError: -1, LastError: -1, FirstOK: -1, LastOK: -1,
	}
	if tallies := len(r.stripes[0].partials[0].tallies); tallies > 0 {
		iv.Tallies = make([]uint64, tallies)
	}
	for _, s := range r.stripes {
		s.drain(i, func(sl *partial) {
			for op := range iv.Ops {
				sl.addTo(&iv.Ops[op], op)
			}
			iv.FirstOK, iv.LastOK = join(iv.FirstOK, iv.LastOK, sl.firstOK, sl.lastOK)
			iv.FirstError, iv.LastError = join(iv.FirstError, iv.LastError, sl.firstError, sl.lastFailure)
			iv.MaxLag = max(iv.MaxLag, sl.maxLag)
			for k, n := range sl.tallies {
				iv.Tallies[k] += n
			}
			for k, n := range sl.shards {
				if k == len(iv.Shards) {
					iv.Shards = append(iv.Shards, record.ShardCounts{})
				}
				iv.Shards[k].OK += n.OK
				iv.Shards[k].Errors += n.Errors
			}
		})
	}
	r.probe.drain(i, func(sl *partial) { sl.addTo(&iv.Probe, 0) })
	return iv
}

// drain closes interval i and empties its slot into take. Nobody writes the slot meanwhile: the shard's records are held below
// the interval that uses it next until it is empty.
func (s *stripe) drain(i int64, take func(*partial)) {
	s.mu.Lock()
	s.open, s.top = i+1, i+1
	s.mu.Unlock()
	sl := s.partials[i&1]
	take(sl)
	sl.reset()
	s.mu.Lock()
	s.top = i + 2
	s.mu.Unlock()
}

func join(first, last, otherFirst, otherLast int64) (int64, int64) {
	if otherFirst < 0 {
		return first, last
	}
	first, last = widen(first, last, otherFirst)
	return widen(first, last, otherLast)
}
