package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/specification"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result/comparisons"
	"github.com/redquake/redquake/internal/version"
)

// Runs is a comparison of runs: each argument of a command is a cell, the first one is the
// baseline.
func Runs(
	cells []experiment.Cell, table *comparisons.Comparisons, require v1alpha1.ComparisonRequirement,
) *Study {
	s := &Study{
		Kind:     report.Comparison,
		Redquake: version.Version,
		State:    report.Complete,
		Table:    table,
		Asked:    Asked{Require: require},
	}
	var names []string
	for i, c := range cells {
		names = append(names, c.Name)
		s.Cells = append(s.Cells, Cell{Name: c.Name})
		for _, run := range c.Runs {
			s.Runs = append(s.Runs, Run{
				Cell:         i,
				Round:        run.Round,
				Name:         run.Source,
				Start:        run.Start,
				Inconclusive: run.Inconclusive,
				Values:       run.Values,
			})
		}
	}
	s.Name = strings.Join(names, ", ")
	if len(names) > wording.MostNamed {
		s.Name = fmt.Sprintf("%s and %d more", strings.Join(names[:wording.MostNamed], ", "),
			len(names)-wording.MostNamed)
	}
	s.number()
	s.Verdict, s.Reason = s.required()
	return s
}

// number puts the runs into the order in which they began, and counts them.
func (s *Study) number() {
	slices.SortStableFunc(s.Runs, func(a, b Run) int { return a.Start.Compare(b.Start) })
	for i := range s.Runs {
		s.Runs[i].Number = i + 1
	}
	s.Planned = len(s.Runs)
}

// required is the verdict by what a comparison must show; none if nothing is required.
func (s *Study) required() (report.Verdict, string) {
	if s.Require == "" || s.Require == v1alpha1.RequireNone || s.Provisional() {
		return "", ""
	}
	j := experiment.Judge(&experiment.Record{}, primaryRows(s.Table), s.Require, nil, false)
	return report.Verdict(j.Verdict), j.Message
}

func primaryRows(t *comparisons.Comparisons) []comparisons.Comparison {
	return slices.DeleteFunc(slices.Clone(t.Comparisons), func(c comparisons.Comparison) bool {
		return !c.Primary
	})
}

// earlierParameter is what an experiment and an earlier one differ in.
const earlierParameter = "experiment"

// Two is an experiment against an earlier one: each cell against itself. then and now are their
// names.
func Two(
	earlier, later *Experiment, then, now string, table *comparisons.Comparisons,
	require v1alpha1.ComparisonRequirement,
) *Study {
	s := &Study{
		Kind:      report.Comparison,
		Namespace: later.Object.Namespace,
		Name:      now + " against " + then,
		Redquake:  version.Version,
		State:     report.Complete,
		Asked:     Asked{Question: later.Plan.Question(&later.Object.Spec.Compare), Require: require},
		Done:      Done(&later.Object.Spec),
		Spec:      specification.Of("RedisExperiment", &later.Object.ObjectMeta, &later.Object.Spec),
		Repeat:    later.Plan.Repeat,
		Window:    WindowOf(later.Record),
	}
	if table.Experiment != nil { // it is not complete
		s.State, s.Reason = report.Running, table.Experiment.Message
	}
	s.setCells(later.Plan, &later.Object.Spec)
	s.Parameters = append([]string{earlierParameter}, s.Parameters...)
	s.Fixed = map[string]bool{earlierParameter: true}
	s.both(earlier, later, then, now, table)
	s.number()
	s.Planned = later.Plan.Runs() + len(earlier.Record.Runs)
	if s.Verdict, _ = s.required(); s.State == report.Complete {
		_, s.Reason = s.required()
	}
	return s
}

// both makes two cells of each that both have: one of the earlier experiment, which is its
// baseline.
func (s *Study) both(earlier, later *Experiment, then, now string, table *comparisons.Comparisons) {
	own := s.Cells
	s.Cells = nil
	for i, c := range own {
		before := slices.Index(earlier.Record.Cells, c.Name)
		if before < 0 {
			continue
		}
		at := len(s.Cells)
		s.Cells = append(s.Cells,
			Cell{
				Name:     earlierParameter + "=" + then + "," + c.Name,
				Values:   append([]string{then}, c.Values...),
				Baseline: at,
			},
			Cell{
				Name:     c.Name,
				Values:   append([]string{now}, c.Values...),
				Baseline: at,
			})
		s.addRuns(earlier, before, at)
		s.addRuns(later, i, at+1)
	}
	s.Table = table
}

func (s *Study) addRuns(of *Experiment, cell, as int) {
	var one Study
	one.setRuns(of.Record, of.Details)
	for _, run := range one.Runs {
		if run.Cell == cell {
			run.Cell = as
			s.Runs = append(s.Runs, run)
		}
	}
}
