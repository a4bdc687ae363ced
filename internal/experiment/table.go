package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// Cell is the runs of one setting.
type Cell struct {
	Name     string
	Baseline string // the name of the cell that it is compared with; "" = the first one
	Runs     []Run
}

// Question is what a comparison asks.
type Question struct {
	Primary []compare.Figure // those to compare; empty = chosen from the runs
	Margins map[string]compare.Margin
	Design  *compare.Design // as planned; nil = what there is: the i-th runs of all cells are a round
}

// table is a comparison under way.
type table struct {
	cells []Cell // in the order of their runs' starts
	of    compare.Design
	out   *comparisons.Comparisons
}

// NotMeasured is the reason of a comparison for which the runs of a cell have no figure.
const NotMeasured = "NotMeasured"

// Table compares cells with their baselines.
func Table(cells []Cell, q Question) *comparisons.Comparisons {
	t := &table{cells: slices.Clone(cells)}
	for i := range t.cells {
		t.cells[i].Runs = slices.SortedStableFunc(slices.Values(t.cells[i].Runs), func(a, b Run) int {
			return a.Start.Compare(b.Start)
		})
	}
	primary := q.Primary
	if len(primary) == 0 {
		primary = primaryOf(t.cells)
	}
	if q.Design == nil {
		t.of = t.designOf(len(primary))
		t.setRounds()
	} else {
		t.of = *q.Design
	}
	t.out = &comparisons.Comparisons{
		Version:     comparisons.Version,
		Baseline:    t.baseline(),
		Comparisons: []comparisons.Comparison{},
		Notes:       t.notes(),
	}
	for i, figure := range ordered(primary) {
		if m, ok := q.Margins[figure.Name]; ok {
			figure.Margin = m
		}
		t.compare(figure, i < len(primary))
	}
	return t.out
}

// compared are the cells that are compared with another one.
func (t *table) compared() []Cell {
	var cells []Cell
	for _, c := range t.cells {
		if t.baselineOf(c).Name != c.Name {
			cells = append(cells, c)
		}
	}
	return cells
}

// baseline is the name of the cell that all others are compared with; "" = there are several.
func (t *table) baseline() string {
	name := t.cells[0].Name
	for i, c := range t.compared() {
		switch of := t.baselineOf(c).Name; {
		case i == 0:
			name = of
		case of != name:
			return ""
		}
	}
	return name
}

// baselineOf is the cell that one is compared with.
func (t *table) baselineOf(c Cell) Cell {
	i := slices.IndexFunc(t.cells, func(o Cell) bool { return o.Name == c.Baseline })
	return t.cells[max(i, 0)]
}

// compare adds a figure of all cells. Of one without a verdict nothing is told where it was not
// measured.
func (t *table) compare(f compare.Figure, primary bool) {
	d := t.of
	if !primary {
		d.Comparisons = 1 // an ordinary interval
	}
	together := compare.New(d, f, runsOf(t.cells, f))
	for _, c := range t.compared() {
		baseline := t.baselineOf(c)
		if !has(baseline.Runs, f) || !has(c.Runs, f) {
			if primary {
				t.out.Comparisons = append(t.out.Comparisons, notMeasured(c, baseline, f))
			}
			continue
		}
		tell := func(together *compare.Experiment, c, baseline Cell) compare.Comparison {
			if apart(c, baseline) {
				return alone(d, f, c, c.Name).Against(alone(d, f, baseline, c.Name), c.Name, d.Comparisons)
			}
			return together.Compare(c.Name, baseline.Name)
		}
		comparison := withinWaits(tell(together, c, baseline), f, c, baseline,
			func(c, baseline Cell) compare.Comparison {
				return tell(compare.New(d, f, runsOf(replaced(t.cells, c, baseline), f)), c, baseline)
			})
		row := rowOf(comparison, f, primary)
		row.Cell, row.Baseline = c.Name, baseline.Name
		if primary {
			row.Verdict = string(comparison.Verdict)
			row.Reason = string(comparison.Reason)
			row.Message = comparison.Message(f, baseline.Name)
			row.NotWorse = met(comparison, compare.RequireNotWorse, f)
			row.Same = met(comparison, compare.RequireSame, f)
		}
		t.out.Comparisons = append(t.out.Comparisons, row)
	}
}

// notMeasured is a comparison of a figure that was asked for and that the runs do not have.
func notMeasured(c, baseline Cell, f compare.Figure) comparisons.Comparison {
	of := c.Name
	if !has(baseline.Runs, f) {
		of = baseline.Name
	}
	return comparisons.Comparison{
		Cell:     c.Name,
		Baseline: baseline.Name,
		Figure:   f.Name,
		Unit:     UnitOf(f),
		Primary:  true,
		Verdict:  string(compare.Inconclusive),
		Reason:   NotMeasured,
		Message:  fmt.Sprintf("inconclusive: the runs of %s do not have this figure", of),
	}
}

