package experiment

import (
	"math"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// withinWaits is what is told of a cell and its baseline. A load generator that waits for a CPU
// makes latencies greater, by an unknown part: a difference is only told if it holds whatever that
// part was. So is that there is none, where the two waited for different shares of the time.
func withinWaits(
	told compare.Comparison, f compare.Figure, c, baseline Cell,
	tell func(c, baseline Cell) compare.Comparison,
) compare.Comparison {
	told.Late, told.BaselineLate = lateOf(c, f), lateOf(baseline, f)
	differs := told.Verdict == compare.Better || told.Verdict == compare.Worse
	if max(told.Late, told.BaselineLate) == 0 ||
		!differs && !lateApart(f, told.Late, told.BaselineLate) {
		return told
	}
	return told.Within(tell(c.atLeast(f), baseline), tell(c, baseline.atLeast(f)))
}

// lateApart reports whether so many more requests may be late in one cell than in another that a
// quantile can differ for that: half of its tail.
func lateApart(f compare.Figure, late, other float64) bool {
	return f.Tail > 0 && 2*math.Abs(late-other) >= f.Tail
}

// lateOf is for which share of the requests of a cell a figure may be greater as the load generator
// waited for a CPU: the mean of the runs, so that a few of them count.
func lateOf(c Cell, f compare.Figure) float64 {
	sum, n := 0.0, 0
	for _, r := range c.Runs {
		if v, ok := r.Values[f.Name]; ok && r.Inconclusive == "" {
			sum, n = sum+v.Late, n+1
		}
	}
	return sum / float64(max(1, n))
}

// atLeast is a cell of which a figure is as small as it can have been.
func (c Cell) atLeast(f compare.Figure) Cell {
	c.Runs = slices.Clone(c.Runs)
	for i := range c.Runs {
		if v := c.Runs[i].Values[f.Name]; v.Late > 0 {
			c.Runs[i].Values = map[string]Value{f.Name: v.AtLeast(f)}
		}
	}
	return c
}

// AtLeast is the least that a figure can have been.
func (v Value) AtLeast(f compare.Figure) Value {
	if v.Late == 0 {
		return v
	}
	return Value{Value: max(v.Least, f.Floor), Censored: v.Censored}
}

// replaced are cells, those of some names with others.
func replaced(cells []Cell, by ...Cell) []Cell {
	cells = slices.Clone(cells)
	for i := range cells {
		for _, o := range by {
			if o.Name == cells[i].Name {
				cells[i] = o
			}
		}
	}
	return cells
}
