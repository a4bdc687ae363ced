// Package study is what the report of an experiment or a comparison is made of: cells with their
// runs, what was asked of them, and how each differs from its baseline.
package study

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/overlay"
	"github.com/redquake/redquake/internal/result/comparisons"
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
	Table   *comparisons.Comparisons
	Asked

	Earlier *Earlier       // nil = not compared with an earlier run
	Faults  []string       // the types of the faults of each run
	Done    report.Prose   // what was done
	Spec    string         // the object as YAML, without its status
	Window  overlay.Window // the part of the runs that their curves show
}

// Asked is what was asked of the runs.
type Asked struct {
	Question experiment.Question // with the margins; its Primary may be empty
	Require  v1alpha1.ComparisonRequirement
	Gate     bool // a regression decides on the verdict
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

// Earlier is a comparison of each cell with itself in an earlier run.
type Earlier struct {
	Run       string
	Rows      []comparisons.Comparison
	Notes     []string
	Regressed string // of the condition: True, False or Unknown
	Reason    string
	Message   string
}

// RunsOf are the runs of a cell.
func (s *Study) RunsOf(cell int) (runs []*Run) {
	for i := range s.Runs {
		if s.Runs[i].Cell == cell {
			runs = append(runs, &s.Runs[i])
		}
	}
	return runs
}

// Row is the comparison of a cell in a figure; nil = there is none.
func (s *Study) Row(cell, figure string) *comparisons.Comparison {
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if r.Cell == cell && r.Figure == figure {
			return r
		}
	}
	return nil
}

// Primary are the figures to compare, in the order in which they are shown.
func (s *Study) Primary() (figures []compare.Figure) {
	for _, r := range s.Table.Comparisons {
		if r.Primary &&
			!slices.ContainsFunc(figures, func(f compare.Figure) bool { return f.Name == r.Figure }) {
			figures = append(figures, compare.FigureNamed(r.Figure))
		}
	}
	if len(figures) == 0 {
		return s.Question.Primary
	}
	return figures
}

// Provisional reports whether there are no verdicts yet.
func (s *Study) Provisional() bool {
	return s.State != report.Complete
}

// Measured are the figures that any run has, the primary ones first.
func (s *Study) Measured() []compare.Figure {
	primary := s.Primary()
	has := func(f compare.Figure) bool {
		return slices.ContainsFunc(s.Runs, func(r Run) bool { _, ok := r.Values[f.Name]; return ok })
	}
	var figures []compare.Figure
	for _, f := range slices.Concat(primary, compare.Figures()) {
		if has(f) &&
			!slices.ContainsFunc(figures, func(o compare.Figure) bool { return o.Name == f.Name }) {
			figures = append(figures, f)
		}
	}
	return figures
}

// Median is that of the conclusive runs of a cell.
func (s *Study) Median(cell int, f compare.Figure) (experiment.Value, bool) {
	var least, most []float64
	for _, run := range s.RunsOf(cell) {
		v, ok := run.Values[f.Name]
		if !ok || run.Inconclusive != "" {
			continue
		}
		least = append(least, v.Value)
		if v.Censored {
			v.Value = math.Inf(1)
		}
		most = append(most, v.Value)
	}
	if len(least) == 0 {
		return experiment.Value{}, false
	}
	m := compare.MedianOf(least)
	return experiment.Value{Value: m, Censored: compare.MedianOf(most) > m}, true
}

// InDoubt is how many runs are in no figure.
func (s *Study) InDoubt() (n int) {
	for i := range s.Runs {
		if s.Runs[i].Inconclusive != "" {
			n++
		}
	}
	return n
}

// FaultWord is what is marked at the fault.
func (s *Study) FaultWord() string {
	if len(s.Faults) == 1 {
		return s.Faults[0]
	}
	return "fault"
}