// apart reports whether all runs of one cell were before those of the other: they have no rounds in
// common, and differ as two days do.
func apart(a, b Cell) bool {
	if len(a.Runs) < 2 || len(b.Runs) < 2 || a.Runs[0].Start.IsZero() || b.Runs[0].Start.IsZero() {
		return false
	}
	return last(a).Before(b.Runs[0].Start) || last(b).Before(a.Runs[0].Start)
}

func last(c Cell) time.Time {
	return c.Runs[len(c.Runs)-1].Start
}

// alone is an experiment of one cell, without rounds.
func alone(d compare.Design, f compare.Figure, c Cell, name string) *compare.Experiment {
	d.Cells, d.Baseline, d.RunsPerRound = 1, 1, 1
	var runs []compare.Run
	for _, r := range c.Runs {
		runs = append(runs, valueOf(r, f, name, 0))
	}
	return compare.New(d, f, runs)
}

// ordered is the primary figures and then the others.
func ordered(primary []compare.Figure) []compare.Figure {
	all := slices.Clone(primary)
	for _, f := range compare.Figures() {
		if !slices.ContainsFunc(primary, func(o compare.Figure) bool { return o.Name == f.Name }) {
			all = append(all, f)
		}
	}
	return all
}

// primaryOf are the figures that are compared unless others are named: of runs with faults the
// outage and the recovery, of others the latency, and the throughput of users or the errors at a
// rate; the lost writes where they were counted.
func primaryOf(cells []Cell) []compare.Figure {
	var figures []compare.Figure
	all := allRuns(cells)
	if has(all, compare.RecoveryTime) {
		figures = append(figures, compare.Outage, compare.RecoveryTime)
	} else {
		open := 0
		for _, r := range all {
			if r.OpenLoop {
				open++
			}
		}
		switch open {
		case 0:
			figures = append(figures, compare.Throughput, compare.LatencyP99)
		case len(all):
			figures = append(figures, compare.ErrorRate, compare.LatencyP99)
		default: // their latencies are different figures
			figures = append(figures, compare.ErrorRate)
		}
	}
	if has(all, compare.LostWrites) {
		figures = append(figures, compare.LostWrites)
	}
	if has(all, compare.LockOverlaps) {
		figures = append(figures, compare.LockOverlaps)
	}
	return figures
}

func allRuns(cells []Cell) []Run {
	var all []Run
	for _, c := range cells {
		all = append(all, c.Runs...)
	}
	return all
}

// designOf takes what there is for what was planned.
func (t *table) designOf(figures int) compare.Design {
	rounds, baseline := 1, 1
	for _, c := range t.compared() {
		rounds = max(rounds, len(c.Runs))
	}
	baselines := len(t.cells) - len(t.compared())
	for _, c := range t.compared() {
		baseline = max(baseline, len(t.baselineOf(c).Runs)/rounds)
	}
	return compare.Design{
		Cells:        len(t.cells),
		Comparisons:  len(t.compared()) * figures,
		Baseline:     baseline,
		RunsPerRound: len(t.compared()) + baselines*baseline,
	}
}

// setRounds makes the i-th runs of all cells a round. A baseline with more runs has some in each.
func (t *table) setRounds() {
	for i, c := range t.cells {
		runs := slices.Clone(c.Runs)
		for n := range runs {
			runs[n].Round = n
			if t.baselineOf(c).Name == c.Name {
				runs[n].Round = n / t.of.Baseline
			}
		}
		t.cells[i].Runs = runs
	}
}

// runsOf are the runs in their rounds.
func runsOf(cells []Cell, f compare.Figure) []compare.Run {
	var runs []compare.Run
	for _, c := range cells {
		for _, r := range c.Runs {
			runs = append(runs, valueOf(r, f, c.Name, r.Round))
		}
	}
	return runs
}

func valueOf(r Run, f compare.Figure, cell string, round int) compare.Run {
	run := compare.Run{Cell: cell, Round: round}
	v, measured := r.Values[f.Name]
	switch run.Value = v.Value; {
	case r.Inconclusive != "" || !measured:
		run.Outcome = compare.Dropped
	case v.Censored:
		run.Outcome = compare.Censored
	}
	return run
}

