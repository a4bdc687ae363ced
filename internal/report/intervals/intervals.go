// Package intervals shows comparisons of cells with their baselines, or with themselves in an
// earlier run, as drawn intervals and as a table.
package intervals

import (
	_ "embed" // the drawing
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

//go:embed intervals.html
var templates string

var drawings = plot.NewDrawings(templates)

// barTable is the comparisons as intervals, a column for each figure.
type barTable struct {
	Name      string     // no other one of the page has it
	Group, Of string     // the heads of the first two columns; Group "" = there is one group
	Width     plot.Place // of the column of a figure
	Figures   []barFigure
	Rows      []barRow
}

type barFigure struct {
	Title  string
	Margin string
	Ticks  []plot.Tick
	Lower  bool // is better
}

type barRow struct {
	First bool // of its group
	Span  int  // rows of the group
	Group string
	Of    string
	Bars  []bar // in the order of the figures; without a Label there is no comparison
}

// Draw draws comparisons of cells of a matrix: those with their baselines, or those with an earlier
// run. "" = none of them is a ratio.
func Draw(m *study.Matrix, name string, rows []comparisons.Comparison) (template.HTML, error) {
	t := newBarTable(m, name, rows)
	if t == nil {
		return "", nil
	}
	return drawings.Draw("bars", t)
}

// newBarTable places the comparisons of cells of a matrix; nil = none of them is a ratio.
func newBarTable(m *study.Matrix, name string, rows []comparisons.Comparison) *barTable {
	scale := newRatioScale(rows)
	t := &barTable{Name: name, Of: m.FixedNames()}
	var figures []compare.Figure
	for i := range rows {
		f := compare.FigureNamed(rows[i].Figure)
		if f.Counted || !rows[i].Primary ||
			slices.ContainsFunc(figures, func(o compare.Figure) bool { return o.Name == f.Name }) {
			continue
		}
		figures = append(figures, f)
		t.Figures = append(t.Figures, barFigure{
			Title:  wording.Of(f.Name).Title,
			Margin: report.Margin(Margins(rows, f)),
			Ticks:  scale.ticks(f),
			Lower:  !f.HigherIsBetter,
		})
	}
	if len(figures) == 0 {
		return nil
	}
	t.Width = plot.At(min(60, 86/float64(len(figures))))
	for _, cell := range compared(m, rows) {
		group, matched := m.GroupOf(cell)
		row := barRow{Group: matched, Of: group}
		for _, f := range figures {
			row.Bars = append(row.Bars, barOf(rows, m.Cells[cell].Name, f, scale))
		}
		t.Rows = append(t.Rows, row)
	}
	t.sort()
	return t
}

// compared are the cells that have a comparison, in their order.
func compared(m *study.Matrix, rows []comparisons.Comparison) (cells []int) {
	for i := range m.Cells {
		if slices.ContainsFunc(rows, func(r comparisons.Comparison) bool {
			return r.Primary &&
				r.Cell == m.Cells[i].Name
		}) {
			cells = append(cells, i)
		}
	}
	return cells
}

// sort puts the rows of a group together, in the order in which the groups begin.
func (t *barTable) sort() {
	first := map[string]int{}
	for i := range t.Rows {
		if _, ok := first[t.Rows[i].Group]; !ok {
			first[t.Rows[i].Group] = i
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b barRow) int { return first[a.Group] - first[b.Group] })
	for i := range t.Rows {
		if i > 0 && t.Rows[i].Group == t.Rows[i-1].Group {
			continue
		}
		t.Rows[i].First = true
		for k := i; k < len(t.Rows) && t.Rows[k].Group == t.Rows[i].Group; k++ {
			t.Rows[i].Span++
		}
	}
	if len(first) == 1 {
		return
	}
	t.Group = "with"
}

func barOf(rows []comparisons.Comparison, cell string, f compare.Figure, scale ratioScale) bar {
	at := slices.IndexFunc(rows, func(r comparisons.Comparison) bool {
		return r.Cell == cell &&
			r.Figure == f.Name
	})
	if at < 0 {
		return bar{}
	}
	return drawn(&rows[at], f, scale)
}

// drawn is a comparison as it is drawn.
func drawn(r *comparisons.Comparison, f compare.Figure, scale ratioScale) bar {
	word := wording.OfVerdict(r.Verdict)
	b := bar{
		Class:  word.Class,
		Word:   word,
		Figure: wording.Of(f.Name).Title,
		Thin:   scale.span(r.IntervalJoint, f),
		Thick:  scale.span(r.Interval90, f),
		Change: wording.Change(f, r.Change),
		Small:  needs(r),
	}
	if r.Bound != "" {
		b.Change = map[string]string{"AtLeast": "≥", "AtMost": "≤"}[r.Bound] + wording.NBSP + b.Change
	}
	if r.Change == nil {
		b.Thin, b.Thick, b.NotDrawn = span{}, span{}, short(r)
		b.Label = fmt.Sprintf("%s: %s", word.Text, b.NotDrawn)
		return b
	}
	if r.Margin > 0 {
		b.Margin = plot.At(max(0, 50-math.Abs(scale.of(math.Log1p(r.Margin), f)-50)))
	}
	b.Point = plot.At(scale.of(math.Log1p(max(*r.Change, -1+1e-9)), f))
	interval, name := r.IntervalJoint, "simultaneous"
	if r.Verdict == string(compare.Same) {
		interval, name = r.Interval90, wording.Percent(0.9)
	}
	if interval == nil { // of a status, which has the one on which the verdict rests
		interval = &comparisons.Interval{
			AtLeast:    r.AtLeast,
			AtMost:     r.AtMost,
			Confidence: r.Confidence,
		}
		name = wording.Percent(r.Confidence)
		if r.Confidence == 0.9 {
			b.Thick = scale.span(interval, f)
		} else {
			b.Thin = scale.span(interval, f)
		}
	}
	b.Interval = wording.Interval(f, interval)
	b.Label = fmt.Sprintf("%s, %s interval %s: %s", b.Change, name,
		strings.Replace(b.Interval, "…", " to ", 1), word.Text)
	return b
}

// short is why there is no change, in some words.
func short(r *comparisons.Comparison) string {
	switch r.Reason {
	case string(compare.TooFewRepeats):
		return "too few repeats"
	case string(compare.TooManyInconclusive):
		return "too many runs in doubt"
	case experiment.NotMeasured:
		return "not measured"
	}
	if r.Verdict == "" {
		return "no interval yet"
	}
	return "not known"
}

// needs is how many repeats would tell.
func needs(r *comparisons.Comparison) string {
	switch {
	case r.Verdict != string(compare.Inconclusive) || r.Needs == 0:
		return ""
	case r.Needs > compare.MaxRepeats:
		return fmt.Sprintf("more than %d repeats would be needed", compare.MaxRepeats)
	case r.Reason == string(compare.TooFewRepeats):
		return fmt.Sprintf("needs at least %d repeats", r.Needs)
	}
	return fmt.Sprintf("about %d repeats would tell", r.Needs)
}

// Margins are the margins of a figure over its comparisons: 5 %, or from the least to the greatest;
// "" = there is none.
func Margins(rows []comparisons.Comparison, f compare.Figure) string {
	least, most := math.Inf(1), 0.
	for i := range rows {
		if rows[i].Figure == f.Name && rows[i].Primary && rows[i].Margin > 0 {
			least, most = min(least, rows[i].Margin), max(most, rows[i].Margin)
		}
	}
	low, high := marginText(least), marginText(most)
	switch {
	case most == 0:
		return ""
	case low == high:
		return high
	}
	return strings.TrimSuffix(low, wording.NBSP+"%") + "–" + high
}

// marginText is a margin: whole percents from 10 on.
func marginText(x float64) string {
	if x >= 0.0995 && !math.IsInf(x, 0) {
		x = math.Round(x*100) / 100
	}
	return wording.Percent(math.Round(x*1e3) / 1e3)
}

// Table is the comparisons as a table.
func Table(rows []comparisons.Comparison) report.Table {
	t := report.Table{
		Drawn:   true,
		Caption: "Each cell against its baseline",
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "Cell"},
			{Title: "Baseline"},
			{Title: "Median", Number: true},
			{Title: "of baseline", Number: true},
			{Title: "Change", Number: true},
			{Title: "Interval", Number: true},
			{Title: "Verdict"},
			{Title: "Why", Soft: true},
		},
	}
	primary := slices.DeleteFunc(slices.Clone(rows), func(r comparisons.Comparison) bool {
		return !r.Primary
	})
	if len(primary) > manyRows {
		slices.SortStableFunc(primary, func(a, b comparisons.Comparison) int {
			return rank(a.Verdict) -
				rank(b.Verdict)
		})
	}
	for i := range primary {
		t.Rows = append(t.Rows, report.Row{Cells: Cells(&primary[i])})
	}
	return t
}

