package throughput

import (
	"fmt"
	"math"
	"slices"
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
	v, limit := Variation(rates), VariationLimit(steadyVariation, mid)
	if v >= limit {
		return false, fmt.Sprintf("throughput varies by %.1f %% (limit %.0f %%) over the last %s", 100*v,
			100*limit, window.Round(time.Millisecond))
	}
	trend := TheilSen(rates) * float64(len(rates)) / mid
	limit = VariationLimit(steadyTrend, mid)
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

// MedianDeviation is the median absolute deviation from the median (MAD), unscaled.
func MedianDeviation(values []float64) float64 {
	m := Median(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - m)
	}
	return Median(deviations)
}

// Variation is the coefficient of variation: sample standard deviation over mean; 0 for fewer than
// two values, +Inf for a mean of 0.
func Variation(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return 0
	}
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	if mean == 0 {
		return math.Inf(1)
	}
	return math.Sqrt(squares/(n-1)) / mean
}

// TheilSen is the median of the slopes between all pairs of values, per position (Theil 1950, Sen
// 1968): a trend that is robust against a few outliers.
func TheilSen(values []float64) float64 {
	var slopes []float64
	for i := range values {
		for j := i + 1; j < len(values); j++ {
			slopes = append(slopes, (values[j]-values[i])/float64(j-i))
		}
	}
	return Median(slopes)
}

// Residuals are values without their trend.
func Residuals(values []float64) []float64 {
	slope := TheilSen(values)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v - slope*(float64(i)-float64(len(values)-1)/2)
	}
	return out
}

// Median returns the median of values, 0 for none. It does not modify them.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(n-1)/2] + v[n/2]) / 2
}

// slowRate is the rate in requests/s below which limits on variation are doubled: the random
// variation of few requests is larger.
const slowRate = 200

// VariationLimit is base, or twice as much for a slow rate.
func VariationLimit(base, rate float64) float64 {
	if rate < slowRate {
		return 2 * base
	}
	return base
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// Trend draws the throughput of the complete record in at most width cells, each an equal part of
// the run and at least a second. A cell shows the lowest rate of any 1 s window in it, so that an
// outage of a second is visible in a run of any length. The highest cell is '█', the others are in
// proportion, rounded; '▁' is from 0 to 1/14 of it.
func Trend(s *merged.Series, width int) string {
	c := CurveOf(s)
	cells := min(width, c.N/c.Wide)
	if cells <= 0 {
		return ""
	}
	lowest := make([]float64, cells)
	highest := 0.0
	for k := range lowest {
		first, end := k*c.N/cells, (k+1)*c.N/cells
		lowest[k] = c.WindowRate(first)
		for i := first + 1; i+c.Wide <= end; i++ {
			lowest[k] = min(lowest[k], c.WindowRate(i))
		}
		highest = max(highest, lowest[k])
	}
	drawn := make([]rune, cells)
	for k, rate := range lowest {
		level := 0
		if highest > 0 {
			level = int(math.Round(rate / highest * float64(len(blocks)-1)))
		}
		drawn[k] = blocks[level]
	}
	return string(drawn)
}
