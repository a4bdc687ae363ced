package repeats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

// Dots is every run as a dot.
func Dots(s *study.Study) (*report.Section, error) {
	if len(s.Runs) == 0 {
		return nil, nil
	}
	plots := dotPlots(s)
	if len(plots) == 0 {
		return nil, nil
	}
	html, err := drawings.Draw("dots", plots)
	if err != nil {
		return nil, err
	}
	text := "A dot is a run, the line is the median."
	switch n := s.InDoubt(); {
	case n == 1:
		text += " The ring is the run that is in doubt: it is in no figure."
	case n > 1:
		text += fmt.Sprintf(" The rings are the %s that are in doubt: they are in no figure.",
			wording.Plural(n, "run"))
	}
	return &report.Section{
		ID:      "dots",
		Title:   "Every run",
		Finding: report.Text(text),
		Drawing: html,
		Derived: true,
	}, nil
}

// dotPlot is a figure of every run.
type dotPlot struct {
	Title, Counts string
	Labels        int // the width of the heads of the rows, in pixels
	Rows          []dotRow
	Ticks         []plot.Tick
}

type dotRow struct {
	First  bool
	Group  string // with the first row of one
	Of     string
	Median plot.Place // "" = there is none
	Text   string
	Dots   []dot
	Label  string
}

// dot is a run.
type dot struct {
	At    plot.Place
	Doubt bool // a ring: it is in no figure
	Open  bool // it is that or more
	Title string
}

// dotPlots draws the runs, of the primary figures.
func dotPlots(s *study.Study) (plots []dotPlot) {
	for _, f := range s.Measured() {
		if !slices.ContainsFunc(s.Primary(), func(o compare.Figure) bool { return o.Name == f.Name }) &&
			f.Name != compare.Throughput.Name || f.Counted {
			continue
		}
		plots = append(plots, dotPlotOf(s, f))
	}
	return plots
}

func dotPlotOf(s *study.Study, f compare.Figure) dotPlot {
	greatest := 0.
	for i := range s.Runs {
		greatest = max(greatest, s.Runs[i].Values[f.Name].Value)
	}
	scale := newLengthScale(greatest)
	unit := experiment.UnitOf(f)
	w := wording.Of(f.Name)
	p := dotPlot{
		Title:  w.Title,
		Counts: w.Counts,
		Labels: labelWidth(s),
	}
	for _, x := range scale.steps() {
		text := wording.Value(unit, x)
		if x == 0 {
			text = "0"
		}
		p.Ticks = append(p.Ticks, plot.Tick{At: scale.of(x), Text: strings.TrimSuffix(text, "/s")})
	}
	last := ""
	for n, cell := range s.ByGroup() {
		group, matched := s.GroupOf(cell)
		row := dotRow{Of: group}
		if matched != last || n == 0 {
			row.First, row.Group = true, matched
		}
		last = matched
		setDots(s, &row, cell, f, scale)
		p.Rows = append(p.Rows, row)
	}
	return p
}

func setDots(s *study.Study, row *dotRow, cell int, f compare.Figure, scale lengthScale) {
	unit := experiment.UnitOf(f)
	var texts []string
	for _, run := range s.RunsOf(cell) {
		v, ok := run.Values[f.Name]
		if !ok {
			continue
		}
		text := wording.ValueOf(unit, &v.Value, v.Censored)
		d := dot{
			At:    scale.of(v.Value),
			Doubt: run.Inconclusive != "",
			Open:  v.Censored,
			Title: fmt.Sprintf("run %d: %s", run.Number, text),
		}
		if d.Doubt {
			text += " (left out)"
			d.Title += ", left out: " + doubtOf(run.Inconclusive).Reason
		}
		texts = append(texts, text)
		row.Dots = append(row.Dots, d)
	}
	m, ok := s.Median(cell, f)
	if ok {
		row.Median = scale.of(m.Value)
		row.Text = wording.ValueOf(unit, &m.Value, m.Censored)
	} else {
		row.Text = "–"
	}
	row.Label = fmt.Sprintf("%s: median %s, runs %s", s.Cells[cell].Name, row.Text,
		strings.Join(texts, ", "))
	if len(texts) == 0 {
		row.Label = s.Cells[cell].Name + ": no run has this figure"
	}
}
