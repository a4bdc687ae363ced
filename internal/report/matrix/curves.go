package matrix

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
)

// Window is the part of each run that is drawn: around its fault, or, of runs without one, from the begin of the load.
type Window struct {
	Fault         bool
	Before, After time.Duration // Before is 0 without a fault
	Step          time.Duration
}

// curvePoints is how many steps a window has at most.
const curvePoints = 170

// WindowOf chooses the window by how long the runs of a record took to recover, or took at all.
func WindowOf(r *experiment.Record) Window {
	var recoveries, lengths []float64
	for i := range r.Runs {
		run := &r.Runs[i]
		if v, ok := run.Values[compare.RecoveryTime.Name]; ok && !v.Censored {
			recoveries = append(recoveries, v.Value)
		}
		if !run.Start.IsZero() && run.End.After(run.Start) {
			lengths = append(lengths, run.End.Sub(run.Start).Seconds())
		}
	}
	w := Window{Fault: slices.ContainsFunc(r.Runs, func(run experiment.RecordedRun) bool {
		_, ok := run.Values[compare.RecoveryTime.Name]
		return ok
	})}
	seconds := func(x float64) time.Duration { return time.Duration(math.Ceil(x) * float64(time.Second)) }
	switch {
	case w.Fault:
		after := 12.
		if len(recoveries) > 0 {
			after = min(max(after, 3*slices.Max(recoveries)), 600)
		}
		w.After = seconds(after)
		w.Before = seconds(after * 5 / 12)
	case len(lengths) > 0:
		w.After = seconds(slices.Max(lengths))
	default:
		w.After = time.Minute
	}
	w.Step = max(100*time.Millisecond, (w.Before+w.After)/curvePoints).Truncate(100 * time.Millisecond)
	if (w.Before+w.After)/w.Step > curvePoints {
		w.Step += 100 * time.Millisecond
	}
	return w
}

func (w Window) steps() int { return int((w.Before + w.After + w.Step - 1) / w.Step) }

// Curve is the successes per second of a run over the window; NaN where the record has none.
type Curve struct{ Rates []float64 }

// NewCurve takes the window out of a record: counts holds the successes of each step from the begin of the load, at is where the window's zero is.
func NewCurve(w Window, step time.Duration, counts []float64, at time.Duration) *Curve {
	c := &Curve{Rates: make([]float64, w.steps())}
	for i := range c.Rates {
		from := at - w.Before + time.Duration(i)*w.Step
		c.Rates[i] = rate(step, counts, from, from+w.Step)
	}
	return c
}

// rate is the mean over a time, which may begin and end within steps.
func rate(step time.Duration, counts []float64, from, to time.Duration) float64 {
	if from < 0 || to > time.Duration(len(counts))*step {
		return math.NaN()
	}
	sum := 0.
	for at := from; at < to; {
		i := at / step
		end := min((i+1)*step, to)
		sum += counts[i] * float64(end-at) / float64(step)
		at = end
	}
	return sum / (to - from).Seconds()
}

// bundle is the curves of the runs of a cell: of each step the lowest, the median and the highest.
type bundle struct {
	runs           int
	low, mid, high []float64
}

// newBundle puts curves of the same window together; nil = there is none.
func newBundle(curves []*Curve) *bundle {
	if len(curves) == 0 {
		return nil
	}
	b := &bundle{runs: len(curves)}
	for i := range curves[0].Rates {
		var values []float64
		for _, c := range curves {
			if i < len(c.Rates) && !math.IsNaN(c.Rates[i]) {
				values = append(values, c.Rates[i])
			}
		}
		low, mid, high := math.NaN(), math.NaN(), math.NaN()
		if len(values) > 0 {
			low, mid, high = slices.Min(values), compare.MedianOf(values), slices.Max(values)
		}
		b.low, b.mid, b.high = append(b.low, low), append(b.mid, mid), append(b.high, high)
	}
	return b
}

// usual is the median over the time before the fault, or over all of it.
func (b *bundle) usual(w Window) float64 {
	n := len(b.mid)
	if w.Fault {
		n = int(w.Before / w.Step)
	}
	values := slices.DeleteFunc(slices.Clone(b.mid[:n]), math.IsNaN)
	if len(values) == 0 {
		return math.NaN()
	}
	return compare.MedianOf(values)
}

// curveDrawing is the curves of a cell as paths in a box of 10000 x 1000.
type curveDrawing struct {
	Band, Line           string
	FaultAt              string // "" = there is no fault
	OutageFrom, OutageTo string // "" = none
	Baseline             string // where the dashed line of the baseline is; "" = none
	BaselineName         string // beside it, where the two are far from each other
	BaselineAt           place
	Label                string
}

