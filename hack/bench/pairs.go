package main

import (
	"math"
	"slices"
)

// confidence is the least probability with which an interval contains the ratio.
const confidence = 0.95

// Figures that are compared.
const (
	figureCPU       = "cpu"
	figurePerSecond = "requestsPerSecond"
	figureP50       = "p50"
	figureP99       = "p99"
)

// ratio compares two tools in one figure: that of the first divided by that of the second in the
// same round, over all rounds.
type ratio struct {
	Case   string  `json:"case"`
	Figure string  `json:"figure"` // cpu, requestsPerSecond, p50 or p99: latencies from the send on
	One    string  `json:"one"`
	Other  string  `json:"other"`
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"low"` // Low and High are 0 with too few rounds for an interval
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// pairedRatio estimates the ratio that the rounds scatter around: the median of the geometric means
// of all pairs of rounds (Hodges and Lehmann), with the interval that belongs to Wilcoxon's
// signed-rank test. It assumes that disturbances hit both tools alike, not how they are
// distributed. low and high are 0 for fewer than six rounds: no interval of theirs has the
// confidence.
func pairedRatio(ratios []float64) (estimate, low, high float64) {
	var means []float64 // logarithms
	for i := range ratios {
		for j := range i + 1 {
			means = append(means, math.Log(ratios[i]*ratios[j])/2)
		}
	}
	slices.Sort(means)
	if out := leftOut(len(ratios)); out >= 0 {
		low, high = math.Exp(means[out]), math.Exp(means[len(means)-1-out])
	}
	return math.Exp(median(means)), low, high
}

// leftOut is how many of the sorted means of pairs lie outside of the interval at each end; -1 if
// even the whole range has not the confidence.
func leftOut(rounds int) int {
	// ways[s] is in how many ways the ranks 1 to rounds can be signed so that the positive ones add up
	// to s.
	ways := make([]float64, rounds*(rounds+1)/2+1)
	ways[0] = 1
	for rank := 1; rank <= rounds; rank++ {
		for s := len(ways) - 1; s >= rank; s-- {
			ways[s] += ways[s-rank]
		}
	}
	out := -1
	for tail := ways[0]; 2*tail <= (1-confidence)*math.Exp2(float64(rounds)); tail += ways[out+1] {
		out++
	}
	return out
}
