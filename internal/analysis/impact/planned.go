package impact

import (
	"fmt"

	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record/merged"
)

const (
	// followedShare is the share of a planned rate that must succeed in the baseline: what a saturated
	// Redis serves does not follow the plan.
	followedShare = 0.9
	// thinkShare is how many mean latencies the think time of users must last: then their throughput
	// follows their number.
	thinkShare = 10
	// servedShare is how much higher than ever before a planned rate may be for a load that did not
	// recover: Redis may be unable to serve it.
	servedShare = 1.1
)

// follow sets the baseline as a function of the plan, if the throughput follows it: B is the
// expected rate at t0.
func (a *analysis) follow() {
	asked := a.options.Planned
	a.planned = throughput.LevelOf(a.curve, asked, a.first)
	follows := !a.planned.IsConstant()
	if follows && asked.Rate {
		served := throughput.Median(a.planned.SecondsBefore(a.curve, a.base.first, a.first))
		follows = served >= followedShare*asked.Mean(a.curve.At(a.first), a.curve.At(a.first+1))
	} else if follows {
		latency := a.curve.Latency(a.base.first, a.first)
		follows = latency.Count > 0 && asked.ThinkTime >= thinkShare*latency.Mean
	}
	if follows {
		a.expected = a.planned
	}
}

// expectedRate is the rate that the baseline implies for the intervals [first, end).
func (a *analysis) expectedRate(first, end int) float64 {
	return a.base.rate * a.expected.Mean(first, end)
}

// judgeable reports whether enough is planned for a window that its rate says something.
func (a *analysis) judgeable(first, end int) bool {
	return a.expected.Mean(first, end) >= throughput.LowestLevel
}

// planChange returns why the plan makes the figures doubtful, from the baseline to the end of the
// time that they depend on; "" = it does not.
func (a *analysis) planChange(recovered bool) string {
	c, asked := a.curve, a.options.Planned
	since := asked.Since(a.judgedUntil())
	if since > c.At(a.base.first) {
		return fmt.Sprintf(
			"another part of the load's plan begins %s after the start, with another throughput, between "+
				"the start of the baseline and the end of the time that the figures depend on",
			brief(since))
	}
	if asked.Mean == nil {
		return ""
	}
	end := c.Ceil(a.judgedUntil())
	amount := func(share float64) string {
		planned := share * asked.Mean(c.At(a.first), c.At(a.first+1))
		if asked.Rate {
			return fmt.Sprintf("%.0f requests/s", planned)
		}
		return fmt.Sprintf("%.0f users", planned)
	}
	if a.planned.IsConstant() {
		return "nothing is planned at the injection"
	}
	lowest, highest := a.planned.Bounds(a.base.first, end)
	if a.expected.IsConstant() {
		if lowest < 1-throughput.ChangedShare || highest > 1+throughput.ChangedShare {
			return "the plan of the load changes from " + amount(lowest) + " to " + amount(highest) +
				" around the fault, and the throughput does not follow it in a known way"
		}
		return ""
	}
	after, _ := a.planned.Bounds(a.first, end)
	if after < throughput.LowestLevel {
		return "the plan of the load falls to " + amount(after) + " after the fault, too little to judge"
	}
	_, served := a.planned.Bounds(c.Ceil(a.options.MeasuredFrom), a.first)
	if _, asked := a.planned.Bounds(a.first, end); !recovered && asked > servedShare*max(served, 1) {
		return "the plan of the load rises to " + amount(asked) +
			" after the fault, more than was served before: whether Redis can serve it is not known"
	}
	return ""
}

// Check is a reason for doubt that was looked for: a figure, and from which limit on it is a doubt.
// Durations are in seconds.
type Check struct {
	Reason string // of the doubt
	What   string // the figure, in words
	Found  float64
	Limit  float64
	Least  bool // Found must be at least Limit, or above it if that is 0; otherwise at most
	Unit   CheckUnit
}

// CheckUnit is the unit of a Check.
type CheckUnit int

// The units.
const (
	CheckSeconds CheckUnit = iota
	CheckCount
	CheckShare // from 0 to 1
	CheckRate  // per second
)

// Passed reports whether the figure is no reason for doubt.
func (c *Check) Passed() bool {
	switch {
	case !c.Least:
		return c.Found <= c.Limit
	case c.Limit == 0:
		return c.Found > 0
	}
	return c.Found >= c.Limit
}

// Checks are the reasons for doubt about the figures of a fault that depend on a number, whether
// they are a doubt or not.
func Checks(s *merged.Series, f Fault, o Options) []Check {
	a := newAnalysis(s, f, o.WithDefaults())
	c := a.curve
	a.until = a.limit
	if recovered, ok := a.recovery(); ok {
		a.until = recovered.at
	}
	_, _, pods := a.fewerPods()
	after := max(0, min(c.At(c.N), s.End())-a.until)
	return []Check{
		{NoLoad, "throughput before the fault", a.base.rate, 0, true, CheckRate},
		{
			BaselineTooShort, "measured before the fault", c.At(a.first - a.base.first).Seconds(),
			a.options.BaselineMinimum.Seconds(), true, CheckSeconds,
		},
		{
			TooFewSamples, "successes before the fault", float64(c.OK[a.first] - c.OK[a.base.first]),
			fewSamples, true, CheckCount,
		},
		{
			BaselineUnsteady, "variation of the 1 s rates before the fault",
			throughput.Variation(a.base.seconds), throughput.VariationLimit(baselineVariation, a.base.rate),
			false, CheckShare,
		},
		{
			RecordIncomplete, "load pods that delivered around the fault", float64(pods),
			float64(c.Series.Pods), true, CheckCount,
		},
		{
			RecordIncomplete, "the load went on after the recovery", after.Seconds(),
			a.options.SustainFor.Seconds(), true, CheckSeconds,
		},
		{
			CoarseRecord, "step of the record around the fault", c.Series.Step.Seconds(),
			c.Series.PodStep.Seconds(), false, CheckSeconds,
		},
	}
}
