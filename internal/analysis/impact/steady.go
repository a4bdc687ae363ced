package impact

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Limits below which throughput is steady; twice that for slow loads.
const (
	steadyVariation = 0.05 // of the 1 s rates: sample standard deviation / mean
	steadyTrend     = 0.05 // |Theil-Sen slope| x window / median
)

// Steady reports whether throughput is steady over the last window of the complete record, rounded up to its steps, which must not begin before measuredFrom.
// The rates of a load whose planned rate changes are those for the level at the end. why is a sentence with the figures in both cases.
func Steady(s *record.Series, window, measuredFrom time.Duration, asked plan.Planned) (ok bool, why string) {
	c := newCurve(s.Fine(s.End()-roundedUp(window, s.PodStep), s.End()))
	window = roundedUp(window, c.step)
	first := c.ceil(max(c.at(c.n)-window, measuredFrom))
	if have := c.at(max(0, c.n-first)); have < window {
		return false, fmt.Sprintf("measured for %s of the %s that must be steady", have.Round(time.Millisecond), window.Round(time.Millisecond))
	}
	var planned level
	if asked.Rate {
		planned = levelOf(c, asked, c.n-1)
	}
	rates := planned.secondsBefore(c, first, c.n)
	if len(rates) < 3 {
		return false, fmt.Sprintf("%s are too short to tell whether throughput is steady", window.Round(time.Millisecond))
	}
	mid := median(rates)
	if mid <= 0 {
		return false, fmt.Sprintf("there were no successes over the last %s", window.Round(time.Millisecond))
	}
	if v, limit := variation(rates), variationLimit(steadyVariation, mid); v >= limit {
		return false, fmt.Sprintf("throughput varies by %.1f %% (limit %.0f %%) over the last %s", 100*v, 100*limit, window.Round(time.Millisecond))
	}
	trend, limit := theilSen(rates)*float64(len(rates))/mid, variationLimit(steadyTrend, mid)
	switch {
	case trend >= limit:
		return false, fmt.Sprintf("throughput rises by %.1f %% (limit %.0f %%) over the last %s", 100*trend, 100*limit, window.Round(time.Millisecond))
	case -trend >= limit:
		return false, fmt.Sprintf("throughput falls by %.1f %% (limit %.0f %%) over the last %s", -100*trend, 100*limit, window.Round(time.Millisecond))
	}
	return true, fmt.Sprintf("throughput is steady at %.0f requests/s (varies by %.1f %%) over the last %s", mid, 100*variation(rates), window.Round(time.Millisecond))
}

// roundedUp is the lowest multiple of step that is not below d.
func roundedUp(d, step time.Duration) time.Duration { return (d + step - 1) / step * step }
