package compare

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// model is the fit of value = cell + round + noise by least squares, on logarithms.
type model struct {
	effects  map[string]float64 // of each cell, with rounds centred on 0
	runs     map[string]int     // of each cell
	own      map[string]float64 // the variance of each cell alone
	variance float64            // pooled
	df       int
}

// sample is a value of one run.
type sample struct {
	cell  string
	round int
	value float64
}

// fit fits the model.
func fit(samples []sample) model {
	cells, rounds := map[string]float64{}, map[int]float64{}
	m := model{
		effects: cells,
		runs:    map[string]int{},
		own:     map[string]float64{},
	}
	perRoundSeen := map[int]int{}
	for _, s := range samples {
		m.runs[s.cell]++
		perRoundSeen[s.round]++
	}
	// Alternating means converge to the least squares, as every block is complete but for inconclusive
	// runs.
	for range 10000 {
		moved := means(cells, m.runs, samples, func(s sample) (string, float64) {
			return s.cell,
				s.value - rounds[s.round]
		})
		moved = max(moved, means(rounds, perRoundSeen, samples, func(s sample) (int, float64) {
			return s.round, s.value - cells[s.cell]
		}))
		if moved < 1e-13 {
			break
		}
	}
	centre(cells, rounds)
	m.residuals(samples, rounds)
	return m
}

// means sets each effect to the mean of what remains for it, and returns the largest change.
func means[K comparable](
	effects map[K]float64, counts map[K]int, samples []sample, remains func(sample) (K, float64),
) (moved float64) {
	sums := map[K]float64{}
	for _, s := range samples {
		k, v := remains(s)
		sums[k] += v
	}
	for k, sum := range sums {
		mean := sum / float64(counts[k])
		moved = max(moved, math.Abs(mean-effects[k]))
		effects[k] = mean
	}
	return moved
}

// centre moves the rounds to a mean of 0.
func centre(cells map[string]float64, rounds map[int]float64) {
	mean := 0.0
	for _, round := range slices.Sorted(maps.Keys(rounds)) {
		mean += rounds[round] / float64(len(rounds))
	}
	for r := range rounds {
		rounds[r] -= mean
	}
	for c := range cells {
		cells[c] += mean
	}
}

// residuals sets the variances.
func (m *model) residuals(samples []sample, rounds map[int]float64) {
	total := 0.0
	squares := map[string]float64{}
	for _, s := range samples {
		r := s.value - m.effects[s.cell] - rounds[s.round]
		squares[s.cell] += r * r
		total += r * r
	}
	m.df = len(samples) - len(m.effects) - len(rounds) + 1
	if m.df > 0 {
		m.variance = total / float64(m.df)
	}
	// runs per round: the fit of a round has taken its part of the noise
	q := float64(len(samples)) / float64(len(rounds))
	for cell, sum := range squares {
		if n := m.runs[cell]; n > 1 && q > 1 {
			m.own[cell] = sum / float64(n-1) * q / (q - 1)
		}
	}
}

// part is the variance of a cell's effect: the greater of its own and the pooled one. The pooled
// one stops a few runs that are close by chance, its own a cell with more noise than the others.
func (m model) part(cell string) float64 {
	return max(m.own[cell], m.variance) / float64(m.runs[cell])
}

// student is a difference of two effects with its standard error.
type student struct {
	estimate, se float64
	df           int
}

func (m model) difference(cell, baseline string) student {
	return student{
		m.effects[cell] - m.effects[baseline], math.Sqrt(m.part(cell) + m.part(baseline)),
		m.df,
	}
}

// p is two-sided.
func (s student) p() float64 {
	if s.se == 0 {
		if s.estimate == 0 {
			return 1
		}
		return 0
	}
	return min(1, 2*s.distribution().Survival(math.Abs(s.estimate)/s.se))
}

func (s student) interval(alpha float64) Interval {
	half := s.distribution().Quantile(1-alpha/2) * s.se
	return Interval{s.estimate - half, s.estimate + half}
}

func (s student) distribution() distuv.StudentsT {
	return distuv.StudentsT{
		Mu:    0,
		Sigma: 1,
		Nu:    float64(s.df),
	}
}