func rowOf(c compare.Comparison, f compare.Figure, primary bool) comparisons.Comparison {
	row := comparisons.Comparison{
		Figure:                f.Name,
		Unit:                  UnitOf(f),
		Primary:               primary,
		Repeats:               c.Repeats,
		BaselineRepeats:       c.BaselineRepeats,
		Inconclusive:          c.Dropped + c.BaselineDropped,
		Median:                finite(c.Median),
		BaselineMedian:        finite(c.BaselineMedian),
		MedianAtLeast:         c.MedianAtLeast,
		BaselineMedianAtLeast: c.BaselineMedianAtLeast,
		Method:                string(c.Method),
		Margin:                c.Margin,
		Needs:                 c.Needs,
	}
	if c.Method == "" {
		return row
	}
	of := math.Expm1
	if f.Counted {
		of = func(x float64) float64 { return x }
	}
	row.Change, row.P = finite(of(c.Shift)), finite(c.P)
	row.IntervalJoint = intervalOf(c.Interval, 1-c.Alpha, of)
	row.Interval90 = intervalOf(c.Same, 0.9, of)
	rests := row.IntervalJoint
	if primary && c.Verdict == compare.Same {
		rests = row.Interval90
	}
	row.AtLeast = rests.AtLeast
	row.AtMost = rests.AtMost
	row.Confidence = rests.Confidence
	switch {
	case c.AtLeast:
		row.Bound = "AtLeast"
	case c.AtMost:
		row.Bound = "AtMost"
	}
	return row
}

// intervalOf is an interval of shifts as one of changes.
func intervalOf(
	i compare.Interval, confidence float64, of func(float64) float64,
) *comparisons.Interval {
	to := &comparisons.Interval{AtMost: finite(of(i.High)), Confidence: confidence}
	if !math.IsInf(i.Low, -1) {
		to.AtLeast = finite(of(i.Low))
	}
	return to
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// UnitOf is the unit of the values of a figure.
func UnitOf(f compare.Figure) result.Unit {
	switch {
	case f.Name == compare.Throughput.Name:
		return result.UnitPerSecond
	case f.Name == compare.ErrorRate.Name:
		return result.UnitShare
	case f.Counted, f.Name == compare.LostRequests.Name:
		return result.UnitCount
	case f.Name == compare.MaxCPU.Name:
		return result.UnitCores
	case f.Name == compare.MaxMemory.Name:
		return result.UnitBytes
	}
	return result.UnitSeconds
}

// met is whether a comparison meets a requirement; nil if it is inconclusive.
func met(c compare.Comparison, require compare.Require, f compare.Figure) *bool {
	is, known := c.Met(require, f)
	if !known {
		return nil
	}
	return &is
}

// notesOf says what the figures do not show: runs that were dropped, and how cells differ beside
// their setting.
func (t *table) notes() []string {
	cells := t.cells
	var notes, before, against, whole, open, closed []string
	dropped := 0
	for _, c := range cells {
		baseline := t.baselineOf(c)
		if baseline.Name != c.Name && apart(c, baseline) {
			against = append(against, baseline.Name)
			before = append(before, c.Name)
		}
		for _, r := range c.Runs {
			if r.Inconclusive != "" {
				if dropped++; dropped <= droppedListed {
					notes = append(notes, fmt.Sprintf("%s of %s is inconclusive: %s", r.Source, c.Name,
						r.Inconclusive))
				}
			}
		}
		isOpen := func(r Run) bool { return r.OpenLoop }
		if slices.ContainsFunc(c.Runs, isOpen) {
			open = append(open, c.Name)
		} else {
			closed = append(closed, c.Name)
		}
		if slices.ContainsFunc(c.Runs, func(r Run) bool { return r.Whole }) {
			whole = append(whole, c.Name)
		}
	}
	if dropped > droppedListed {
		notes = append(notes, fmt.Sprintf("%d more runs are inconclusive", dropped-droppedListed))
	}
	if len(before) > 0 {
		notes = append(notes,
			fmt.Sprintf(
				"the runs of %s were all before or after those of %s: what else changed meanwhile counts as "+
					"a difference, so that only one beyond the margin is found; run them in turns",
				strings.Join(before, ", "),
				strings.Join(slices.Compact(slices.Sorted(slices.Values(against))), ", ")))
	}
	if len(open) > 0 && len(closed) > 0 {
		notes = append(notes,
			fmt.Sprintf(
				"latencies of %s count from the intended arrival (a rate), those of %s from the send "+
					"(users): they are different figures", strings.Join(open, ", "), strings.Join(closed, ", ")))
	}
	if len(whole) > 0 {
		notes = append(notes,
			fmt.Sprintf(
				"of %s only records were given: their figures are of the whole time, with ramp-up and "+
					"warm-up, and doubts about them are not known", strings.Join(whole, ", ")))
	}
	return notes
}

// droppedListed is how many inconclusive runs are listed.
const droppedListed = 10
