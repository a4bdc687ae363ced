// Package matrix makes the reports of experiments and comparisons from studies: cells with their
// runs, and how each differs from its baseline. The forms are those of package report; the drawings
// are HTML and SVG of this package, and of overlay and intervals.
package matrix

import (
	_ "embed" // the drawings
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/intervals"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/repeats"
	"github.com/redquake/redquake/internal/report/specification"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

//go:embed matrix.html
var templates string

var drawings = plot.NewDrawings(templates)

// subject is the study that a report is about.
type subject struct{ *study.Study }

// New makes the report of a study.
func New(of *study.Study) (*report.Document, error) {
	s := &subject{of}
	d := &report.Document{
		Version:       report.Version,
		Kind:          s.Kind,
		Namespace:     s.Namespace,
		Name:          s.Name,
		Redquake:      s.Redquake,
		State:         s.State,
		Verdict:       s.Verdict,
		Reason:        s.reason(),
		Finding:       s.finding(),
		Done:          s.done(),
		Figures:       s.figures(),
		Objectives:    s.objectives(),
		Doubts:        s.doubts(),
		Comparisons:   s.Table.Comparisons,
		Specification: s.Spec,
		Styles:        plot.Styles,
	}
	if len(s.Runs) > 0 {
		d.Time = s.Runs[0].Start.UTC()
	}
	if s.Earlier != nil {
		d.Earlier = s.Earlier.Rows
	}
	for _, make := range []func() (*report.Section, error){
		s.matrixSection, s.comparisonSection, s.earlierSection,
		func() (*report.Section, error) { return repeats.Phases(of) },
		func() (*report.Section, error) { return repeats.Dots(of) },
		func() (*report.Section, error) { return s.lostSection(), nil },
		func() (*report.Section, error) { return s.limitsSection(), nil },
		func() (*report.Section, error) { return repeats.Doubts(of) },
		func() (*report.Section, error) { return repeats.Runs(of), nil },
		func() (*report.Section, error) { return s.othersSection(), nil },
		func() (*report.Section, error) { return specification.Section(d), nil },
		func() (*report.Section, error) { return s.methodSection(), nil },
	} {
		section, err := make()
		if err != nil {
			return nil, err
		}
		d.Add(section)
	}
	d.Notes = append([]string{"Runs in doubt are shown and are in no figure."}, s.Table.Opposed()...)
	return d, nil
}

// reason is what the verdict rests on.
func (s *subject) reason() string {
	if s.Reason != "" || s.Verdict != report.Pass || s.Kind != report.Experiment {
		return s.Reason
	}
	n := s.InDoubt()
	text := fmt.Sprintf("No objective was missed in %s.", wording.Plural(len(s.Runs), "run"))
	if n > 0 {
		text = fmt.Sprintf("No objective was missed in %d of %s. %s", len(s.Runs)-n,
			wording.Plural(len(s.Runs), "run"), isInDoubt(n))
	}
	return text
}

func isInDoubt(n int) string {
	if n == 1 {
		return "1 run is in doubt and in no figure."
	}
	return fmt.Sprintf("%d runs are in doubt and in no figure.", n)
}

// done is what was run.
func (s *subject) done() report.Prose {
	size := wording.Plural(len(s.Cells), "cell")
	if n := len(s.Parameters); n > 1 {
		var sizes []string
		for i := range s.Parameters {
			sizes = append(sizes, report.Count(len(s.Values(i))))
		}
		size = strings.Join(sizes, " × ") + " cells"
	}
	if s.Repeat > 0 {
		size += ", " + wording.Plural(s.Repeat, "repeat")
	}
	p := report.Prose{}.Strong(size)
	switch {
	case s.Order == v1alpha1.OrderSequential:
		p = p.Add(" in the order of the matrix")
	case s.Order == v1alpha1.OrderShuffled:
		p = p.Add(" in shuffled rounds")
	}
	if len(s.Done) > 0 {
		p = append(p.Add(" · "), s.Done...)
	}
	if baseline := s.BaselineText(); baseline != "" {
		p = p.Add(" · compared with ").Strong(baseline)
	}
	if servers := s.servers(); servers != "" {
		p = p.Add(" · " + servers)
	}
	if n := len(s.Runs); n > 1 && !s.Runs[0].Start.IsZero() {
		end := s.Runs[n-1].End
		if end.IsZero() {
			end = s.Runs[n-1].Start
		}
		p = p.Add(" · " + report.Duration(end.Sub(s.Runs[0].Start).Round(time.Second)))
	}
	return p
}

func (s *subject) servers() string {
	var all []string
	for i := range s.Runs {
		of := s.Runs[i].Server
		if of != "" && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return strings.Join(slices.Sorted(slices.Values(all)), ", ")
}

// figures are the medians of the cells, the changes with their joint intervals, and the figures of
// the runs.
func (s *subject) figures() (figures []report.Figure) {
	for i := range s.Cells {
		for _, f := range s.Measured() {
			if m, ok := s.Median(i, f); ok {
				figures = append(figures,
					figureOf(f, s.Cells[i].Name, "median of "+wording.Of(f.Name).InText, m, false))
			}
		}
	}
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if r.Change == nil {
			continue
		}
		f := compare.FigureNamed(r.Figure)
		one := report.Figure{
			Name:    r.Figure + "Change",
			Of:      r.Cell,
			Label:   "change of " + wording.Of(r.Figure).InText + " against " + r.Baseline,
			Unit:    result.UnitShare,
			Value:   r.Change,
			AtLeast: r.AtLeast,
			AtMost:  r.AtMost,
		}
		if f.Counted {
			one.Unit = result.UnitCount
		}
		if r.Margin > 0 {
			one.Limit = &r.Margin
		}
		figures = append(figures, one)
	}
	for i := range s.Runs {
		run := &s.Runs[i]
		for _, f := range s.Measured() {
			if v, ok := run.Values[f.Name]; ok {
				figures = append(figures,
					figureOf(f, fmt.Sprintf("run %d, %s", run.Number, s.Cells[run.Cell].Name),
						wording.Of(f.Name).InText, v, run.Inconclusive != ""))
			}
		}
	}
	return figures
}

func figureOf(f compare.Figure, of, label string, v experiment.Value, doubt bool) report.Figure {
	one := report.Figure{
		Name:  f.Name,
		Of:    of,
		Label: label,
		Unit:  experiment.UnitOf(f),
		Value: &v.Value,
	}
	if v.Censored {
		one.Value, one.AtLeast = nil, &v.Value
	}
	if doubt {
		one.Judged = report.NotJudged
	}
	return one
}

// objectives are what decides on the verdict: that no run misses an objective, what the comparisons
// must show, and that nothing has regressed.
func (s *subject) objectives() (list []report.Objective) {
	if s.Provisional() && len(s.Runs) == 0 {
		return nil
	}
	if s.Kind == report.Experiment {
		for i := range s.Cells {
			list = append(list, s.missedIn(i))
		}
	}
	if s.Provisional() {
		return list
	}
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if r.Primary && (s.Require == v1alpha1.RequireNotWorse || s.Require == v1alpha1.RequireSame) {
			met := r.NotWorse
			if s.Require == v1alpha1.RequireSame {
				met = r.Same
			}
			list = append(list, required("require"+string(s.Require), r, met))
		}
	}
	if s.Earlier != nil && s.Gate {
		for i := range s.Earlier.Rows {
			r := &s.Earlier.Rows[i]
			list = append(list, required("noRegression", r, notRegressed(r)))
		}
	}
	return list
}

