package repeats

import (
	"fmt"
	"math"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

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

// driftOf draws the first figure that most runs have; nil if there are too few runs to see one.
func driftOf(s *study.Study) *drift {
	f, ok := driftFigure(s)
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
			plot.At(driftX(s, p.run.Number)), plot.At(y(p.log)), p.run.Inconclusive != "",
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
	d.Runs = runTicks(s)
	d.tell(s, f)
	return d
}

const fewestForDrift = 6

func driftX(s *study.Study, number int) float64 {
	return 100 * (float64(number) - 0.5) / float64(max(len(s.Runs), 1))
}

// driftFigure is the first primary figure that is no count, else the throughput.
func driftFigure(s *study.Study) (compare.Figure, bool) {
	for _, f := range append(s.Primary(), compare.Throughput) {
		if !f.Counted &&
			slices.ContainsFunc(s.Runs, func(r study.Run) bool { _, ok := r.Values[f.Name]; return ok }) {
			return f, true
		}
	}
	return compare.Figure{}, false
}

func runTicks(s *study.Study) (ticks []plot.Tick) {
	n := len(s.Runs)
	step := 1
	for _, by := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		if step = by; n/by <= 6 {
			break
		}
	}
	for i := 1; i <= n; i++ {
		if i == 1 || i%step == 0 && i > step/2 {
			ticks = append(ticks, plot.Tick{At: plot.At(driftX(s, i)), Text: report.Count(i)})
		}
	}
	ticks[0].Text = "run" + wording.NBSP + "1"
	return ticks
}

// tell compares the last third of the runs with the first third.
func (d *drift) tell(s *study.Study, f compare.Figure) {
	var first, last []float64
	for i := range s.Runs {
		run := &s.Runs[i]
		v, ok := run.Values[f.Name]
		m, known := s.Median(run.Cell, f)
		if !ok || !known || run.Inconclusive != "" || v.Censored || v.Value <= f.Floor ||
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
