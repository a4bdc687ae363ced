package main

import (
	"math/rand/v2"
)

// testCase is a group of figures of the same simulated experiments.
type testCase struct {
	name string
	run  func(seed uint64) []measured
}

func random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 2026))
}

func allCases() []testCase {
	var all []testCase
	for _, part := range [][]testCase{
		equalCases(), smallCases(), powerCases(), driftCases(),
		recoveryCases(), lossCases(), earlierCases(), historyCases(),
	} {
		all = append(all, part...)
	}
	return all
}

// kinds are the kinds of noise, of throughput and of a latency. Limits above 5 % are those that the
// method does not hold.
func kinds() []struct {
	name                string
	throughput, latency noise
	limit               float64
} {
	return []struct {
		name                string
		throughput, latency noise
		limit               float64
	}{
		{"log-normal, CV 5 % and 40 %", logNormal(0.05), logNormal(0.4), 5},
		{"noise differs threefold", uneven(0.02, 0.06), uneven(0.2, 0.6), 5.3},
		{"noise differs tenfold", uneven(0.02, 0.2), uneven(0.06, 0.6), 10},
		{
			"outliers 5x in 3 % of runs", withOutliers(logNormal(0.05), 0.03, 0.2),
			withOutliers(logNormal(0.4), 0.03, 5), 5,
		},
		{
			"two modes, 20 % and 65 % apart", twoModes(logNormal(0.02), 0.2), twoModes(logNormal(0.1), 0.65),
			5,
		},
	}
}
