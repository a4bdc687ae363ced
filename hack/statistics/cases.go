package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
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

// equalCases are experiments of 12 cells without any difference.
func equalCases() []testCase {
	var all []testCase
	for _, k := range kinds() {
		for _, n := range []int{2, 3, 4, 6, 10} {
			all = append(all, testCase{
				fmt.Sprintf("no difference, 12 cells, %s, %d repeats", k.name, n),
				func(seed uint64) []measured {
					s := setting{cells: 12, baseline: 2, rounds: n, figures: 2}
					return []measured{
						atMost("any claim", k.limit, equal(random(seed), s, k.throughput, k.latency, 2000)),
					}
				},
			})
		}
	}
	for _, n := range []int{2, 3, 6, 10} {
		all = append(all, testCase{
			fmt.Sprintf("no difference, 12 cells, drift of 20 %%, %d repeats", n),
			func(seed uint64) []measured {
				s := setting{cells: 12, baseline: 2, rounds: n, figures: 2, drift: 0.2}
				return []measured{
					atMost("any claim", 5, equal(random(seed), s, logNormal(0.05), logNormal(0.4), 2000)),
				}
			},
		})
	}
	for _, n := range []int{4, 6, 10} {
		all = append(all, testCase{
			fmt.Sprintf(
				"no difference, 12 cells, the baseline has a third of the greatest noise, %d repeats", n),
			func(seed uint64) []measured {
				s := setting{
					cells:         12,
					baseline:      2,
					rounds:        n,
					figures:       2,
					quietBaseline: true,
				}
				return []measured{
					atMost("any claim", 10, equal(random(seed), s, uneven(0.02, 0.06), uneven(0.2, 0.6), 2000)),
				}
			},
		})
		all = append(all, testCase{
			fmt.Sprintf(
				"no difference, 12 cells, the baseline has a tenth of the greatest noise, %d repeats", n),
			func(seed uint64) []measured {
				s := setting{
					cells:         12,
					baseline:      2,
					rounds:        n,
					figures:       2,
					quietBaseline: true,
				}
				return []measured{
					atMost("any claim", 20, equal(random(seed), s, uneven(0.02, 0.2), uneven(0.06, 0.6), 2000)),
				}
			},
		})
	}
	return append(all, testCase{
		"no difference, 12 cells, 10 % of the runs inconclusive, 3 repeats",
		func(seed uint64) []measured {
			s := setting{
				cells:        12,
				baseline:     4,
				rounds:       3,
				figures:      2,
				inconclusive: 0.1,
			}
			return []measured{
				atMost("any claim", 5, equal(random(seed), s, logNormal(0.05), logNormal(0.4), 2000)),
			}
		},
	})
}

// smallCases are experiments of few cells without any difference.
func smallCases() []testCase {
	var all []testCase
	for _, of := range []struct{ cells, least int }{{4, 3}, {2, 4}} {
		for _, k := range kinds() {
			for _, n := range []int{of.least, 6, 10} {
				all = append(all, testCase{
					fmt.Sprintf("no difference, %d cells, %s, %d repeats", of.cells, k.name, n),
					func(seed uint64) []measured {
						s := setting{cells: of.cells, baseline: 1, rounds: n, figures: 2}
						return []measured{
							atMost("any claim", max(5.8, k.limit),
								equal(random(seed), s, k.throughput, k.latency, 2000)),
						}
					},
				})
			}
		}
	}
	return all
}

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

// earlierCases are two experiments on two days without any difference but that of the days.
func earlierCases() []testCase {
	var all []testCase
	for _, w := range []struct{ day, cv, most float64 }{
		{0, 0.02, 0.5},
		{0, 0.05, 0.5},
		{0.02, 0.02, 2.5},
		{0.02, 0.05, 1},
	} {
		all = append(all, testCase{
			fmt.Sprintf("earlier run, days differ by %.0f %%, CV %.0f %%, 6 repeats", 100*w.day, 100*w.cv),
			func(seed uint64) []measured {
				r := random(seed)
				s := setting{cells: 12, baseline: 2, rounds: 6, figures: 1}
				var any share
				for range 600 {
					then := compare.New(s.design(), compare.Throughput,
						s.draw(r, 1000*math.Exp(w.day*r.NormFloat64()), logNormal(w.cv)))
					now := compare.New(s.design(), compare.Throughput,
						s.draw(r, 1000*math.Exp(w.day*r.NormFloat64()), logNormal(w.cv)))
					claim := false
					for c := range s.cells {
						claim = claim || claimed(now.Against(then, name(c), s.cells))
					}
					any.add(claim)
				}
				return []measured{atMost("any claim", w.most, any)}
			},
		})
	}
	return all
}

// historyCases are schedules of runs, with a step and without.
func historyCases() []testCase {
	var all []testCase
	for _, w := range []struct {
		name  string
		noise noise
		most  float64 // false alarms in 100 points
	}{
		{"log-normal, 5 %", logNormal(0.05), 0.06},
		{"outliers 5x in 3 %", withOutliers(logNormal(0.05), 0.03, 0.2), 0.18},
	} {
		all = append(all, testCase{"history without a change, " + w.name, func(seed uint64) []measured {
			r := random(seed)
			const series, points = 600, 100
			alarms := 0
			for range series {
				alarms += len(compare.Changes(seriesOf(r, points, points, 1, w.noise), 1e-9))
			}
			return []measured{
				{"false alarms per 100 points", 0, w.most, float64(alarms) / series * 100 / points},
			}
		}})
	}
	for _, w := range []struct {
		sd, ratio, delay, found float64 // median delay; found within 20 points
	}{{0.02, 1 / 1.1, 6, 95}, {0.02, 1 / 1.2, 2, 99}, {0.05, 1 / 1.1, 9, 95}, {0.05, 1 / 1.2, 6, 99}} {
		all = append(all, testCase{
			fmt.Sprintf("history, %.0f %% slower from point 40 on, noise of %.0f %%", 100*(1/w.ratio-1),
				100*w.sd),
			func(seed uint64) []measured {
				r := random(seed)
				var found share
				var delays []int
				for range 300 {
					delay := -1
					for _, c := range compare.Changes(seriesOf(r, 40, 60, w.ratio, logNormal(w.sd)), 0.05) {
						if c.Alarm >= 40 && delay < 0 {
							delay = c.Alarm - 40 + 1
						}
					}
					found.add(delay > 0)
					if delay > 0 {
						delays = append(delays, delay)
					}
				}
				return []measured{
					{"found within 20 points", w.found, 100, found.percent()},
					{"median delay in points", 0, w.delay, medianOf(delays)},
				}
			},
		})
	}
	return all
}

// seriesOf is a series of n points with a step after the first.
func seriesOf(r *rand.Rand, first, n int, ratio float64, of noise) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = 1000 * of(r, 0.5)
		if i >= first {
			values[i] *= ratio
		}
	}
	return values
}

func medianOf(values []int) float64 {
	if len(values) == 0 {
		return math.Inf(1)
	}
	slices.Sort(values)
	return float64(values[len(values)/2])
}
