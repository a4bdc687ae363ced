package oracle

import (
	"cmp"
	"slices"
	"time"
)

// span is a stretch of time [from, to), counted from t0.
type span struct{ from, to time.Duration }

func (s span) length() time.Duration {
	return s.to - s.from
}

// spans are stretches in order, which neither overlap nor touch.
type spans []span

// union joins stretches that are at most apart from each other.
func union(apart time.Duration, lists ...spans) spans {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var joined spans
	for _, s := range all {
		n := len(joined)
		if n > 0 && s.from <= joined[n-1].to+apart {
			joined[n-1].to = max(joined[n-1].to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// intersect returns the time that is in both.
func intersect(a, b spans) spans {
	var both spans
	for _, s := range a {
		for _, o := range b {
			from, to := max(s.from, o.from), min(s.to, o.to)
			if from < to {
				both = append(both, span{from, to})
			}
		}
	}
	return both
}

// subtract returns the time that is in a and not in b.
func subtract(a, b spans) (rest spans) {
	for _, s := range a {
		for _, o := range b {
			if o.to <= s.from || o.from >= s.to {
				continue
			}
			if o.from > s.from {
				rest = append(rest, span{s.from, o.from})
			}
			s.from = o.to
		}
		if s.from < s.to {
			rest = append(rest, s)
		}
	}
	return rest
}

// until returns those that begin before an instant.
func (l spans) until(at time.Duration) spans {
	return slices.DeleteFunc(slices.Clone(l), func(s span) bool { return s.from >= at })
}

func (l spans) longest() (d time.Duration) {
	for _, s := range l {
		d = max(d, s.length())
	}
	return d
}

func (l spans) total() (d time.Duration) {
	for _, s := range l {
		d += s.length()
	}
	return d
}

// within is for how long a stretch is covered.
func (l spans) within(w span) time.Duration {
	return intersect(l, spans{w}).total()
}
