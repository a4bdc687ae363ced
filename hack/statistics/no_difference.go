package main

import (
	"fmt"
)

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
		for _, w := range []struct {
			part                string
			limit               float64
			throughput, latency noise
		}{
			{"third", 10, uneven(0.02, 0.06), uneven(0.2, 0.6)},
			{"tenth", 20, uneven(0.02, 0.2), uneven(0.06, 0.6)},
		} {
			all = append(all, testCase{
				fmt.Sprintf(
					"no difference, 12 cells, the baseline has a %s of the greatest noise, %d repeats", w.part, n),
				func(seed uint64) []measured {
					s := setting{
						cells:         12,
						baseline:      2,
						rounds:        n,
						figures:       2,
						quietBaseline: true,
					}
					return []measured{
						atMost("any claim", w.limit, equal(random(seed), s, w.throughput, w.latency, 2000)),
					}
				},
			})
		}
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
