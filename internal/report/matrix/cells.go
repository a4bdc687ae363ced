package matrix

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/overlay"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

// matrixDrawing is the matrix as it is drawn.
type matrixDrawing struct {
	Corner, Over string
	Columns      []string
	Rows         []matrixRow
	Ticks        []plot.Tick // below the curves; none without curves
	Compact      bool
	// columns: then the change is below the number in all cells, so that their curves are level
	Many   bool
	Labels int // the width of the heads of the rows, in pixels: longer ones wrap
}

type matrixRow struct {
	Head  string
	Cells []*cellDrawing // nil = there is no such cell
}

// cellDrawing is a cell of the matrix.
type cellDrawing struct {
	Column       string // for narrow screens
	Number, Unit string // the median
	IsBaseline   bool
	Change       string
	Word         *wording.Verdict
	Curve        *overlay.Drawing
	Facts        []cellFact
	Doubt        string // how many runs are in the figures, if some are not
}

type cellFact struct{ Name, Value string }

// cellsWithCurves is up to how many cells the curves are drawn: of more, the numbers alone can be
// read.
const cellsWithCurves = 40

// Limits of the layout: up to how many columns have number and change in one line, and how wide the
// heads of the rows may be, in pixels.
const (
	columnsInALine = 2
	widestHead     = 150
)

// leading is the figure that the matrix shows large: the throughput if a verdict is told of it, or
// the first one of which one is.
func (s *subject) leading() compare.Figure {
	has := func(f compare.Figure) bool {
		return slices.ContainsFunc(s.Runs, func(r study.Run) bool {
			_, ok := r.Values[f.Name]
			return ok
		})
	}
	primary := s.Primary()
	if slices.ContainsFunc(primary, func(f compare.Figure) bool {
		return f.Name == compare.Throughput.Name
	}) {
		return compare.Throughput
	}
	for _, f := range primary {
		if !f.Counted && has(f) {
			return f
		}
	}
	return compare.Throughput
}

func (s *subject) matrix() *matrixDrawing {
	bundles := make([]*overlay.Bundle, len(s.Cells))
	curves := false
	if len(s.Cells) <= cellsWithCurves {
		for i := range s.Cells {
			bundles[i] = overlay.NewBundle(s.curvesOf(i))
			curves = curves || bundles[i] != nil
		}
	}
	most := columnsWithout
	if curves {
		most = columnsWithCurves
	}
	g := s.Grid(most)
	d := &matrixDrawing{
		Corner:  g.Corner,
		Over:    g.Over,
		Compact: !curves,
	}
	for _, v := range g.Columns {
		d.Columns = append(d.Columns, study.ColumnHead(g.Over, v))
	}
	d.Many = curves && len(d.Columns) > columnsInALine
	scale := overlay.NewScale(s.Window, bundles)
	for _, row := range g.Rows {
		drawn := matrixRow{Head: row.Head}
		for c, cell := range row.Cells {
			if cell < 0 {
				drawn.Cells = append(drawn.Cells, nil)
				continue
			}
			drawn.Cells = append(drawn.Cells, s.cell(cell, d.Columns[c], scale, bundles))
		}
		d.Rows = append(d.Rows, drawn)
	}
	longest := len([]rune(d.Corner))
	for _, row := range d.Rows {
		longest = max(longest, len([]rune(row.Head)))
	}
	d.Labels = plot.HeadWidth(longest, 14, widestHead)
	if curves {
		d.Ticks = s.Window.Ticks(s.FaultWord())
	}
	return d
}

// curvesOf are the curves of the runs of a cell that are in the figures.
func (s *subject) curvesOf(cell int) (curves []*overlay.Curve) {
	for _, run := range s.RunsOf(cell) {
		if run.Detail != nil && run.Detail.Curve != nil && run.Inconclusive == "" {
			curves = append(curves, run.Detail.Curve)
		}
	}
	return curves
}

func (s *subject) cell(
	cell int, column string, scale overlay.Scale, bundles []*overlay.Bundle,
) *cellDrawing {
	f := s.leading()
	unit := experiment.UnitOf(f)
	c := &cellDrawing{
		Column:     column,
		IsBaseline: s.IsBaseline(cell),
		Number:     "–",
	}
	if m, ok := s.Median(cell, f); ok {
		c.Number, c.Unit = wording.SplitUnit(wording.ValueOf(unit, &m.Value, m.Censored))
	}
	row := s.Row(s.Cells[cell].Name, f.Name)
	if row != nil && !c.IsBaseline {
		if row.Change != nil {
			c.Change = wording.Change(f, row.Change)
		}
		if row.Primary {
			w := wording.OfVerdict(row.Verdict)
			c.Word = &w
		}
	}
	s.setFacts(c, cell, f)
	runs := s.RunsOf(cell)
	conclusive := slices.DeleteFunc(slices.Clone(runs), func(r *study.Run) bool {
		return r.Inconclusive != ""
	})
	if len(conclusive) < len(runs) {
		c.Doubt = fmt.Sprintf("%d of %s", len(conclusive), wording.Plural(len(runs), "run"))
	}
	if b := bundles[cell]; b != nil {
		s.draw(c, cell, b, scale, bundles)
	}
	return c
}

