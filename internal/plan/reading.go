package plan

import (
	"time"
)

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
