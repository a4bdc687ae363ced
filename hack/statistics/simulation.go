package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// measured is a figure of a case, in percent, and the range that is wanted.
type measured struct {
	what             string
	least, most, got float64
}

func (m measured) wanted() string {
	switch {
	case m.most == 100:
		return fmt.Sprintf(">= %.1f", m.least)
	case m.most < 1:
		return fmt.Sprintf("<= %.2f", m.most)
	}
	return fmt.Sprintf("<= %.1f", m.most)
}

// atLeast allows three standard errors of both simulations below a share of the table.
func atLeast(what string, percent float64, got share, of int) measured {
	p := percent / 100
	// 0.5: the table is rounded
	spread := 100*3*math.Sqrt(max(p*(1-p), 0.01)*(1/float64(got.of)+1/float64(of))) + 0.5
	return measured{what, max(0, percent-spread), 100, got.percent()}
}

// atMost allows two standard errors above a share that must not be exceeded.
func atMost(what string, percent float64, got share) measured {
	p := percent / 100
	return measured{what, 0, percent + 100*2*math.Sqrt(p*(1-p)/float64(got.of)), got.percent()}
}

// share counts how often something happened.
type share struct{ hits, of int }

func (s *share) add(hit bool) {
	s.of++
	if hit {
		s.hits++
	}
}

func (s share) percent() float64 {
	return 100 * float64(s.hits) / float64(s.of)
}

// noise draws the factor by which a run of a cell differs from its cell. The spread is the cell's
// own, from 0 to 1, drawn once for an experiment.
type noise func(r *rand.Rand, spread float64) float64

// logNormal has a coefficient of variation of cv.
func logNormal(cv float64) noise {
	sigma := math.Sqrt(math.Log1p(cv * cv))
	return func(r *rand.Rand, _ float64) float64 { return math.Exp(sigma * r.NormFloat64()) }
}

// uneven has a noise that differs between the cells, evenly on logarithms, from least to most.
func uneven(least, most float64) noise {
	return func(r *rand.Rand, spread float64) float64 {
		return logNormal(least*math.Pow(most/least, spread))(r, spread)
	}
}

// withOutliers has some runs that are far away.
func withOutliers(n noise, rate, factor float64) noise {
	return func(r *rand.Rand, spread float64) float64 {
		v := n(r, spread)
		if r.Float64() < rate {
			v *= factor
		}
		return v
	}
}

// twoModes has half of the runs apart: the pod is on the one node or on the other.
func twoModes(n noise, apart float64) noise {
	return func(r *rand.Rand, spread float64) float64 {
		v := n(r, spread)
		if r.IntN(2) == 0 {
			v *= 1 + apart
		}
		return v
	}
}

// setting is an experiment to simulate.
type setting struct {
	cells, baseline, rounds int // baseline: its runs per round
	figures                 int // primary ones
	drift                   float64
	inconclusive            float64
	quietBaseline           bool      // of all cells the baseline has the least noise
	ratios                  []float64 // of the cells to the baseline, cell 0; nil = 1
}

func (s setting) design() compare.Design {
	return compare.Design{
		Cells:        s.cells,
		RunsPerRound: s.cells - 1 + s.baseline,
		Baseline:     s.baseline,
		Comparisons:  (s.cells - 1) * s.figures,
	}
}

func name(cell int) string {
	return fmt.Sprintf("c%d", cell)
}

// draw makes the runs of an experiment, in rounds.
func (s setting) draw(r *rand.Rand, level float64, n noise) []compare.Run {
	var runs []compare.Run
	perRound := s.cells - 1 + s.baseline
	all := float64(s.rounds * perRound)
	spread := make([]float64, s.cells)
	for c := range spread {
		spread[c] = r.Float64()
	}
	if s.quietBaseline {
		spread[0] = 0
	}
	for round := range s.rounds {
		order := r.Perm(perRound)
		for at, slot := range order {
			cell := max(0, slot-s.baseline+1)
			v := level * n(r, spread[cell]) * (1 + s.drift*float64(round*perRound+at)/all)
			if s.ratios != nil {
				v *= s.ratios[cell]
			}
			run := compare.Run{Cell: name(cell), Round: round, Value: v}
			if r.Float64() < s.inconclusive {
				run.Outcome = compare.Dropped
			}
			runs = append(runs, run)
		}
	}
	return runs
}

// claims reports whether any comparison of an experiment says Better or Worse.
func claims(e *compare.Experiment, cells int) bool {
	for c := 1; c < cells; c++ {
		if claimed(e.Compare(name(c), name(0))) {
			return true
		}
	}
	return false
}

func claimed(c compare.Comparison) bool {
	return c.Verdict == compare.Better || c.Verdict == compare.Worse
}

// equal simulates experiments without any difference and returns the share of those that claim one,
// in throughput or in a latency.
func equal(r *rand.Rand, s setting, throughput, latency noise, experiments int) share {
	var any share
	for range experiments {
		claim := claims(compare.New(s.design(), compare.Throughput, s.draw(r, 1000, throughput)), s.cells)
		if s.figures > 1 {
			claim = claims(compare.New(s.design(), compare.LatencyP99, s.draw(r, 0.002, latency)),
				s.cells) || claim
		}
		any.add(claim)
	}
	return any
}
