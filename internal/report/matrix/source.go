// Package matrix makes the reports of experiments and comparisons: cells with their runs, how each differs from its baseline, and, of a schedule, how they
// changed from run to run. The forms are those of package report; the drawings are HTML and SVG of this package.
package matrix

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Study is what the report of an experiment or a comparison is made of.
type Study struct {
	Kind            report.Kind // Experiment or Comparison
	Namespace, Name string
	Redquake        string // the version of the program
	State           report.State
	Verdict         report.Verdict
	Reason          string // of the verdict, or why there is none

	Matrix
	Runs    []Run // in the order in which they began
	Planned int   // runs in all
	Repeat  int   // of each cell; 0 = as many as there are
	Order   v1alpha1.ExperimentOrder
	Seed    *int64
	Table   *result.Comparisons
	Asked

	Earlier *Earlier     // nil = not compared with an earlier run
	Faults  []string     // the types of the faults of each run
	Done    report.Prose // what was done
	Spec    string       // the object as YAML, without its status
	Window  Window       // the part of the runs that their curves show
}

// Asked is what was asked of the runs.
type Asked struct {
	Question experiment.Question // with the margins; its Primary may be empty
	Require  v1alpha1.ComparisonRequirement
	Gate     bool // a regression decides on the verdict
}

// Matrix is the cells, and what they differ in.
type Matrix struct {
	Parameters []string        // none: the cells are the arguments of a command
	Fixed      map[string]bool // parameters whose value the baseline fixes
	Cells      []Cell          // in the order of the matrix
}

// Cell is one combination of the matrix.
type Cell struct {
	Name     string
	Values   []string // of the parameters, in their order
	Baseline int      // the position of the cell that it is compared with; its own: it is a baseline
}

// Run is a run that has ended.
type Run struct {
	Number       int // from 1
	Cell, Round  int // Round from 1; 0 = unknown
	Name         string
	Start, End   time.Time // zero = unknown
	Missed       bool
	Failed       string // that an objective was missed, or why it could not complete
	Inconclusive string // why it is in no figure; "" = it is
	Server       string
	Values       map[string]experiment.Value
	Detail       *Detail // nil = what it was made of is gone
}

// Detail is what the objects of a run have beyond the record of the experiment.
type Detail struct {
	Curve    *Curve // nil = its record is gone
	Begins   *time.Duration
	Phases   []result.Phase // of the first fault
	Use      Use
	ReadBack int64 // acknowledged writes that were looked for
}

// Earlier is a comparison of each cell with itself in an earlier run.
type Earlier struct {
	Run       string
	Rows      []result.Comparison
	Notes     []string
	Regressed string // of the condition: True, False or Unknown
	Reason    string
	Message   string
}

// cellNamed is the position of a cell; -1 = there is none.
func (m *Matrix) cellNamed(name string) int {
	return slices.IndexFunc(m.Cells, func(c Cell) bool { return c.Name == name })
}

// runsOf are the runs of a cell.
func (s *Study) runsOf(cell int) (runs []*Run) {
	for i := range s.Runs {
		if s.Runs[i].Cell == cell {
			runs = append(runs, &s.Runs[i])
		}
	}
	return runs
}

// row is the comparison of a cell in a figure; nil = there is none.
func (s *Study) row(cell, figure string) *result.Comparison {
	for i := range s.Table.Comparisons {
		if r := &s.Table.Comparisons[i]; r.Cell == cell && r.Figure == figure {
			return r
		}
	}
	return nil
}

// primary are the figures of which a verdict is told, in the order in which they are shown.
func (s *Study) primary() (figures []compare.Figure) {
	for _, r := range s.Table.Comparisons {
		if r.Primary && !slices.ContainsFunc(figures, func(f compare.Figure) bool { return f.Name == r.Figure }) {
			figures = append(figures, compare.FigureNamed(r.Figure))
		}
	}
	if len(figures) == 0 {
		return s.Question.Primary
	}
	return figures
}

// provisional reports whether there are no verdicts yet.
func (s *Study) provisional() bool { return s.State != report.Complete }

// measured are the figures that any run has, the primary ones first.
func (s *Study) measured() []compare.Figure {
	primary := s.primary()
	has := func(f compare.Figure) bool {
		return slices.ContainsFunc(s.Runs, func(r Run) bool { _, ok := r.Values[f.Name]; return ok })
	}
	var figures []compare.Figure
	for _, f := range slices.Concat(primary, compare.Figures()) {
		if has(f) && !slices.ContainsFunc(figures, func(o compare.Figure) bool { return o.Name == f.Name }) {
			figures = append(figures, f)
		}
	}
	return figures
}
