// Package schedule makes the report of a schedule of experiments: how its figures have changed from
// run to run.
package schedule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/specification"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/version"
)

// Schedule is what is known of a schedule.
type Schedule struct {
	Object  *v1alpha1.RedisExperimentSchedule
	History *history.History // nil: no run has ended, or it was not given
}

// Report makes its report: the runs of the last template, with the changes and the regressions that
// were found.
func (s *Schedule) Report() (*report.Document, error) {
	o := s.Object
	if s.History == nil {
		s.History = &history.History{}
	}
	d := &report.Document{
		Version:       report.Version,
		Kind:          report.Schedule,
		Namespace:     o.Namespace,
		Name:          o.Name,
		Redquake:      version.Version,
		State:         s.state(),
		Verdict:       report.Verdict(o.Status.Verdict),
		Finding:       s.finding(),
		Done:          s.done(),
		Specification: specification.Of("RedisExperimentSchedule", &o.ObjectMeta, &o.Spec),
		Styles:        plot.Styles,
	}
	d.Reason = s.reason()
	runs := s.runs()
	if len(runs) > 0 {
		d.Time = runs[0].Start.UTC()
	}
	d.Objectives, d.Figures = s.objectives(), s.figures(runs)
	trend, err := s.trendSection(runs)
	if err != nil {
		return nil, err
	}
	d.Add(trend, s.regressionsSection(), s.changesSection(runs), s.nightsSection(),
		specification.Section(d))
	d.Notes = []string{
		"A change that was found never moves or vanishes: each run is judged by those before it alone.",
	}
	return d, nil
}