func notRegressed(r *comparisons.Comparison) *bool {
	if r.Verdict == string(v1alpha1.ComparisonInconclusive) {
		return new(true) // neither is a failure
	}
	return new(r.Verdict != string(v1alpha1.ComparisonRegressed))
}

// missedIn is that no run of a cell misses an objective of its own.
func (s *subject) missedIn(cell int) report.Objective {
	missed, why := 0., ""
	for _, run := range s.RunsOf(cell) {
		if run.Missed {
			missed++
			why = fmt.Sprintf("run %d: %s", run.Number, run.Failed)
		}
	}
	o := report.Objective{
		Name:   "runsThatMissAnObjective",
		Of:     s.Cells[cell].Name,
		Unit:   result.UnitCount,
		Actual: &missed,
		Judged: report.Met,
	}
	if missed > 0 {
		o.Judged = report.Missed
		o.Message = fmt.Sprintf("%d of %s missed an objective; %s", int(missed),
			wording.Plural(len(s.RunsOf(cell)), "run"), why)
	}
	return o
}

func required(name string, r *comparisons.Comparison, met *bool) report.Objective {
	o := report.Objective{
		Name:    name + " " + r.Figure,
		Of:      r.Cell,
		Unit:    result.UnitShare,
		Limit:   r.Margin,
		Actual:  r.Change,
		AtLeast: r.AtLeast,
		AtMost:  r.AtMost,
		Judged:  judgement.Of(met),
		Message: r.Message,
	}
	if compare.FigureNamed(r.Figure).Counted {
		o.Unit = result.UnitCount
	}
	return o
}