// curveScale is common to all cells.
type curveScale struct {
	Window
	most float64
}

// headroom is what the scale leaves above the usual throughput: what is higher is cut off.
const headroom = 1.2

// newCurveScale is the scale of some bundles, of which each may be nil.
func newCurveScale(w Window, bundles []*bundle) curveScale {
	c := curveScale{Window: w}
	for _, b := range bundles {
		if b == nil {
			continue
		}
		if u := b.usual(w); !math.IsNaN(u) {
			c.most = max(c.most, u*headroom)
		}
	}
	return c
}

func (c curveScale) x(i int) string {
	return strconv.Itoa(int(math.Round(float64(i) * float64(c.Step) / float64(c.Before+c.After) * 10000)))
}

func (c curveScale) y(v float64) string {
	return strconv.Itoa(int(math.Round(1000 * (1 - min(v/c.most, 1)))))
}

func (c curveScale) timeX(t time.Duration) string {
	return strconv.Itoa(int(math.Round(float64(c.Before+t) / float64(c.Before+c.After) * 10000)))
}

// drawing draws the curves of a cell; usual is the throughput of its baseline, outage that of the cell in seconds.
func (c curveScale) drawing(b *bundle, baseline float64, begins time.Duration, outage float64) *curveDrawing {
	if b == nil || c.most <= 0 {
		return nil
	}
	d := &curveDrawing{Band: c.band(b), Line: c.line(b.mid)}
	if !math.IsNaN(baseline) && baseline > 0 {
		d.Baseline = c.y(baseline)
	}
	unit := func(x float64) string { return report.Rate(tidy(x)) }
	switch u := b.usual(c.Window); {
	case math.IsNaN(u):
		d.Label = fmt.Sprintf("Throughput of %s: the record has none of the time before the fault.", plural(b.runs, "run"))
	case !c.Fault:
		d.Label = fmt.Sprintf("Throughput of %s: about %s.", plural(b.runs, "run"), unit(u))
	default:
		d.Label = fmt.Sprintf("Throughput of %s from %s before the fault to %s after it: about %s", plural(b.runs, "run"), report.Duration(c.Before), report.Duration(c.After), unit(u))
		d.FaultAt = c.timeX(0)
		if outage > 0 {
			d.OutageFrom = c.timeX(begins)
			d.OutageTo = width(d.OutageFrom, c.timeX(min(begins+time.Duration(outage*float64(time.Second)), c.After)))
			d.Label += ", none for " + report.Duration(time.Duration(outage*float64(time.Second)))
		}
		d.Label += "."
	}
	return d
}

func width(from, to string) string {
	a, _ := strconv.Atoi(from)
	b, _ := strconv.Atoi(to)
	return strconv.Itoa(max(b-a, 20))
}

func (c curveScale) band(b *bundle) string {
	var p strings.Builder
	for i := range b.low {
		if !math.IsNaN(b.low[i]) && c.y(b.low[i]) != c.y(b.high[i]) {
			fmt.Fprintf(&p, "M%s %sH%sV%sH%sZ", c.x(i), c.y(b.high[i]), c.x(i+1), c.y(b.low[i]), c.x(i))
		}
	}
	return p.String()
}

// line is in steps: a value holds for its step, and there is none through a hole.
func (c curveScale) line(values []float64) string {
	var p strings.Builder
	last := ""
	for i, v := range values {
		if math.IsNaN(v) {
			last = ""
			continue
		}
		y := c.y(v)
		switch {
		case last == "":
			p.WriteString("M" + c.x(i) + " " + y)
		case y != last:
			p.WriteString("V" + y)
		}
		p.WriteString("H" + c.x(i+1))
		last = y
	}
	return p.String()
}

// timeTicks are the marks below the curves.
func (w Window) timeTicks(fault string) (ticks []tick) {
	total := (w.Before + w.After).Seconds()
	step := 600.
	for _, by := range []float64{1, 2, 5, 10, 20, 60, 120, 300} {
		if total/by <= 4 {
			step = by
			break
		}
	}
	if w.Fault {
		ticks = append(ticks, tick{At: at(0), Text: "−" + report.Duration(w.Before), Class: "b"})
	}
	zero := "0"
	if w.Fault {
		zero = fault
	}
	for t := 0.; t < w.After.Seconds()-total*0.06; t += step {
		k := tick{At: at(100 * (w.Before.Seconds() + t) / total), Text: "+" + report.Duration(time.Duration(t*float64(time.Second)))}
		if t == 0 {
			k.Text, k.Class = zero, "z"
			if !w.Fault {
				k.Class = "b"
			}
		}
		ticks = append(ticks, k)
	}
	return ticks
}
