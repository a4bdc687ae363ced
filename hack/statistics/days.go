package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
)

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