// reason says whose verdict it is, and where the schedule stands.
func (s *Schedule) reason() string {
	var parts []string
	n := len(s.History.Runs)
	if n > 0 && s.Object.Status.Verdict != "" {
		parts = append(parts, "The verdict is that of the last run, "+s.History.Runs[n-1].Name+".")
	}
	ready := meta.FindStatusCondition(s.Object.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil {
		parts = append(parts, ready.Reason+": "+ready.Message)
	}
	return strings.Join(parts, " ")
}

func (s *Schedule) state() report.State {
	if len(s.History.Runs) == 0 {
		return report.Pending
	}
	return report.Complete
}

// runs are those of the last template: figures of others cannot be compared with them.
func (s *Schedule) runs() []history.Run {
	all := s.History.Runs
	for i := len(all) - 1; i > 0; i-- {
		if all[i-1].Template != all[i].Template {
			return all[i:]
		}
	}
	return all
}

func (s *Schedule) finding() report.Prose {
	h := s.History
	switch {
	case len(h.Runs) == 0:
		return report.Text("No run has ended yet.")
	case len(h.Regressions) > 0:
		r := &h.Regressions[0]
		p := report.Prose{}.Strong(wording.Of(r.Figure).Title + " of " + r.Cell).Add(" has been ").
			Damage("worse since " + s.when(r.Since))
		if r.Unconfirmed != "" {
			p = p.Add(", unconfirmed: the run could not be repeated (" + r.Unconfirmed + ")")
		}
		p = p.Add(".")
		if more := len(h.Regressions) - 1; more > 0 {
			p = p.Add(fmt.Sprintf(" So %s %s.", map[bool]string{true: "has", false: "have"}[more == 1],
				wording.Plural(more, "more figure")))
		}
		return p
	case h.Confirming != nil:
		return report.Text(fmt.Sprintf(
			"The run of %s shows a regression, and is repeated before it is called one.",
			s.when(h.Confirming.Run)))
	}
	changed := 0
	for _, c := range h.Changes {
		if c.Template == h.Runs[len(h.Runs)-1].Template {
			changed++
		}
	}
	p := report.Text(fmt.Sprintf("Nothing is worse than before in %s.",
		wording.Plural(len(s.runs()), "run")))
	if changed > 0 {
		p = p.Add(fmt.Sprintf(" %s of a level lie behind.", wording.Plural(changed, "change")))
	}
	return p
}

// when is the time of a run, with its name.
func (s *Schedule) when(run string) string {
	if r := s.History.Find(run); r != nil {
		return r.Scheduled.UTC().Format("2 Jan, 15:04") + " (" + run + ")"
	}
	return run
}

func (s *Schedule) done() report.Prose {
	spec := &s.Object.Spec
	p := report.Prose{}.Strong("schedule " + spec.Schedule)
	if spec.TimeZone != nil {
		p = p.Add(" (" + *spec.TimeZone + ")")
	}
	n := len(s.History.Runs) + s.History.Dropped.Runs
	if n > 0 {
		p = p.Add(" · " + wording.Plural(n, "run"))
	}
	if skipped := s.Object.Status.Skipped; skipped > 0 {
		p = p.Add(" · " + wording.Plural(int(skipped), "scheduled time") + " without one")
	}
	if to := spec.CompareTo; to != nil {
		p = p.Add(" · each compared with " + to.Run)
		if to.Confirm {
			p = p.Add(", a regression is repeated before it is called one")
		}
	}
	if done := study.Done(&spec.Template.Spec); len(done) > 0 {
		p = append(p.Add(" · "), done...)
	}
	return p
}

// objectives are the figures that are watched: one that is worse is missed.
func (s *Schedule) objectives() (list []report.Objective) {
	for i := range s.History.Regressions {
		r := &s.History.Regressions[i]
		level := r.Level
		o := report.Objective{
			Name:    "noRegression " + r.Figure,
			Of:      r.Cell,
			Unit:    experiment.UnitOf(compare.FigureNamed(r.Figure)),
			Limit:   level,
			Actual:  s.last(r.Figure, r.Cell),
			Judged:  report.Missed,
			Message: r.Message + ", since " + r.Since,
		}
		if r.Unconfirmed != "" {
			o.Message += ", unconfirmed: " + r.Unconfirmed
		}
		list = append(list, o)
	}
	if len(list) > 0 {
		return list
	}
	c := meta.FindStatusCondition(s.Object.Status.Conditions, v1alpha1.ConditionRegressed)
	if c == nil {
		return nil
	}
	o := report.Objective{
		Name:    "noRegression",
		Unit:    result.UnitCount,
		Judged:  report.Met,
		Message: c.Reason + ": " + c.Message,
	}
	if c.Status == metav1.ConditionUnknown {
		o.Judged = report.NotJudged
	}
	return append(list, o)
}

// last is the latest median of a figure of a cell; nil = it is not kept.
func (s *Schedule) last(figure, cell string) *float64 {
	for _, r := range slices.Backward(s.History.Runs) {
		c := slices.Index(s.History.Templates[r.Template], cell)
		m := r.Medians[figure]
		if c >= 0 && c < len(m) && m[c] != nil {
			return new(float64(*m[c]))
		}
	}
	return nil
}

// cellsOf are the cells of the runs.
func (s *Schedule) cellsOf(runs []history.Run) []string {
	if len(runs) == 0 {
		return nil
	}
	return s.History.Templates[runs[0].Template]
}

func figuresOf(runs []history.Run) (figures []compare.Figure) {
	for _, f := range compare.Figures() {
		if slices.ContainsFunc(runs, func(r history.Run) bool { return len(r.Medians[f.Name]) > 0 }) {
			figures = append(figures, f)
		}
	}
	return figures
}

// figures are the medians of all runs.
func (s *Schedule) figures(runs []history.Run) (all []report.Figure) {
	cells := s.cellsOf(runs)
	for i := range runs {
		for _, f := range figuresOf(runs) {
			for c, m := range runs[i].Medians[f.Name] {
				if m != nil && c < len(cells) {
					all = append(all, report.Figure{
						Name:  f.Name,
						Of:    runs[i].Name + ", " + cells[c],
						Label: "median of " + wording.Of(f.Name).InText,
						Unit:  experiment.UnitOf(f),
						Value: new(float64(*m)),
					})
				}
			}
		}
	}
	return all
}
