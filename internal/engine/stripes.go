package engine

import (
	"iter"
	"math"
	"sync"

	"github.com/redquake/redquake/internal/record"
)

// recorder collects outcomes until an interval of the grid is closed. It does not read a clock: every instant is an argument, in
// nanoseconds since the start.
//
// The record is split into stripes, each with its own lock, so that workers do not contend. A stripe has two partials, for the open interval and
// for the next one: an interval can be closed some time after its end, and outcomes recorded meanwhile are counted in the right interval. It makes others
// for later intervals, which have outcomes first where the process did not run for a while and a worker woke up before the goroutine that closes intervals.
// Nothing is lost: an outcome for a closed interval is counted in the open one, one of more than mostAhead intervals later in the last of these.
type recorder struct {
	step    int64
	stripes []*stripe // of the load
	probe   *stripe
	last    int64 // the last interval, which also takes later outcomes; math.MaxInt64 = not set yet
}

// stripe is a part of the recorder with its own lock.
type stripe struct {
	step int64
	mu   sync.Mutex
	// open is the first interval that is not closed; top is the last one that may be recorded in; last is the run's last interval.
	open, top, last int64
	partials        [2]*partial
	ahead           map[int64]*partial // of the intervals behind top, once there are outcomes in them
}

// mostAhead is for how many intervals behind the open one there are partials at most. Their histograms take 68 KiB for each operation and stripe.
const mostAhead = 50

func newRecorder(step int64, ops, tallies, stripes int) *recorder {
	r := &recorder{step: step, probe: newStripe(step, 1, 0), last: math.MaxInt64}
	for range stripes {
		r.stripes = append(r.stripes, newStripe(step, ops, tallies))
	}
	return r
}

func newStripe(step int64, ops, tallies int) *stripe {
	return &stripe{step: step, top: 1, last: math.MaxInt64, partials: [2]*partial{newPartial(ops, tallies), newPartial(ops, tallies)}}
}

// lock returns the partial for outcomes at the instant at, and the end of its interval. The caller must unlock the stripe after writing.
func (s *stripe) lock(at int64) (*partial, int64) {
	s.mu.Lock()
	return s.partialAt(at), (at/s.step + 1) * s.step
}

// partialAt returns the partial for outcomes at the instant at. The caller holds the lock.
func (s *stripe) partialAt(at int64) *partial {
	i := min(max(at/s.step, s.open), s.last)
	if i > s.top {
		return s.partialAhead(min(i, s.open+mostAhead))
	}
	return s.partials[i&1]
}

func (s *stripe) partialAhead(i int64) *partial {
	p := s.ahead[i]
	if p == nil {
		p = newPartial(len(s.partials[0].ops), len(s.partials[0].tallies))
		p.end = s.partials[0].end
		if s.ahead == nil {
			s.ahead = map[int64]*partial{}
		}
		s.ahead[i] = p
	}
	return p
}

func (s *stripe) unlock() { s.mu.Unlock() }

// setLast makes interval i the last one: outcomes of later instants are counted in it.
func (r *recorder) setLast(i int64) {
	r.last = i
	for _, s := range r.all() {
		s.mu.Lock()
		s.last = max(i, s.open)
		s.mu.Unlock()
	}
}

// setEnd makes the interval before the instant end the last one, and counts the successes from end on as drained.
func (r *recorder) setEnd(end int64) {
	for _, s := range r.stripes {
		s.mu.Lock()
		for p := range s.all() {
			p.end = end
		}
		s.mu.Unlock()
	}
	r.setLast((end - 1) / r.step)
}

func (r *recorder) all() []*stripe { return append(r.stripes[:len(r.stripes):len(r.stripes)], r.probe) }

// close merges interval i, which must be the open one, from all stripes.
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
			iv.Stalls = append(iv.Stalls, sl.stalls...)
			for k, n := range sl.tallies {
				iv.Tallies[k] += n
			}
			iv.Shards = sl.addShards(iv.Shards)
		})
	}
	r.probe.drain(i, func(sl *partial) {
		sl.addTo(&iv.Probe, 0)
		iv.ProbeShards = sl.addShards(iv.ProbeShards)
	})
	return iv
}

func (s *partial) addShards(sum []record.ShardCounts) []record.ShardCounts {
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
func (s *stripe) all() iter.Seq[*partial] {
	return func(yield func(*partial) bool) {
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

// drain closes interval i, passes its partial to take and resets it. The partial is not written meanwhile. The last interval takes what there is of later ones.
func (s *stripe) drain(i int64, take func(*partial)) {
	s.mu.Lock()
	s.open, s.top = i+1, i+1
	s.mu.Unlock()
	sl := s.partials[i&1]
	take(sl)
	sl.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
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
