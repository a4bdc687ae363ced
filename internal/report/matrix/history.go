package matrix

import (
	_ "embed" // the drawing
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/version"
)

//go:embed schedule.html
var scheduleTemplates string

var scheduleDrawings = NewDrawings(scheduleTemplates)

// Schedule is what is known of a schedule.
type Schedule struct {
	Object  *v1alpha1.RedisExperimentSchedule
	History *experiment.History // nil: no run has ended, or it was not given
}

// Report makes its report: the runs of the last template, with the changes and the regressions that were found.
func (s *Schedule) Report() (*report.Document, error) {
	o := s.Object
	if s.History == nil {
		s.History = &experiment.History{}
	}
	d := &report.Document{
		Version: report.Version, Kind: report.Schedule, Namespace: o.Namespace, Name: o.Name, Redquake: version.Version, State: s.state(), Verdict: report.Verdict(o.Status.Verdict),
		Finding: s.finding(), Done: s.done(), Specification: specOf("RedisExperimentSchedule", &o.ObjectMeta, &o.Spec), Styles: Styles,
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
	for _, section := range []*report.Section{trend, s.regressionsSection(), s.changesSection(runs), s.nightsSection(), {
		ID: "spec", Title: "Specification", Finding: report.Text("as the API server has it, defaults included"), Texts: []string{d.Specification}, Folded: true, Derived: true,
	}} {
		if section != nil {
			d.Sections = append(d.Sections, *section)
		}
	}
	d.Notes = []string{"A change that was found never moves or vanishes: each run is judged by those before it alone."}
	return d, nil
}

// reason says whose verdict it is, and where the schedule stands.
func (s *Schedule) reason() string {
	var parts []string
	if n := len(s.History.Runs); n > 0 && s.Object.Status.Verdict != "" {
		parts = append(parts, "The verdict is that of the last run, "+s.History.Runs[n-1].Name+".")
	}
	if ready := meta.FindStatusCondition(s.Object.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
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
func (s *Schedule) runs() []experiment.HistoryRun {
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
		p := report.Prose{}.Strong(wordsOf(r.Figure).title + " of " + r.Cell).Add(" has been ").Damage("worse since " + s.when(r.Since))
		if r.Unconfirmed != "" {
			p = p.Add(", unconfirmed: the run could not be repeated (" + r.Unconfirmed + ")")
		}
		p = p.Add(".")
		if more := len(h.Regressions) - 1; more > 0 {
			p = p.Add(fmt.Sprintf(" So %s %s.", map[bool]string{true: "has", false: "have"}[more == 1], plural(more, "more figure")))
		}
		return p
	case h.Confirming != nil:
		return report.Text(fmt.Sprintf("The run of %s shows a regression, and is repeated before it is called one.", s.when(h.Confirming.Run)))
	}
	changed := 0
	for _, c := range h.Changes {
		if c.Template == h.Runs[len(h.Runs)-1].Template {
			changed++
		}
	}
	p := report.Text(fmt.Sprintf("Nothing is worse than before in %s.", plural(len(s.runs()), "run")))
	if changed > 0 {
		p = p.Add(fmt.Sprintf(" %s of a level lie behind.", plural(changed, "change")))
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
	if n := len(s.History.Runs) + s.History.Dropped.Runs; n > 0 {
		p = p.Add(" · " + plural(n, "run"))
	}
	if skipped := s.Object.Status.Skipped; skipped > 0 {
		p = p.Add(" · " + plural(int(skipped), "scheduled time") + " without one")
	}
	if to := spec.CompareTo; to != nil {
		p = p.Add(" · each compared with " + to.Run)
		if to.Confirm {
			p = p.Add(", a regression is repeated before it is called one")
		}
	}
	if done := doneBy(&spec.Template.Spec); len(done) > 0 {
		p = append(p.Add(" · "), done...)
	}
	return p
}

// objectives are the figures that are watched: one that is worse is missed.
func (s *Schedule) objectives() (list []report.Objective) {
	for i := range s.History.Regressions {
		r := &s.History.Regressions[i]
		level := r.Level
		o := report.Objective{Name: "noRegression " + r.Figure, Of: r.Cell, Unit: experiment.UnitOf(compare.FigureNamed(r.Figure)), Limit: level, Actual: s.last(r.Figure, r.Cell), Judged: report.Missed, Message: r.Message + ", since " + r.Since}
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
	o := report.Objective{Name: "noRegression", Unit: result.UnitCount, Judged: report.Met, Message: c.Reason + ": " + c.Message}
	if c.Status == metav1.ConditionUnknown {
		o.Judged = report.NotJudged
	}
	return append(list, o)
}

// last is the latest median of a figure of a cell; nil = it is not kept.
func (s *Schedule) last(figure, cell string) *float64 {
	for _, r := range slices.Backward(s.History.Runs) {
		c := slices.Index(s.History.Templates[r.Template], cell)
		if m := r.Medians[figure]; c >= 0 && c < len(m) && m[c] != nil {
			return new(float64(*m[c]))
		}
	}
	return nil
}

// cellsOf are the cells of the runs.
func (s *Schedule) cellsOf(runs []experiment.HistoryRun) []string {
	if len(runs) == 0 {
		return nil
	}
	return s.History.Templates[runs[0].Template]
}

func figuresOf(runs []experiment.HistoryRun) (figures []compare.Figure) {
	for _, f := range compare.Figures() {
		if slices.ContainsFunc(runs, func(r experiment.HistoryRun) bool { return len(r.Medians[f.Name]) > 0 }) {
			figures = append(figures, f)
		}
	}
	return figures
}

// figures are the medians of all runs.
func (s *Schedule) figures(runs []experiment.HistoryRun) (all []report.Figure) {
	cells := s.cellsOf(runs)
	for i := range runs {
		for _, f := range figuresOf(runs) {
			for c, m := range runs[i].Medians[f.Name] {
				if m != nil && c < len(cells) {
					all = append(all, report.Figure{Name: f.Name, Of: runs[i].Name + ", " + cells[c], Label: "median of " + wordsOf(f.Name).inText, Unit: experiment.UnitOf(f), Value: new(float64(*m))})
				}
			}
		}
	}
	return all
}

// trend is a figure of all cells over the runs.
type trend struct {
	Title, Counts string
	Rows          []trendRow
	Ticks         []tick
}

type trendRow struct {
	Cell   string
	Dots   string // a path in a box of 10000 x 1000
	Open   string // runs that are not complete, at the bottom
	Levels []trendLevel
	Marks  []trendMark
	Text   string // the last median
	Label  string
}

type trendLevel struct {
	Left, Width, Bottom place
	Title               string
}

type trendMark struct {
	At          place
	Class, Sign string
	Title       string
}

// Limits of the drawing: of more runs the last ones are drawn, and of more cells those that changed.
const (
	runsDrawn = 150
	rowsDrawn = 60
)

func (s *Schedule) trendSection(runs []experiment.HistoryRun) (*report.Section, error) {
	cells, figures := s.cellsOf(runs), figuresOf(runs)
	if len(cells) == 0 || len(figures) == 0 {
		return nil, nil
	}
	drawn := runs[max(0, len(runs)-runsDrawn):]
	var trends []trend
	left := 0
	for _, f := range figures {
		w := wordsOf(f.Name)
		t := trend{Title: w.title, Counts: w.counts, Ticks: nightTicks(drawn)}
		for c, name := range cells {
			changed := slices.ContainsFunc(s.History.Changes, func(h experiment.HistoryChange) bool { return h.Cell == name && h.Figure == f.Name }) ||
				slices.ContainsFunc(s.History.Regressions, func(r experiment.Regression) bool { return r.Cell == name && r.Figure == f.Name })
			if len(cells)*len(figures) > rowsDrawn && !changed {
				left++
				continue
			}
			t.Rows = append(t.Rows, s.trendRow(drawn, f, c, name))
		}
		if len(t.Rows) > 0 {
			trends = append(trends, t)
		}
	}
	html, err := scheduleDrawings.Draw("trends", trends)
	if err != nil {
		return nil, err
	}
	section := &report.Section{ID: "trend", Title: "Over the runs", Leading: true, Drawing: html, Derived: true, Finding: report.Text("A dot is the median of a run, the line is the level. ").Strong("▼").
		Add(" marks the run since which it is worse, ").Strong("▲").Add(" since which it is better. Each row has its own scale.")}
	if len(drawn) < len(runs) {
		section.Note = fmt.Sprintf("The last %d of %d runs.", len(drawn), len(runs))
	}
	if left > 0 {
		section.Note = strings.TrimSpace(section.Note + fmt.Sprintf(" %s without a change of level are left out.", plural(left, "figure")))
	}
	return section, nil
}

// trendRow draws a figure of a cell.
func (s *Schedule) trendRow(runs []experiment.HistoryRun, f compare.Figure, cell int, name string) trendRow {
	unit := experiment.UnitOf(f)
	row := trendRow{Cell: name, Text: "–"}
	logs := make([]float64, len(runs)) // NaN = no median
	low, high := math.Inf(1), math.Inf(-1)
	for i := range runs {
		logs[i] = math.NaN()
		if m := runs[i].Medians[f.Name]; runs[i].Complete && cell < len(m) && m[cell] != nil {
			x := float64(*m[cell])
			row.Text = value(unit, x)
			if logs[i] = math.Log(max(x, f.Floor)); f.Counted {
				logs[i] = math.Log1p(x)
			}
			low, high = min(low, logs[i]), max(high, logs[i])
		}
	}
	middle, half := (low+high)/2, max((high-low)/2, math.Log1p(f.MarginAt(1)), 0.02)*1.15
	y := func(log float64) float64 { return 500 - 500*(log-middle)/half }
	x := func(i int) float64 { return 10000 * (float64(i) + 0.5) / float64(len(runs)) }
	var dots, open strings.Builder
	for i := range runs {
		if math.IsNaN(logs[i]) {
			fmt.Fprintf(&open, "M%.0f 985h0", x(i))
			continue
		}
		fmt.Fprintf(&dots, "M%.0f %.0fh0", x(i), y(logs[i]))
	}
	row.Dots, row.Open = dots.String(), open.String()
	begin := 0
	for _, c := range s.marksOf(f.Name, name, runs) {
		row.level(logs, begin, c.at, y, f, unit)
		begin = c.at
		m := trendMark{At: at(x(c.at)/100 - 50/float64(len(runs))), Class: "bt", Sign: "▲", Title: c.title}
		if c.worse {
			m.Class, m.Sign = "ws", "▼"
		}
		row.Marks = append(row.Marks, m)
	}
	row.level(logs, begin, len(runs), y, f, unit)
	row.Label = fmt.Sprintf("%s of %s over %s, last %s", wordsOf(f.Name).title, name, plural(len(runs), "run"), row.Text)
	for _, m := range row.Marks {
		row.Label += "; " + m.Title
	}
	return row
}

// level draws the median of the runs [from, to).
func (row *trendRow) level(logs []float64, from, to int, y func(float64) float64, f compare.Figure, unit result.Unit) {
	values := slices.DeleteFunc(slices.Clone(logs[from:to]), math.IsNaN)
	if len(values) == 0 {
		return
	}
	n, m := float64(len(logs)), compare.MedianOf(values)
	x := math.Exp(m)
	if f.Counted {
		x--
	}
	row.Levels = append(row.Levels, trendLevel{at(100 * float64(from) / n), at(100 * float64(to-from) / n), at(100 - y(m)/10), "level " + value(unit, x)})
}

// mark is a change of level, or the begin of a regression.
type mark struct {
	at    int
	worse bool
	title string
}

// marksOf are the changes of a figure that begin with one of the runs, in their order; a regression without such a change is one, too.
func (s *Schedule) marksOf(figure, cell string, runs []experiment.HistoryRun) (marks []mark) {
	add := func(since string, worse bool, title string) {
		i := slices.IndexFunc(runs, func(r experiment.HistoryRun) bool { return r.Name == since })
		if i >= 0 && !slices.ContainsFunc(marks, func(m mark) bool { return m.at == i }) {
			marks = append(marks, mark{i, worse, title})
		}
	}
	f := compare.FigureNamed(figure)
	for i := range s.History.Changes {
		if c := &s.History.Changes[i]; c.Figure == figure && c.Cell == cell {
			add(c.Since, c.Worse, fmt.Sprintf("%s since %s, found with %s", change(f, &c.Change), s.when(c.Since), c.Found))
		}
	}
	for i := range s.History.Regressions {
		if r := &s.History.Regressions[i]; r.Figure == figure && r.Cell == cell {
			add(r.Since, true, r.Message+", since "+s.when(r.Since))
		}
	}
	slices.SortFunc(marks, func(a, b mark) int { return a.at - b.at })
	return marks
}

// nightTicks are the days of some runs.
func nightTicks(runs []experiment.HistoryRun) (ticks []tick) {
	step := max(1, (len(runs)+4)/5)
	for i := 0; i < len(runs); i += step {
		ticks = append(ticks, tick{At: at(100 * (float64(i) + 0.5) / float64(len(runs))), Text: runs[i].Scheduled.UTC().Format("2 Jan")})
	}
	return ticks
}
