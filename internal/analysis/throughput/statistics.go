package throughput

import (
	"math"
	"slices"
)

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
