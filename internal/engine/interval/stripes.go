// Package interval counts the outcomes of requests by the interval in which they arrived, without
// contention between those who record.
package interval

import (
	"iter"
	"math"
	"sync"

	"github.com/redquake/redquake/internal/record"
)

// Recorder collects outcomes until an interval of the grid is closed. It does not read a clock:
// every instant is an argument, in nanoseconds since the start.
//
// The record is split into stripes, each with its own lock, so that workers do not contend. A
// stripe has two partials, for the open interval and for the next one: an interval can be closed
// some time after its end, and outcomes recorded meanwhile are counted in the right interval. It
// makes others for later intervals, which have outcomes first where the process did not run for a
// while and a worker woke up before the goroutine that closes intervals.
// Nothing is lost: an outcome for a closed interval is counted in the open one, one of more than
// mostAhead intervals later in the last of these.
type Recorder struct {
	Step    int64
	Stripes []*Stripe // of the load
	Probe   *Stripe
	Last    int64 // the last interval, which also takes later outcomes; math.MaxInt64 = not set yet
}

// Stripe is a part of the recorder with its own lock.
type Stripe struct {
	Step int64
	Mu   sync.Mutex
	// open is the first interval that is not closed; top is the last one that may be recorded in; last
	// is the run's last interval.
	open, top, last int64
	partials        [2]*Partial
	ahead           map[int64]*Partial // of the intervals behind top, once there are outcomes in them
}

// mostAhead is for how many intervals behind the open one there are partials at most. Their
// histograms take 68 KiB for each operation and stripe.
const mostAhead = 50

// New returns a recorder of intervals of step nanoseconds, for the load's operations and tallies,
// with a number of stripes for the load and one for the probe.
func New(step int64, ops, tallies, stripes int) *Recorder {
	r := &Recorder{
		Step:  step,
		Probe: newStripe(step, 1, 0),
		Last:  math.MaxInt64,
	}
	for range stripes {
		r.Stripes = append(r.Stripes, newStripe(step, ops, tallies))
	}
	return r
}

func newStripe(step int64, ops, tallies int) *Stripe {
	return &Stripe{
		Step:     step,
		top:      1,
		last:     math.MaxInt64,
		partials: [2]*Partial{newPartial(ops, tallies), newPartial(ops, tallies)},
	}
}

// Lock returns the partial for outcomes at the instant at, and the end of its interval. The caller
// must unlock the stripe after writing.
func (s *Stripe) Lock(at int64) (*Partial, int64) {
	s.Mu.Lock()
	return s.PartialAt(at), (at/s.Step + 1) * s.Step
}

// PartialAt returns the partial for outcomes at the instant at. The caller holds the lock.
func (s *Stripe) PartialAt(at int64) *Partial {
	i := min(max(at/s.Step, s.open), s.last)
	if i > s.top {
		return s.partialAhead(min(i, s.open+mostAhead))
	}
	return s.partials[i&1]
}

func (s *Stripe) partialAhead(i int64) *Partial {
	p := s.ahead[i]
	if p == nil {
		p = newPartial(len(s.partials[0].Ops), len(s.partials[0].Tallies))
		p.End = s.partials[0].End
		if s.ahead == nil {
			s.ahead = map[int64]*Partial{}
		}
		s.ahead[i] = p
	}
	return p
}

// Unlock lets others record in the stripe.
func (s *Stripe) Unlock() {
	s.Mu.Unlock()
}

// SetLast makes interval i the last one: outcomes of later instants are counted in it.
func (r *Recorder) SetLast(i int64) {
	r.Last = i
	for _, s := range r.all() {
		s.Mu.Lock()
		s.last = max(i, s.open)
		s.Mu.Unlock()
	}
}

// SetEnd makes the interval before the instant end the last one, and counts the successes from end
// on as drained.
func (r *Recorder) SetEnd(end int64) {
	for _, s := range r.Stripes {
		s.Mu.Lock()
		for p := range s.all() {
			p.End = end
		}
		s.Mu.Unlock()
	}
	r.SetLast((end - 1) / r.Step)
}

func (r *Recorder) all() []*Stripe {
	return append(r.Stripes[:len(r.Stripes):len(r.Stripes)], r.Probe)
}

// Close merges interval i, which must be the open one, from all stripes.
func (r *Recorder) Close(i int64) *record.Interval {
	iv := &record.Interval{
		Index:      i,
		Pods:       1,
		Ops:        make([]record.Op, len(r.Stripes[0].partials[0].Ops)),
		FirstError: -1,
		LastError:  -1,
		FirstOK:    -1,
		LastOK:     -1,
	}
	tallies := len(r.Stripes[0].partials[0].Tallies)
	if tallies > 0 {
		iv.Tallies = make([]uint64, tallies)
	}
	for _, s := range r.Stripes {
		s.drain(i, func(sl *Partial) {
			for op := range iv.Ops {
				sl.addTo(&iv.Ops[op], op)
			}
			iv.FirstOK, iv.LastOK = join(iv.FirstOK, iv.LastOK, sl.firstOK, sl.lastOK)
			iv.FirstError, iv.LastError = join(iv.FirstError, iv.LastError, sl.firstError, sl.lastFailure)
			iv.MaxLag = max(iv.MaxLag, sl.maxLag)
			iv.Stalls = append(iv.Stalls, sl.Stalls...)
			for k, n := range sl.Tallies {
				iv.Tallies[k] += n
			}
			iv.Shards = sl.addShards(iv.Shards)
		})
	}
	r.Probe.drain(i, func(sl *Partial) {
		sl.addTo(&iv.Probe, 0)
		iv.ProbeShards = sl.addShards(iv.ProbeShards)
	})
	return iv
}

func (s *Partial) addShards(sum []record.ShardCounts) []record.ShardCounts {
	for k, n := range s.shards {
		if k == len(sum) {
			sum = append(sum, record.ShardCounts{})
		}
		sum[k].OK += n.OK
		sum[k].Errors += n.Errors
	}
	return sum
}

// all yields the partials.
func (s *Stripe) all() iter.Seq[*Partial] {
	return func(yield func(*Partial) bool) {
		for _, p := range s.partials {
			if !yield(p) {
				return
			}
		}
		for _, p := range s.ahead {
			if !yield(p) {
				return
			}
		}
	}
}

// drain closes interval i, passes its partial to take and resets it. The partial is not written
// meanwhile. The last interval takes what there is of later ones.
func (s *Stripe) drain(i int64, take func(*Partial)) {
	s.Mu.Lock()
	s.open, s.top = i+1, i+1
	s.Mu.Unlock()
	sl := s.partials[i&1]
	take(sl)
	sl.reset()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if i >= s.last {
		for p := range s.all() {
			take(p)
			p.reset()
		}
	}
	s.top = i + 2
	if p := s.ahead[s.top]; p != nil {
		s.partials[s.top&1] = p
		delete(s.ahead, s.top)
	}
}

func join(first, last, otherFirst, otherLast int64) (int64, int64) {
	if otherFirst < 0 {
		return first, last
	}
	first, last = widen(first, last, otherFirst)
	return widen(first, last, otherLast)
}
