package plan

import (
	"math"
	"time"
)

// Search is the range of a search for the highest rate that meets the objectives, and its
// precision.
type Search struct {
	From float64 `json:"from"` // requests/s over all pods: the first trial
	To   float64 `json:"to"`   // the highest rate of a trial
	// the search ends when the lowest rate that missed is at most this share above the highest that
	// met
	Precision float64       `json:"precision"`
	Settle    time.Duration `json:"settle"` // the first part of each trial, which is not evaluated
	Trial     time.Duration `json:"trial"`  // minimum length of the evaluated part of each trial
	// minimum number of requests in the evaluated part: quantiles and shares need enough samples
	Requests float64 `json:"requests"`
}

// Window returns the evaluated part of a trial of a rate (requests/s over all pods) that begins at
// the given time, since the load's start.
func (s Search) Window(rate float64, at time.Duration) (from, to time.Duration) {
	length := s.Trial
	if rate > 0 {
		length = max(length, time.Duration(math.Ceil(s.Requests/rate))*time.Second)
	}
	return at + s.Settle, at + s.Settle + length
}

// Reading is a figure that a workload derives from its tallies. Exactly one of the values is set.
type Reading struct {
	Name  string
	Count *uint64
	Share *float64       // in [0, 1]
	Mean  *time.Duration // per operation
}

// Readings returns the figures for tallies in the order of Tallies; nil for workloads without
// tallies.
func (s *Workload) Readings(tallies []uint64) []Reading {
	if len(tallies) == 0 || len(tallies) != len(s.Tallies()) {
		return nil
	}
	switch {
	case s.RateLimiter != nil:
		return readings{}.count("allowed", tallies[TallyAllowed]).count("denied", tallies[TallyDenied]).
			share("deniedShare", tallies[TallyDenied], tallies[TallyAllowed])
	case s.CacheAside != nil:
		hits, misses := tallies[TallyHits], tallies[TallyMisses]
		if s.CacheAside.Mode == DatabaseOnly {
			return readings{}.mean("databaseTime", tallies[TallyDatabaseMicros], misses)
		}
		return readings{}.count("hits", hits).count("misses", misses).share("hitRatio", hits, misses).
			mean("cacheTime", tallies[TallyCacheMicros], hits+misses).mean("databaseTime",
			tallies[TallyDatabaseMicros], misses)
	case s.HTTP != nil:
		var r readings
		responses := uint64(0)
		for i, name := range httpTallies[:TallyConnects] {
			if n := tallies[TallyStatus1xx+i]; n > 0 {
				r = r.count(name, n)
				responses += n
			}
		}
		return r.count("connects", tallies[TallyConnects]).
			mean("connectTime", tallies[TallyConnectMicros], tallies[TallyConnects]).
			mean("firstByteTime", tallies[TallyFirstByteMicros], responses).mean("bodyTime",
			tallies[TallyBodyMicros], responses)
	}
	return nil
}

type readings []Reading

func (r readings) count(name string, n uint64) readings {
	return append(r, Reading{Name: name, Count: &n})
}

// share appends part as a share of part and rest.
func (r readings) share(name string, part, rest uint64) readings {
	if part+rest == 0 {
		return r
	}
	return append(r, Reading{Name: name, Share: new(float64(part) / float64(part+rest))})
}

func (r readings) mean(name string, micros, of uint64) readings {
	if of == 0 {
		return r
	}
	return append(r, Reading{
		Name: name,
		Mean: new(time.Duration(micros) * time.Microsecond / time.Duration(of)),
	})
}

// Turns are the parts of a run in which only one operation is sent: those of a benchmark whose
// tests run one after the other. Turn number k is that of operation k.
type Turns struct {
	Count int
	From  time.Duration // begin of the measured time; the first turn also covers what is before
	// length of each from then on; the last lasts until the end. 0 = each has an equal part of the
	// requests
	Each time.Duration
}

// Turns returns the turns of the load, nil if its operations are mixed.
func (p *Plan) Turns() *Turns {
	b := p.Workload.Benchmark
	if b == nil || b.Order != InTurn || len(b.Tests) < 2 {
		return nil
	}
	return &Turns{
		Count: len(b.Tests),
		From:  p.Shape.MeasuredFrom(),
		Each:  b.Each,
	}
}

// At returns the turn at a time since the start, or, if the turns are parts of the requests, that
// of request number, 0 <= number < of.
func (t *Turns) At(elapsed time.Duration, number, of int64) int {
	if t.Each == 0 {
		return int(max(0, min(number, of-1)) * int64(t.Count) / max(1, of))
	}
	return int(min(max(0, elapsed-t.From)/t.Each, time.Duration(t.Count-1)))
}

// Window returns when turn k lasts, for a load that ends at end. It is only for turns with a
// length.
func (t *Turns) Window(k int, end time.Duration) (from, to time.Duration) {
	from = t.From + time.Duration(k)*t.Each
	if to = from + t.Each; k == t.Count-1 {
		to = end
	}
	return min(from, end), min(to, end)
}
