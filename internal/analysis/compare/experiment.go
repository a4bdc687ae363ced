package compare

import (
	"maps"
	"math"
	"slices"
)

// Outcome is what a run gave for a figure.
type Outcome int

// The outcomes.
const (
	Conclusive Outcome = iota
	Dropped            // no verdict: the value is dropped, and counted
	Censored           // it was not over by the deadline: the figure is the run's value or more
)

// Run is the figure of one run of a cell.
type Run struct {
	Cell    string
	Round   int
	Value   float64 // of a censored one the deadline
	Outcome Outcome
}

// Design is an experiment as it was planned, before anything ran.
type Design struct {
	Cells        int
	RunsPerRound int // of all cells
	Baseline     int // runs per round of a baseline cell
	Comparisons  int // compared cells x primary figures: what the level is divided by
	// the probability that any of them claims a difference where there is none; 0 = 5 %
	Alpha float64
}

// level is that of one comparison.
func (d Design) level() float64 {
	alpha := d.Alpha
	if alpha == 0 {
		alpha = 0.05
	}
	return alpha / float64(max(d.Comparisons, 1))
}

// Experiment is one figure of an experiment.
type Experiment struct {
	design Design
	figure Figure
	cells  map[string]*cell
	model  *model // nil: a value is censored or floored, or the figure is counted
}

// cell is the runs of one cell.
type cell struct {
	runs    []timed // conclusive ones
	dropped int
}

// timed is a value of a round.
type timed struct {
	round int
	raw   span
	log   span // of max(raw, floor); of a counted figure raw
}

// New takes over the runs of an experiment.
func New(design Design, figure Figure, runs []Run) *Experiment {
	e := &Experiment{
		design: design,
		figure: figure,
		cells:  map[string]*cell{},
	}
	exact := !figure.Counted
	var samples []sample
	for _, r := range runs {
		c := e.cells[r.Cell]
		if c == nil {
			c = &cell{}
			e.cells[r.Cell] = c
		}
		if r.Outcome == Dropped || math.IsNaN(r.Value) {
			c.dropped++
			continue
		}
		v := e.timed(r)
		c.runs = append(c.runs, v)
		exact = exact && r.Outcome == Conclusive && r.Value > figure.Floor
		samples = append(samples, sample{r.Cell, r.Round, v.log.least})
	}
	if exact && len(samples) > 0 {
		m := fit(samples)
		e.model = &m
	}
	return e
}

func (e *Experiment) timed(r Run) timed {
	v := timed{round: r.Round, raw: exactly(r.Value)}
	v.log = v.raw
	if !e.figure.Counted {
		v.log = exactly(math.Log(max(r.Value, e.figure.Floor)))
	}
	if r.Outcome == Censored {
		v.raw.most, v.log.most = math.Inf(1), math.Inf(1)
	}
	return v
}

// n is the number of conclusive runs.
func (c *cell) n() int {
	return len(c.runs)
}

// tooManyDropped reports whether more than a third of the runs were inconclusive, or there are
// none.
func (c *cell) tooManyDropped() bool {
	return c.n() == 0 || 3*c.dropped > c.n()+c.dropped
}

// median is that of the values. It lies above a censored value.
func (c *cell) median() (value float64, atLeast bool) {
	var least, most []float64
	for _, r := range c.runs {
		least, most = append(least, r.raw.least), append(most, r.raw.most)
	}
	value = MedianOf(least)
	return value, MedianOf(most) > value
}

// Limits below which a round has no offset: fewer cells or values tell of their own noise instead.
const (
	fewestOtherCells = 5
	fewestInRound    = 3
)

// offsets is what each round adds to all cells, told by the cells that are not compared: it cannot
// correlate with the comparison then.
func (e *Experiment) offsets(except ...string) map[int]float64 {
	residuals, others := map[int][]float64{}, 0
	for _, name := range slices.Sorted(maps.Keys(e.cells)) {
		c := e.cells[name]
		if slices.Contains(except, name) || c.n() == 0 {
			continue
		}
		others++
		own := c.logMedian()
		for _, r := range c.runs {
			v := r.log.most - own
			if !math.IsInf(v, 0) && !math.IsNaN(v) {
				residuals[r.round] = append(residuals[r.round], v)
			}
		}
	}
	all := map[int]float64{}
	for round, of := range residuals {
		if others >= fewestOtherCells && len(of) >= fewestInRound {
			all[round] = MedianOf(of)
		}
	}
	return all
}

func (c *cell) logMedian() float64 {
	var values []float64
	for _, r := range c.runs {
		values = append(values, r.log.most)
	}
	return MedianOf(values)
}

// without are the values of a cell less those of their rounds.
func (c *cell) without(offsets map[int]float64) []span {
	var values []span
	for _, r := range c.runs {
		values = append(values, r.log.minus(exactly(offsets[r.round])))
	}
	return values
}

func ranksOf(values []span) []float64 {
	ranks := make([]float64, len(values))
	for i, v := range values {
		ranks[i] = v.rank()
	}
	return ranks
}
