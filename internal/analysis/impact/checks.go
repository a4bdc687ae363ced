package impact

import (
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record/merged"
)

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
