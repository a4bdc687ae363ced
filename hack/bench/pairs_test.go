package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLeftOut: these are the critical values of the signed-rank test, two-sided at 5 %, of Wilcoxon's table.
func TestLeftOut(t *testing.T) {
	for rounds, want := range map[int]int{1: -1, 2: -1, 5: -1, 6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25, 20: 52, 25: 89} {
		if got := leftOut(rounds); got != want {
			t.Errorf("%d rounds: %d, want %d", rounds, got, want)
		}
	}
}

func TestPairedRatio(t *testing.T) {
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-12 }
	if estimate, low, high := pairedRatio([]float64{1, 4}); !near(estimate, 2) || low != 0 || high != 0 {
		t.Errorf("two rounds: %v, %v to %v; want 2 without an interval", estimate, low, high)
	}
	// Six rounds: least to most.
	if estimate, low, high := pairedRatio([]float64{4, 1, 1, 1, 1, 0.25}); !near(estimate, 1) || !near(low, 0.25) ||
		!near(high, 4) {
		t.Errorf("six rounds: %v, %v to %v; want 1, 0.25 to 4", estimate, low, high)
	}
	// Seven: two means are left out at each end, 16 itself and that of 16 and 1 above.
	if estimate, low, high := pairedRatio([]float64{1, 1, 16, 1, 1, 1, 1}); !near(estimate, 1) || !near(low, 1) ||
		!near(high, 4) {
		t.Errorf("seven rounds: %v, %v to %v; want 1, 1 to 4", estimate, low, high)
	}
	ratios := []float64{0.5, 0.55, 0.52, 0.61, 0.49, 0.53, 0.58}
	mirrored := make([]float64, len(ratios))
	for i, r := range ratios {
		mirrored[i] = 1 / r
	}
	estimate, low, high := pairedRatio(ratios)
	if e, l, h := pairedRatio(mirrored); !near(e, 1/estimate) || !near(l, 1/high) || !near(h, 1/low) {
		t.Errorf("with the tools exchanged %v, %v to %v; without %v, %v to %v", e, l, h, estimate, low, high)
	}
}

// TestPairedRatioCovers: the interval of seven rounds contains the truth in 95.3 % of cases, whatever the scale of the
// noise.
func TestPairedRatioCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const truth, times = 0.5, 4000
	covered := 0
	for range times {
		ratios := make([]float64, 7)
		for i := range ratios {
			round := rng.ExpFloat64() // what disturbs a round disturbs both tools
			ratios[i] = truth * math.Exp(0.05*rng.NormFloat64()*(1+round))
		}
		if _, low, high := pairedRatio(ratios); low <= truth && truth <= high {
			covered++
		}
	}
	if share := float64(covered) / times; share < 0.943 || share > 0.963 { // three standard errors
		t.Errorf("%.1f %% of the intervals contain the truth, not 95.3 %%", 100*share)
	}
}
