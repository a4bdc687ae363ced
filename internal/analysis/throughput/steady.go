package throughput

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// Limits below which throughput is steady; twice that for slow loads.
const (
	steadyVariation = 0.05 // of the 1 s rates: sample standard deviation / mean
	steadyTrend     = 0.05 // |Theil-Sen slope| x window / median
)

// Steady reports whether throughput is steady over the last window of the complete record, rounded
// up to its steps, which must not begin before measuredFrom.
// The rates of a load whose planned rate changes are those for the level at the end. why is a
// sentence with the figures in both cases.
func Steady(
	s *merged.Series, window, measuredFrom time.Duration, asked plan.Planned,
) (ok bool, why string) {
	c := CurveOf(s.Fine(s.End()-roundedUp(window, s.PodStep), s.End()))
	window = roundedUp(window, c.Step)
	first := c.Ceil(max(c.At(c.N)-window, measuredFrom))
	if have := c.At(max(0, c.N-first)); have < window {
		return false, fmt.Sprintf("measured for %s of the %s that must be steady",
			have.Round(time.Millisecond), window.Round(time.Millisecond))
	}
	var planned Level
	if asked.Rate {
		planned = LevelOf(c, asked, c.N-1)
	}
	rates := planned.SecondsBefore(c, first, c.N)
	if len(rates) < 3 {
		return false, fmt.Sprintf("%s are too short to tell whether throughput is steady",
			window.Round(time.Millisecond))
	}
	mid := Median(rates)
	if mid <= 0 {
		return false, fmt.Sprintf("there were no successes over the last %s",
			window.Round(time.Millisecond))
	}
	if v, limit := Variation(rates), VariationLimit(steadyVariation, mid); v >= limit {
		return false, fmt.Sprintf("throughput varies by %.1f %% (limit %.0f %%) over the last %s", 100*v,
			100*limit, window.Round(time.Millisecond))
	}
	trend := TheilSen(rates) * float64(len(rates)) / mid
	limit := VariationLimit(steadyTrend, mid)
	switch {
	case trend >= limit:
		return false, fmt.Sprintf("throughput rises by %.1f %% (limit %.0f %%) over the last %s",
			100*trend, 100*limit, window.Round(time.Millisecond))
	case -trend >= limit:
		return false, fmt.Sprintf("throughput falls by %.1f %% (limit %.0f %%) over the last %s",
			-100*trend, 100*limit, window.Round(time.Millisecond))
	}
	return true, fmt.Sprintf(
		"throughput is steady at %.0f requests/s (varies by %.1f %%) over the last %s", mid,
		100*Variation(rates), window.Round(time.Millisecond))
}

// roundedUp is the lowest multiple of step that is not below d.
func roundedUp(d, step time.Duration) time.Duration {
	return (d + step - 1) / step * step
}
