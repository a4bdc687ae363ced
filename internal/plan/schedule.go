package plan

import (
	"math"
	"time"
)

// Schedule is a number of users, or a rate in requests/s, over the time of a run: linear within
// each segment, constant after the last.
type Schedule []segment

// segment covers [from, to) seconds since the start; the level goes linearly from low to high
// (which may be lower). area is the integral of the level over all segments before.
type segment struct {
	from, to, low, high, area float64
}

// NewSchedule returns the schedule of the shape's users (closed loop) or rate (open loop) over all
// pods.
func NewSchedule(s Shape) Schedule {
	var sc Schedule
	level := func(st Stage) float64 { return float64(st.Users) }
	steady := float64(s.Users)
	if s.OpenLoop() {
		level = func(st Stage) float64 { return st.Rate }
		steady = s.Rate
	}
	if len(s.Stages) == 0 {
		if s.RampUp > 0 {
			sc = sc.add(s.RampUp, 0, steady)
		}
		return sc.hold(steady)
	}
	last := 0.0
	for _, st := range s.Stages {
		sc = sc.add(st.Duration, last, level(st))
		last = level(st)
	}
	return sc.hold(last)
}

func (s Schedule) add(d time.Duration, low, high float64) Schedule {
	from, area := s.end()
	return append(s, segment{
		from: from,
		to:   from + d.Seconds(),
		low:  low,
		high: high,
		area: area,
	})
}

// Step returns the schedule up to at, and the given level from then on. It does not modify s.
func (s Schedule) Step(at time.Duration, level float64) Schedule {
	x := at.Seconds()
	var cut Schedule
	for _, g := range s {
		if g.from >= x {
			break
		}
		if x < g.to {
			g.high, g.to = g.low+g.slope()*(x-g.from), x
		}
		cut = append(cut, g)
	}
	return cut.hold(level)
}

func (s Schedule) hold(level float64) Schedule {
	from, area := s.end()
	return append(s, segment{
		from: from,
		to:   math.Inf(1),
		low:  level,
		high: level,
		area: area,
	})
}

func (s Schedule) end() (at, area float64) {
	if len(s) == 0 {
		return 0, 0
	}
	last := s[len(s)-1]
	return last.to, last.area + (last.low+last.high)/2*(last.to-last.from)
}

// Level returns the users or the rate at t nanoseconds since the start.
func (s Schedule) Level(t int64) float64 {
	x := float64(t) / 1e9
	g := s.at(x)
	return g.low + g.slope()*(x-g.from)
}

// Integral is the integral of the level from the start to t nanoseconds: for a rate, the number of
// arrivals.
func (s Schedule) Integral(t int64) float64 {
	x := float64(t) / 1e9
	g := s.at(x)
	x -= g.from
	return g.area + g.low*x + g.slope()/2*x*x
}

// at is the segment that covers t seconds.
func (s Schedule) at(t float64) segment {
	for _, g := range s {
		if t < g.to {
			return g
		}
	}
	return s[len(s)-1]
}

// WhenIntegral is the inverse of Integral: the first instant, in nanoseconds, at which it reaches
// a; math.MaxInt64 if it never does.
// In a segment a = area + low*x + slope/2*x^2, so x = 2c/(low + sqrt(low^2 + 2*slope*c)) with c = a
// - area: the form of the root that does not cancel.
func (s Schedule) WhenIntegral(a float64) int64 {
	for i, g := range s {
		if i+1 < len(s) && s[i+1].area < a {
			continue
		}
		c := a - g.area
		if c <= 0 {
			return int64(g.from * 1e9)
		}
		divisor := g.low + math.Sqrt(max(0, g.low*g.low+2*g.slope()*c))
		if divisor == 0 {
			return math.MaxInt64
		}
		return nanoseconds(g.from + 2*c/divisor)
	}
	return math.MaxInt64
}

// WhenAbove is the first instant at or after t, in nanoseconds, from which the level is above n;
// math.MaxInt64 if there is none.
func (s Schedule) WhenAbove(n float64, t int64) int64 {
	x := float64(t) / 1e9
	for _, g := range s {
		if x >= g.to {
			continue
		}
		start := max(x, g.from)
		if g.low+g.slope()*(start-g.from) > n {
			return max(t, nanoseconds(start))
		}
		if g.slope() > 0 && g.high > n {
			// Two nanoseconds later, so that rounding does not leave the level at n.
			return max(t, nanoseconds(g.from+(n-g.low)/g.slope())) + 2
		}
	}
	return math.MaxInt64
}

// slope is the change of the level per second.
func (g segment) slope() float64 {
	if g.low == g.high {
		return 0
	}
	return (g.high - g.low) / (g.to - g.from)
}

// Peak is the highest level of the schedule.
func (s Schedule) Peak() float64 {
	top := 0.0
	for _, g := range s {
		top = max(top, g.low, g.high)
	}
	return top
}

// Final returns the level after the last segment.
func (s Schedule) Final() float64 {
	return s[len(s)-1].high
}

// FlatFrom is the instant, in nanoseconds, from which the level is constant.
func (s Schedule) FlatFrom() int64 {
	return nanoseconds(s[len(s)-1].from)
}

func nanoseconds(seconds float64) int64 {
	if ns := math.Ceil(seconds * 1e9); ns < math.MaxInt64 {
		return int64(ns)
	}
	return math.MaxInt64
}
