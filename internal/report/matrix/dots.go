package matrix

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

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
func (s *subject) dotPlots() (plots []dotPlot) {
	for _, f := range s.Measured() {
		if !slices.ContainsFunc(s.Primary(), func(o compare.Figure) bool { return o.Name == f.Name }) &&
			f.Name != compare.Throughput.Name || f.Counted {
			continue
		}
		plots = append(plots, s.dotPlot(f))
	}
	return plots
}

func (s *subject) dotPlot(f compare.Figure) dotPlot {
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
		Labels: s.labelWidth(),
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
		s.setDots(&row, cell, f, scale)
		p.Rows = append(p.Rows, row)
	}
	return p
}

// Widths of the heads of rows, in pixels: longer ones are cut off.
const (
	narrowest, widest = 84, 220
	characterWidth    = 6.9
)

func (s *subject) labelWidth() int {
	longest := 0
	for i := range s.Cells {
		group, matched := s.GroupOf(i)
		longest = max(longest, len([]rune(group))+len([]rune(matched)))
	}
	return min(max(int(float64(longest)*characterWidth)+26, narrowest), widest)
}

func (s *subject) setDots(row *dotRow, cell int, f compare.Figure, scale lengthScale) {
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

// drift is the runs in their order against the median of their cell.
type drift struct {
	Figure string
	Dots   []driftDot
	Lines  []plot.Tick // of the vertical axis
	Runs   []plot.Tick
	Found  string // what is to be seen
	Change float64
}

type driftDot struct {
	Left, Bottom plot.Place
	Doubt        bool
	Title        string
}

// drift draws the first figure that most runs have; nil if there are too few runs to see one.
func (s *subject) drift() *drift {
	f, ok := s.driftFigure()
	if !ok || len(s.Runs) < fewestForDrift {
		return nil
	}
	type point struct {
		run *study.Run
		log float64
	}
	var points []point
	spread := math.Log(1.1)
	for i := range s.Runs {
		run := &s.Runs[i]
		v, has := run.Values[f.Name]
		m, known := s.Median(run.Cell, f)
		if !has || !known || v.Censored || v.Value <= f.Floor || m.Value <= f.Floor {
			continue
		}
		p := point{run, math.Log(v.Value / m.Value)}
		points = append(points, p)
		if run.Inconclusive == "" {
			spread = max(spread, math.Abs(p.log)*1.1)
		}
	}
	if len(points) < fewestForDrift {
		return nil
	}
	d := &drift{Figure: wording.Of(f.Name).Title}
	y := func(log float64) float64 { return min(max(50+50*log/spread, 3), 97) }
	for _, p := range points {
		d.Dots = append(d.Dots, driftDot{
			plot.At(s.driftX(p.run.Number)), plot.At(y(p.log)), p.run.Inconclusive != "",
			fmt.Sprintf("run %d: %s, %s", p.run.Number, s.Cells[p.run.Cell].Name,
				wording.Change(f, new(math.Expm1(p.log)))),
		})
	}
	for _, by := range []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 3, 9} {
		if math.Log1p(by) > 0.3*spread {
			for _, x := range []float64{-by / (1 + by), by} {
				d.Lines = append(d.Lines, plot.Tick{At: plot.At(y(math.Log1p(x))), Text: wording.Change(f, &x)})
			}
			break
		}
	}
	d.Runs = s.runTicks()
	d.tell(s, f)
	return d
}

const fewestForDrift = 6

func (s *subject) driftX(number int) float64 {
	return 100 * (float64(number) - 0.5) / float64(max(len(s.Runs), 1))
}

// driftFigure is the first primary figure that is no count, else the throughput.
func (s *subject) driftFigure() (compare.Figure, bool) {
	for _, f := range append(s.Primary(), compare.Throughput) {
		if !f.Counted &&
			slices.ContainsFunc(s.Runs, func(r study.Run) bool { _, ok := r.Values[f.Name]; return ok }) {
			return f, true
		}
	}
	return compare.Figure{}, false
}

func (s *subject) runTicks() (ticks []plot.Tick) {
	n := len(s.Runs)
	step := 1
	for _, by := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		if step = by; n/by <= 6 {
			break
		}
	}
	for i := 1; i <= n; i++ {
		if i == 1 || i%step == 0 && i > step/2 {
			ticks = append(ticks, plot.Tick{At: plot.At(s.driftX(i)), Text: report.Count(i)})
		}
	}
	ticks[0].Text = "run" + wording.NBSP + "1"
	return ticks
}

// tell compares the last third of the runs with the first third.
func (d *drift) tell(s *subject, f compare.Figure) {
	var first, last []float64
	for i := range s.Runs {
		run := &s.Runs[i]
		v, has := run.Values[f.Name]
		m, known := s.Median(run.Cell, f)
		if !has || !known || run.Inconclusive != "" || v.Censored || v.Value <= f.Floor ||
			m.Value <= f.Floor {
			continue
		}
		switch log := math.Log(v.Value / m.Value); {
		case 3*i < len(s.Runs):
			first = append(first, log)
		case 3*i >= 2*len(s.Runs):
			last = append(last, log)
		}
	}
	if len(first) == 0 || len(last) == 0 {
		d.Found = "too few runs to see a drift"
		return
	}
	d.Change = math.Expm1(compare.MedianOf(last) - compare.MedianOf(first))
	limit := f.MarginAt(1)
	if math.Abs(math.Log1p(d.Change)) < math.Log1p(limit)/2 {
		d.Found = fmt.Sprintf("no drift: the last third of the runs differs from the first by %s",
			wording.Change(f, &d.Change))
		return
	}
	d.Found = fmt.Sprintf("a drift: the last third of the runs differs from the first by %s",
		wording.Change(f, &d.Change))
}

// doubt is why a run is in no figure.
type doubt struct{ Reason, Message string }

// doubtOf divides a reason into its word and its sentence.
func doubtOf(inconclusive string) doubt {
	text := strings.TrimPrefix(inconclusive, "its verdict is Inconclusive: ")
	head, rest, found := strings.Cut(text, ": ")
	if found && !strings.ContainsAny(head, " \t\n") && len(head) <= 64 {
		return doubt{head, rest}
	}
	return doubt{"Inconclusive", text}
}

// lengthScale places values from 0 to a round number above the greatest one.
type lengthScale struct{ most float64 }

func newLengthScale(greatest float64) lengthScale {
	if greatest <= 0 || math.IsInf(greatest, 0) || math.IsNaN(greatest) {
		return lengthScale{1}
	}
	return lengthScale{greatest * 1.06}
}

func (s lengthScale) of(x float64) plot.Place {
	return plot.At(100 * min(max(x/s.most, 0), 1))
}

// steps are some three to five round numbers within the scale, from 0.
func (s lengthScale) steps() (list []float64) {
	step := math.Pow10(int(math.Floor(math.Log10(s.most / 2))))
	for _, by := range []float64{1, 2, 5, 10} {
		if s.most/(step*by) <= 5 {
			step *= by
			break
		}
	}
	for i := 0; float64(i)*step <= s.most; i++ {
		list = append(list, float64(i)*step)
	}
	return list
}
