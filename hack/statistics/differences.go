package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// told are the verdicts on cells that differ from the baseline by a factor.
type told struct{ worse, better, same share }

// verdictsBy simulates experiments of 12 cells and 2 figures and returns the verdicts by the factor
// of the cell.
func verdictsBy(
	r *rand.Rand, s setting, f compare.Figure, level float64, n noise, experiments int,
) map[float64]*told {
	by := map[float64]*told{}
	for range experiments {
		e := compare.New(s.design(), f, s.draw(r, level, n))
		for c := 1; c < s.cells; c++ {
			t := by[s.ratios[c]]
			if t == nil {
				t = &told{}
				by[s.ratios[c]] = t
			}
			v := e.Compare(name(c), name(0)).Verdict
			t.worse.add(v == compare.Worse)
			t.better.add(v == compare.Better)
			t.same.add(v == compare.Same)
		}
	}
	return by
}

// powerCases are planted differences: the shares of docs/statistics.md and of the simulations
// behind it, of 500 experiments each.
func powerCases() []testCase {
	const tableOf = 500
	type row struct {
		cv, margin       float64
		n                int
		ten, twenty, two float64 // % told of 10 %, 20 %, and half the throughput
		same             float64
	}
	var all []testCase
	for _, w := range []row{
		{0.02, 0.05, 3, 98, 100, 100, 85},
		{0.02, 0.05, 6, 100, 100, 100, 99},
		{0.05, 0.10, 3, 18, 87, 100, 55},
		{0.05, 0.10, 4, 35, 97, 100, 76},
		{0.05, 0.10, 6, 46, 99, 100, 91},
		{0.05, 0.10, 10, 87, 100, 100, 100},
		{0.08, 0.10, 6, 10, 66, 100, 33},
		{0.08, 0.10, 10, 31, 97, 100, 75},
	} {
		all = append(all, testCase{
			fmt.Sprintf("throughput, CV %.0f %%, %d repeats", 100*w.cv, w.n),
			func(seed uint64) []measured {
				s := setting{
					cells:    12,
					baseline: 2,
					rounds:   w.n,
					figures:  2,
					ratios:   []float64{1, 1, 1, 1, 1, 1, 1 / 1.1, 1 / 1.1, 1 / 1.2, 1 / 1.2, 0.5, 0.5},
				}
				f := compare.Throughput
				f.Margin = compare.Margin{Relative: w.margin}
				by := verdictsBy(random(seed), s, f, 1000, logNormal(w.cv), 500)
				worse := func(ratio, percent float64) measured {
					return atLeast(fmt.Sprintf("%.0f %% slower told Worse", 100*(1/ratio-1)), percent,
						by[ratio].worse, tableOf)
				}
				var wrong share
				for ratio, t := range by {
					if ratio != 1 {
						wrong.hits, wrong.of = wrong.hits+t.better.hits, wrong.of+t.better.of
					}
				}
				found := []measured{
					worse(0.5, w.two),
					atLeast(fmt.Sprintf("equal told Same within %.0f %%", 100*w.margin), w.same, by[1].same,
						tableOf), atMost("told Better", 0.07, wrong),
				}
				if w.margin <= 0.05 { // a difference of the size of the margin may be told the same
					found = append(found, worse(1/1.1, w.ten))
				}
				return append(found, worse(1/1.2, w.twenty))
			},
		})
	}
	for _, n := range []int{3, 6, 10} {
		all = append(all, testCase{
			fmt.Sprintf("throughput, CV 5 %%, %d repeats, a true difference of the margin", n),
			func(seed uint64) []measured {
				s := setting{
					cells:    12,
					baseline: 2,
					rounds:   n,
					figures:  2,
					ratios:   []float64{1},
				}
				for range 11 {
					s.ratios = append(s.ratios, 1/1.1)
				}
				f := compare.Throughput
				f.Margin = compare.Margin{Relative: 0.1}
				return []measured{
					atMost("told Same", 5, verdictsBy(random(seed), s, f, 1000, logNormal(0.05), 500)[1/1.1].same),
				}
			},
		})
	}
	return all
}

// driftCases are experiments on a machine that becomes slower.
func driftCases() []testCase {
	var all []testCase
	for _, w := range []struct{ cv, ten float64 }{{0.02, 100}, {0.05, 51}} {
		all = append(all, testCase{
			fmt.Sprintf("drift of 20 %%, CV %.0f %%, 6 repeats", 100*w.cv),
			func(seed uint64) []measured {
				r, n := random(seed), logNormal(w.cv)
				s := setting{cells: 12, baseline: 2, rounds: 6, figures: 1, drift: -0.2}
				none := equal(r, s, n, nil, 1000)
				s.ratios = []float64{1, 1, 1, 1, 1, 1, 1, 1, 1 / 1.1, 1 / 1.1, 1 / 1.2, 1 / 1.2}
				by := verdictsBy(r, s, compare.Throughput, 1000, n, 500)
				return []measured{
					atMost("any false claim", 5, none),
					atLeast("10 % slower told Worse", w.ten, by[1/1.1].worse, 500),
					atLeast("20 % slower told Worse", 100, by[1/1.2].worse, 500),
				}
			},
		})
	}
	return all
}