// doubts are the cells of which too many runs are left out.
func (s *subject) doubts() (list []report.Doubt) {
	for i := range s.Cells {
		runs, out, why := 0, 0, ""
		for _, run := range s.RunsOf(i) {
			runs++
			if run.Inconclusive != "" {
				out++
				why = run.Inconclusive
			}
		}
		if 3*out > runs {
			list = append(list, report.Doubt{
				Reason: string(compare.TooManyInconclusive),
				Of:     s.Cells[i].Name,
				Message: fmt.Sprintf("%d of %s in doubt; the last one: %s", out, wording.Plural(runs, "run"),
					why),
			})
		}
	}
	return list
}

// methodSection is how it was compared.
func (s *subject) methodSection() *report.Section {
	m := 0
	methods := map[string][]string{}
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if !r.Primary {
			continue
		}
		m++
		if r.Method != "" && !slices.Contains(methods[r.Figure], r.Method) {
			methods[r.Figure] = append(methods[r.Figure], r.Method)
		}
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "Better"},
			{Title: "Margin", Number: true},
			{Title: "Method"},
			{Title: "Counts", Soft: true},
		},
	}
	for _, f := range s.Primary() {
		better := "lower"
		if f.HigherIsBetter {
			better = "higher"
		}
		margin := intervals.Margins(s.Table.Comparisons, f)
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: f.Name},
				{Text: better},
				{Text: orDash(margin)},
				{Text: orDash(strings.Join(methods[f.Name], ", "))},
				{Text: wording.Of(f.Name).Counts},
			},
		})
	}
	section := &report.Section{
		ID:      "method",
		Title:   "How it was compared",
		Finding: report.Text("statistics and versions"),
		Tables:  []report.Table{t},
		Folded:  true,
	}
	section.Note = "Ranks: the exact test of Mann and Whitney, with the estimate of Hodges and " +
		"Lehmann. Model: cell, round and noise on logarithms, by least squares, with a guarded variance. “Same” by two one-sided tests of 5 %."
	if m > 0 {
		section.Facts = append(section.Facts, report.Fact{
			Name:  "Comparisons",
			Value: report.Count(m),
			Detail: "at a joint level of " + wording.Percent(0.95) + ": " +
				wording.Percent(round4(1-0.05/float64(m))) + " each",
		})
	}
	section.Facts = append(section.Facts, report.Fact{Name: "Redquake", Value: s.Redquake})
	if servers := s.servers(); servers != "" {
		section.Facts = append(section.Facts, report.Fact{Name: "Servers", Value: servers})
	}
	if s.Seed != nil {
		section.Facts = append(section.Facts, report.Fact{
			Name:  "Seed of the order",
			Value: fmt.Sprint(*s.Seed),
		})
	}
	return section
}

func round4(x float64) float64 {
	return math.Round(x*1e4) / 1e4
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
