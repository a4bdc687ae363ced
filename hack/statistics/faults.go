package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// recoveryCases have runs that do not recover by the deadline.
func recoveryCases() []testCase {
	var all []testCase
	for _, w := range []struct{ ratio, late, worse float64 }{
		{2, 0.2, 56},
		{2, 0.5, 48},
		{2, 0.8, 18},
		{4, 0.2, 100},
		{4, 0.5, 100},
		{4, 0.8, 98},
	} {
		all = append(all, testCase{
			fmt.Sprintf("recoveryTime, %.0f times, %.0f %% of the runs past the deadline, 6 repeats",
				w.ratio, 100*w.late),
			func(seed uint64) []measured {
				return []measured{atLeast("told Worse", w.worse, lateRuns(random(seed), w.ratio, w.late), 500)}
			},
		})
	}
	return all
}

// lateRuns simulates cells that take longer, of which a share of the runs is not over by the
// deadline.
func lateRuns(r *rand.Rand, ratio, late float64) share {
	const sigma, typical = 0.35, 10.0
	// The deadline that this share of the slow cell's runs exceeds.
	deadline := typical * ratio * math.Exp(sigma*normalQuantile(1-late))
	s := setting{
		cells:    12,
		baseline: 2,
		rounds:   6,
		figures:  2,
		ratios:   []float64{1, ratio, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	}
	n := func(r *rand.Rand, _ float64) float64 { return math.Exp(sigma * r.NormFloat64()) }
	var worse share
	for range 500 {
		runs := s.draw(r, typical, n)
		for i := range runs {
			if runs[i].Value > deadline {
				runs[i].Value, runs[i].Outcome = deadline, compare.Censored
			}
		}
		worse.add(compare.New(s.design(), compare.RecoveryTime, runs).Compare(name(1),
			name(0)).Verdict == compare.Worse)
	}
	return worse
}

func normalQuantile(p float64) float64 {
	return math.Sqrt2 * math.Erfinv(2*p-1)
}

// lossCases have faults of which a share loses writes, an amount that is log-normal.
func lossCases() []testCase {
	var all []testCase
	for _, w := range []struct {
		baseline, cell float64
		n, twice       int
		told           float64
	}{
		{0, 1, 3, 2, 0},
		{0, 1, 4, 2, 100},
		{0, 1, 6, 1, 100},
		{0, 1, 6, 2, 100},
		{0, 0.9, 4, 2, 63},
		{0, 0.9, 6, 1, 56},
		{0, 0.9, 6, 2, 89},
		{0, 0.9, 10, 2, 100},
		{0, 0.5, 6, 2, 14},
		{0, 0.5, 10, 2, 61},
		{0.3, 0.3, 6, 2, 0},
		{0.3, 0.3, 10, 2, 0},
	} {
		all = append(all, testCase{
			fmt.Sprintf("lostWrites in %.0f %% and %.0f %% of the faults, %d repeats, baseline %d times",
				100*w.baseline, 100*w.cell, w.n, w.twice),
			func(seed uint64) []measured {
				r := random(seed)
				d := compare.Design{
					Cells:        12,
					RunsPerRound: 11 + w.twice,
					Baseline:     w.twice,
					Comparisons:  11,
				}
				var told share
				for range 1000 {
					var runs []compare.Run
					add := func(cell string, round int, p float64) {
						lost := 0.0
						if r.Float64() < p {
							lost = math.Ceil(500 * math.Exp(r.NormFloat64()))
						}
						runs = append(runs, compare.Run{Cell: cell, Round: round, Value: lost})
					}
					for round := range w.n {
						for range w.twice {
							add("a", round, w.baseline)
						}
						add("b", round, w.cell)
					}
					told.add(claimed(compare.New(d, compare.LostWrites, runs).Compare("b", "a")))
				}
				if w.baseline == w.cell || w.told == 0 {
					return []measured{atMost("claimed", 0.45, told)} // 5 % over 11 comparisons
				}
				return []measured{atLeast("claimed", w.told, told, 1000)}
			},
		})
	}
	return all
}