// manyRows is from how many comparisons on those that show a difference stand first: nobody reads
// all of them.
const manyRows = 40

// rank is how soon a reader should see a verdict.
func rank(verdict string) int {
	return slices.Index([]string{"Regressed", "Worse", "Improved", "Better", "Inconclusive", "Same"},
		verdict)
}

// Cells are a comparison in the columns of Table: figure, cell, baseline, both medians, change,
// interval, verdict and why.
func Cells(r *comparisons.Comparison) []report.Cell {
	f := compare.FigureNamed(r.Figure)
	interval := wording.Interval(f, &comparisons.Interval{AtLeast: r.AtLeast, AtMost: r.AtMost})
	if r.Change == nil {
		interval = ""
	} else {
		interval = fmt.Sprintf("%s (%s)", interval, wording.Percent(r.Confidence))
	}
	b := map[string]string{"AtLeast": "≥" + wording.NBSP, "AtMost": "≤" + wording.NBSP}[r.Bound] +
		wording.Change(f, r.Change)
	unit := result.UnitShare
	if f.Counted {
		unit = result.UnitCount
	}
	return []report.Cell{
		{Text: r.Figure},
		{Text: r.Cell},
		{Text: r.Baseline},
		{Text: wording.ValueOf(r.Unit, r.Median, r.MedianAtLeast), Value: r.Median, Unit: r.Unit},
		{
			Text:  wording.ValueOf(r.Unit, r.BaselineMedian, r.BaselineMedianAtLeast),
			Value: r.BaselineMedian,
			Unit:  r.Unit,
		},
		{Text: b, Value: r.Change, Unit: unit},
		{Text: interval},
		{Text: wording.OfVerdict(r.Verdict).String()},
		{Text: r.Message},
	}
}