// shownBelow are the figures below a curve although no verdict is told of them.
var shownBelow = []string{
	compare.Throughput.Name, compare.LatencyP99.Name, compare.Outage.Name,
	compare.RecoveryTime.Name, compare.LostWrites.Name,
}

// setFacts adds the other figures below the curve.
func (s *subject) setFacts(c *cellDrawing, cell int, leading compare.Figure) {
	for _, f := range s.Measured() {
		primary := slices.ContainsFunc(s.Primary(), func(o compare.Figure) bool {
			return o.Name == f.Name
		})
		if f.Name == leading.Name || !primary && !slices.Contains(shownBelow, f.Name) ||
			f.Name == compare.Outage.Name && !primary && len(s.Faults) == 0 {
			continue
		}
		if m, ok := s.Median(cell, f); ok {
			c.Facts = append(c.Facts, cellFact{
				wording.Of(f.Name).Short(),
				wording.ValueOf(experiment.UnitOf(f), &m.Value, m.Censored),
			})
		}
	}
}

func (s *subject) draw(
	c *cellDrawing, cell int, b *overlay.Bundle, scale overlay.Scale, bundles []*overlay.Bundle,
) {
	baseline := math.NaN()
	of := s.Cells[cell].Baseline
	if of != cell && bundles[of] != nil {
		baseline = bundles[of].Usual(scale.Window)
	}
	outage := 0.
	if m, ok := s.Median(cell, compare.Outage); ok {
		outage = m.Value
	}
	c.Curve = scale.Draw(b, baseline, s.beginOfOutage(cell), outage)
	u := b.Usual(scale.Window)
	if c.Curve != nil && !math.IsNaN(baseline) && math.Abs(u-baseline) > 0.25*scale.Most {
		group, _ := s.GroupOf(s.Cells[cell].Baseline)
		y, _ := strconv.Atoi(c.Curve.Baseline)
		c.Curve.BaselineName, c.Curve.BaselineAt = s.Named(group), plot.At(100-float64(y)/10)
	}
}

// beginOfOutage is the median time from the injection to the impact.
func (s *subject) beginOfOutage(cell int) time.Duration {
	var begins []float64
	for _, run := range s.RunsOf(cell) {
		if run.Detail != nil && run.Detail.Begins != nil && run.Inconclusive == "" {
			begins = append(begins, run.Detail.Begins.Seconds())
		}
	}
	if len(begins) == 0 {
		return 0
	}
	return time.Duration(compare.MedianOf(begins) * float64(time.Second))
}

// matrixTable is the matrix as a table.
func (s *subject) matrixTable() report.Table {
	g := s.Grid(columnsWithout)
	f := s.leading()
	t := report.Table{
		Drawn:   true,
		Caption: "Median of " + wording.Of(f.Name).InText,
		Columns: []report.Column{{Title: orCell(g.Corner)}},
	}
	for _, v := range g.Columns {
		head := study.ColumnHead(g.Over, v)
		if head == "" {
			head = wording.Of(f.Name).Title
		}
		t.Columns = append(t.Columns, report.Column{Title: head, Number: true})
	}
	for _, row := range g.Rows {
		cells := []report.Cell{{Text: row.Head}}
		for _, cell := range row.Cells {
			cells = append(cells, s.matrixCell(cell, f))
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t
}

func orCell(corner string) string {
	if corner == "" {
		return "Cell"
	}
	return corner
}

func (s *subject) matrixCell(cell int, f compare.Figure) report.Cell {
	if cell < 0 {
		return report.Cell{Text: "–"}
	}
	unit := experiment.UnitOf(f)
	m, ok := s.Median(cell, f)
	if !ok {
		return report.Cell{Text: "–"}
	}
	c := report.Cell{
		Text:  wording.ValueOf(unit, &m.Value, m.Censored),
		Value: &m.Value,
		Unit:  unit,
	}
	row := s.Row(s.Cells[cell].Name, f.Name)
	switch {
	case s.IsBaseline(cell):
		c.Text += " (baseline)"
	case row != nil && row.Change == nil && row.Verdict == "":
	case row != nil && row.Primary && row.Change == nil:
		c.Text += fmt.Sprintf(" (%s)", wording.OfVerdict(row.Verdict))
	case row != nil && row.Primary:
		c.Text += fmt.Sprintf(" (%s %s)", wording.Change(f, row.Change), wording.OfVerdict(row.Verdict))
	case row != nil:
		c.Text += fmt.Sprintf(" (%s)", wording.Change(f, row.Change))
	}
	return c
}

// Limits of the number of columns: more would be too narrow for a curve, or for a number.
const (
	columnsWithCurves = 5
	columnsWithout    = 8
)
