package schedule

import (
	_ "embed" // the drawing
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
)

//go:embed schedule.html
var templates string

var drawings = plot.NewDrawings(templates)

// trend is a figure of all cells over the runs.
type trend struct {
	Title, Counts string
	Rows          []trendRow
	Ticks         []plot.Tick
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
	Left, Width, Bottom plot.Place
	Title               string
}

type trendMark struct {
	At          plot.Place
	Class, Sign string
	Title       string
}

// Limits of the drawing: of more runs the last ones are drawn, and of more cells those that
// changed.
const (
	runsDrawn = 150
	rowsDrawn = 60
)

func (s *Schedule) trendSection(runs []history.Run) (*report.Section, error) {
	cells, figures := s.cellsOf(runs), figuresOf(runs)
	if len(cells) == 0 || len(figures) == 0 {
		return nil, nil
	}
	drawn := runs[max(0, len(runs)-runsDrawn):]
	var trends []trend
	left := 0
	for _, f := range figures {
		w := wording.Of(f.Name)
		t := trend{
			Title:  w.Title,
			Counts: w.Counts,
			Ticks:  nightTicks(drawn),
		}
		for c, name := range cells {
			changed := slices.ContainsFunc(s.History.Changes, func(h history.Change) bool {
				return h.Cell == name && h.Figure == f.Name
			}) ||
				slices.ContainsFunc(s.History.Regressions, func(r history.Regression) bool {
					return r.Cell == name && r.Figure == f.Name
				})
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
	html, err := drawings.Draw("trends", trends)
	if err != nil {
		return nil, err
	}
	section := &report.Section{
		ID:      "trend",
		Title:   "Over the runs",
		Leading: true,
		Drawing: html,
		Derived: true,
		Finding: report.Text("A dot is the median of a run, the line is the level. ").Strong("▼").
			Add(" marks the run since which it is worse, ").Strong("▲").
			Add(" since which it is better. Each row has its own scale."),
	}
	if len(drawn) < len(runs) {
		section.Note = fmt.Sprintf("The last %d of %d runs.", len(drawn), len(runs))
	}
	if left > 0 {
		section.Note = strings.TrimSpace(section.Note +
			fmt.Sprintf(" %s without a change of level are left out.", wording.Plural(left, "figure")))
	}
	return section, nil
}

// trendRow draws a figure of a cell.
func (s *Schedule) trendRow(runs []history.Run, f compare.Figure, cell int, name string) trendRow {
	unit := experiment.UnitOf(f)
	row := trendRow{Cell: name, Text: "–"}
	logs := make([]float64, len(runs)) // NaN = no median
	low, high := math.Inf(1), math.Inf(-1)
	for i := range runs {
		logs[i] = math.NaN()
		m := runs[i].Medians[f.Name]
		if runs[i].Complete && cell < len(m) && m[cell] != nil {
			x := float64(*m[cell])
			row.Text = wording.Value(unit, x)
			if logs[i] = math.Log(max(x, f.Floor)); f.Counted {
				logs[i] = math.Log1p(x)
			}
			low, high = min(low, logs[i]), max(high, logs[i])
		}
	}
	middle := (low + high) / 2
	half := max((high-low)/2, math.Log1p(f.MarginAt(1)), 0.02) * 1.15
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
		m := trendMark{
			At:    plot.At(x(c.at)/100 - 50/float64(len(runs))),
			Class: "bt",
			Sign:  "▲",
			Title: c.title,
		}
		if c.worse {
			m.Class, m.Sign = "ws", "▼"
		}
		row.Marks = append(row.Marks, m)
	}
	row.level(logs, begin, len(runs), y, f, unit)
	row.Label = fmt.Sprintf("%s of %s over %s, last %s", wording.Of(f.Name).Title, name,
		wording.Plural(len(runs), "run"), row.Text)
	for _, m := range row.Marks {
		row.Label += "; " + m.Title
	}
	return row
}

// level draws the median of the runs [from, to).
func (row *trendRow) level(
	logs []float64, from, to int, y func(float64) float64, f compare.Figure, unit result.Unit,
) {
	values := slices.DeleteFunc(slices.Clone(logs[from:to]), math.IsNaN)
	if len(values) == 0 {
		return
	}
	n, m := float64(len(logs)), compare.MedianOf(values)
	x := math.Exp(m)
	if f.Counted {
		x--
	}
	row.Levels = append(row.Levels, trendLevel{
		plot.At(100 * float64(from) / n),
		plot.At(100 * float64(to-from) / n), plot.At(100 - y(m)/10), "level " + wording.Value(unit, x),
	})
}

// mark is a change of level, or the begin of a regression.
type mark struct {
	at    int
	worse bool
	title string
}

// marksOf are the changes of a figure that begin with one of the runs, in their order; a regression
// without such a change is one, too.
func (s *Schedule) marksOf(figure, cell string, runs []history.Run) (marks []mark) {
	add := func(since string, worse bool, title string) {
		i := slices.IndexFunc(runs, func(r history.Run) bool { return r.Name == since })
		if i >= 0 && !slices.ContainsFunc(marks, func(m mark) bool { return m.at == i }) {
			marks = append(marks, mark{i, worse, title})
		}
	}
	f := compare.FigureNamed(figure)
	for i := range s.History.Changes {
		c := &s.History.Changes[i]
		if c.Figure == figure && c.Cell == cell {
			add(c.Since, c.Worse, fmt.Sprintf("%s since %s, found with %s", wording.Change(f, &c.Change),
				s.when(c.Since), c.Found))
		}
	}
	for i := range s.History.Regressions {
		r := &s.History.Regressions[i]
		if r.Figure == figure && r.Cell == cell {
			add(r.Since, true, r.Message+", since "+s.when(r.Since))
		}
	}
	slices.SortFunc(marks, func(a, b mark) int { return a.at - b.at })
	return marks
}

// nightTicks are the days of some runs.
func nightTicks(runs []history.Run) (ticks []plot.Tick) {
	step := max(1, (len(runs)+4)/5)
	for i := 0; i < len(runs); i += step {
		ticks = append(ticks, plot.Tick{
			At:   plot.At(100 * (float64(i) + 0.5) / float64(len(runs))),
			Text: runs[i].Scheduled.UTC().Format("2 Jan"),
		})
	}
	return ticks
}
