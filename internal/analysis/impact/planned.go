package impact

import (
	"fmt"
	"math"
	"time"
)

// Planned is what a load asks for over time, whatever Redis serves. The zero value is a load that is constant, with no planned end.
type Planned struct {
	Mean      func(from, to time.Duration) float64 // planned requests/s or users on average over [from, to), counted from the start; nil = constant
	Rate      bool                                 // requests/s; otherwise users
	ThinkTime time.Duration                        // users: the pause between a reply and the next request
	Changes   []time.Duration                      // when the load becomes another one, whose throughput is not known; ascending, from the start
	InTurn    bool                                 // operations are sent one after the other
	End       time.Duration                        // of the load, from the start: what comes after it is drained; 0 = not known
}

// end is the index behind the complete intervals of the load, without those after its planned end.
func (p Planned) end(c *curve) int {
	if p.End == 0 {
		return c.n
	}
	return c.floor(p.End)
}

// Since returns the last change until an instant; 0 without one.
func (p Planned) Since(at time.Duration) time.Duration {
	since := time.Duration(0)
	for _, change := range p.Changes {
		if change <= at {
			since = change
		}
	}
	return since
}

const (
	// followedShare is the share of a planned rate that must succeed in the baseline: what a saturated Redis serves does not follow the plan.
	followedShare = 0.9
	// thinkShare is how many mean latencies the think time of users must last: then their throughput follows their number.
	thinkShare = 10
	// changedShare is the change of the planned level that counts, as a share of the level at t0.
	changedShare = 0.01
	// lowestLevel is the share of the level at t0 below which windows have too few requests to judge.
	lowestLevel = 0.1
	// servedShare is how much higher than ever before a planned rate may be for a load that did not recover: Redis may be unable to serve it.
	servedShare = 1.1
)

// level is the planned load of every interval of a curve, as a share of that at a reference interval.
type level struct {
	sums []float64 // of the intervals before i; nil = constant
}

// levelOf returns the level of a load; constant if the load is, or if nothing is planned at the reference.
func levelOf(c *curve, asked Planned, reference int) level {
	if asked.Mean == nil {
		return level{}
	}
	at := asked.Mean(c.at(reference), c.at(reference+1))
	if at <= 0 {
		return level{}
	}
	sums := make([]float64, c.n+1)
	for i := range c.n {
		sums[i+1] = sums[i] + asked.Mean(c.at(i), c.at(i+1))/at
	}
	return level{sums}
}

// mean is the mean level over the intervals [first, end); 1 for none.
func (l level) mean(first, end int) float64 {
	if l.sums == nil || end <= first {
		return 1
	}
	return (l.sums[end] - l.sums[first]) / float64(end-first)
}

// bounds are the lowest and the highest level of an interval of [first, end); 1 for none.
func (l level) bounds(first, end int) (lowest, highest float64) {
	lowest, highest = math.Inf(1), 0
	for i := first; i < end; i++ {
		lowest, highest = min(lowest, l.mean(i, i+1)), max(highest, l.mean(i, i+1))
	}
	if end <= first {
		return 1, 1
	}
	return lowest, highest
}

// secondsBefore returns the rates of the adjacent windows in [first, end), the last of which ends at end, in order of time. Each is divided by the
// level of its window; windows of a very low level are left out.
func (l level) secondsBefore(c *curve, first, end int) []float64 {
	var rates []float64
	for i := end - max(end-first, 0)/c.wide*c.wide; i < end; i += c.wide {
		if at := l.mean(i, i+c.wide); at >= lowestLevel {
			rates = append(rates, c.windowRate(i)/at)
		}
	}
	return rates
}

// follow sets the baseline as a function of the plan, if the throughput follows it: B is the expected rate at t0.
func (a *analysis) follow() {
	asked := a.options.Planned
	a.planned = levelOf(a.curve, asked, a.first)
	follows := a.planned.sums != nil
	if follows && asked.Rate {
		served := median(a.planned.secondsBefore(a.curve, a.baseFirst, a.first))
		follows = served >= followedShare*asked.Mean(a.curve.at(a.first), a.curve.at(a.first+1))
	} else if follows {
		latency := a.curve.latency(a.baseFirst, a.first)
		follows = latency.Count > 0 && asked.ThinkTime >= thinkShare*latency.Mean
	}
	if follows {
		a.expected = a.planned
	}
}

// expectedRate is the rate that the baseline implies for the intervals [first, end).
func (a *analysis) expectedRate(first, end int) float64 {
	return a.baseline * a.expected.mean(first, end)
}

// judgeable reports whether enough is planned for a window that its rate says something.
func (a *analysis) judgeable(first, end int) bool { return a.expected.mean(first, end) >= lowestLevel }

// planChange returns why the plan makes the figures doubtful, from the baseline to the end of the time that they depend on; "" = it does not.
func (a *analysis) planChange(recovered bool) string {
	c, asked := a.curve, a.options.Planned
	if since := asked.Since(a.judgedUntil()); since > c.at(a.baseFirst) {
		return fmt.Sprintf("another part of the load's plan begins %s after the start, with another throughput, between the start of the baseline and the end of the time that the figures depend on",
			brief(since))
	}
	if asked.Mean == nil {
		return ""
	}
	end := c.ceil(a.judgedUntil())
	amount := func(share float64) string {
		planned := share * asked.Mean(c.at(a.first), c.at(a.first+1))
		if asked.Rate {
			return fmt.Sprintf("%.0f requests/s", planned)
		}
		return fmt.Sprintf("%.0f users", planned)
	}
	if a.planned.sums == nil {
		return "nothing is planned at the injection"
	}
	lowest, highest := a.planned.bounds(a.baseFirst, end)
	if a.expected.sums == nil {
		if lowest < 1-changedShare || highest > 1+changedShare {
			return "the plan of the load changes from " + amount(lowest) + " to " + amount(highest) + " around the fault, and the throughput does not follow it in a known way"
		}
		return ""
	}
	if after, _ := a.planned.bounds(a.first, end); after < lowestLevel {
		return "the plan of the load falls to " + amount(after) + " after the fault, too little to judge"
	}
	_, served := a.planned.bounds(c.ceil(a.options.MeasuredFrom), a.first)
	if _, asked := a.planned.bounds(a.first, end); !recovered && asked > servedShare*max(served, 1) {
		return "the plan of the load rises to " + amount(asked) + " after the fault, more than was served before: whether Redis can serve it is not known"
	}
	return ""
}
