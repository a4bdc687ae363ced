package impact

import (
	"math"
	"slices"
)

// medianDeviation is the median absolute deviation from the median (MAD), unscaled.
func medianDeviation(values []float64) float64 {
	m := median(values)
	deviations := make([]float64, len(values))
	for i, v := range values {
		deviations[i] = math.Abs(v - m)
	}
	return median(deviations)
}

// variation is the coefficient of variation: sample standard deviation over mean; 0 for fewer than two values, +Inf for a mean of 0.
func variation(values []float64) float64 {
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

// theilSen is the median of the slopes between all pairs of values, per position (Theil 1950, Sen 1968): a trend that is robust against a few outliers.
func theilSen(values []float64) float64 {
	var slopes []float64
	for i := range values {
		for j := i + 1; j < len(values); j++ {
			slopes = append(slopes, (values[j]-values[i])/float64(j-i))
		}
	}
	return median(slopes)
}

// residuals are values without their trend.
func residuals(values []float64) []float64 {
	slope := theilSen(values)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v - slope*(float64(i)-float64(len(values)-1)/2)
	}
	return out
}

// median returns the median of values, 0 for none. It does not modify them.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(n-1)/2] + v[n/2]) / 2
}

// slowRate is the rate in requests/s below which limits on variation are doubled: the random variation of few requests is larger.
const slowRate = 200

// variationLimit is base, or twice as much for a slow rate.
func variationLimit(base, rate float64) float64 {
	if rate < slowRate {
		return 2 * base
	}
	return base
}
