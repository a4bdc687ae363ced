// Package overlay lays the throughput of the runs of a cell over each other: the same part of each,
// around its fault, as a line and a band.
package overlay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/plot"
	"github.com/redquake/redquake/internal/report/wording"
)

// Window is the part of each run that is drawn: around its fault, or, of runs without one, from the
// begin of the load.
type Window struct {
	Fault         bool
	Before, After time.Duration // Before is 0 without a fault
	Step          time.Duration
}

func (w Window) steps() int {
	return int((w.Before + w.After + w.Step - 1) / w.Step)
}

// Curve is the successes per second of a run over the window; NaN where the record has none.
type Curve struct{ Rates []float64 }

// NewCurve takes the window out of a record: counts holds the successes of each step from the begin
// of the load, at is where the window's zero is.
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

// Bundle is the curves of the runs of a cell: of each step the lowest, the median and the highest.
type Bundle struct {
	runs           int
	low, mid, high []float64
}

// NewBundle puts curves of the same window together; nil = there is none.
func NewBundle(curves []*Curve) *Bundle {
	if len(curves) == 0 {
		return nil
	}
	b := &Bundle{runs: len(curves)}
	for i := range curves[0].Rates {
		var values []float64
		for _, c := range curves {
			if i < len(c.Rates) && !math.IsNaN(c.Rates[i]) {
				values = append(values, c.Rates[i])
			}
		}
		low, mid, high := math.NaN(), math.NaN(), math.NaN()
		if len(values) > 0 {
			low = slices.Min(values)
			mid = compare.MedianOf(values)
			high = slices.Max(values)
		}
		b.low = append(b.low, low)
		b.mid = append(b.mid, mid)
		b.high = append(b.high, high)
	}
	return b
}

// Usual is the median, in successes per second, over the time before the fault, or over all of it;
// NaN = there is no value then.
func (b *Bundle) Usual(w Window) float64 {
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

// Drawing is the curves of a cell as paths in a box of 10000 x 1000.
type Drawing struct {
	Band, Line           string
	FaultAt              string // "" = there is no fault
	OutageFrom, OutageTo string // "" = none
	Baseline             string // where the dashed line of the baseline is; "" = none
	BaselineName         string // beside it, where the two are far from each other
	BaselineAt           plot.Place
	Label                string
}

// Scale is common to all cells.
type Scale struct {
	Window
	Most float64
}

// headroom is what the scale leaves above the usual throughput: what is higher is cut off.
const headroom = 1.2

// NewScale is the scale of some bundles, of which each may be nil.
func NewScale(w Window, bundles []*Bundle) Scale {
	c := Scale{Window: w}
	for _, b := range bundles {
		if b == nil {
			continue
		}
		if u := b.Usual(w); !math.IsNaN(u) {
			c.Most = max(c.Most, u*headroom)
		}
	}
	return c
}

func (c Scale) x(i int) string {
	return strconv.Itoa(
		int(math.Round(float64(i) * float64(c.Step) / float64(c.Before+c.After) * 10000)))
}

func (c Scale) y(v float64) string {
	return strconv.Itoa(int(math.Round(1000 * (1 - min(v/c.Most, 1)))))
}

func (c Scale) timeX(t time.Duration) string {
	return strconv.Itoa(int(math.Round(float64(c.Before+t) / float64(c.Before+c.After) * 10000)))
}

// Draw draws the curves of a cell, nil = there are none. baseline is the usual throughput of its
// baseline, NaN = none; outage that of the cell in seconds, which begins so long after the fault.
func (c Scale) Draw(b *Bundle, baseline float64, begins time.Duration, outage float64) *Drawing {
	if b == nil || c.Most <= 0 {
		return nil
	}
	d := &Drawing{Band: c.band(b), Line: c.line(b.mid)}
	if !math.IsNaN(baseline) && baseline > 0 {
		d.Baseline = c.y(baseline)
	}
	unit := func(x float64) string { return report.Rate(wording.Tidy(x)) }
	switch u := b.Usual(c.Window); {
	case math.IsNaN(u):
		d.Label = fmt.Sprintf("Throughput of %s: the record has none of the time before the fault.",
			wording.Plural(b.runs, "run"))
	case !c.Fault:
		d.Label = fmt.Sprintf("Throughput of %s: about %s.", wording.Plural(b.runs, "run"), unit(u))
	default:
		d.Label = fmt.Sprintf("Throughput of %s from %s before the fault to %s after it: about %s",
			wording.Plural(b.runs, "run"), report.Duration(c.Before), report.Duration(c.After), unit(u))
		d.FaultAt = c.timeX(0)
		if outage > 0 {
			d.OutageFrom = c.timeX(begins)
			d.OutageTo = width(d.OutageFrom,
				c.timeX(min(begins+time.Duration(outage*float64(time.Second)), c.After)))
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

func (c Scale) band(b *Bundle) string {
	var p strings.Builder
	for i := range b.low {
		if !math.IsNaN(b.low[i]) && c.y(b.low[i]) != c.y(b.high[i]) {
			fmt.Fprintf(&p, "M%s %sH%sV%sH%sZ", c.x(i), c.y(b.high[i]), c.x(i+1), c.y(b.low[i]), c.x(i))
		}
	}
	return p.String()
}

// line is in steps: a value holds for its step, and there is none through a hole.
func (c Scale) line(values []float64) string {
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

// Ticks are the marks below the curves; fault names that of the injection.
func (w Window) Ticks(fault string) (ticks []plot.Tick) {
	total := (w.Before + w.After).Seconds()
	step := 600.
	for _, by := range []float64{1, 2, 5, 10, 20, 60, 120, 300} {
		if total/by <= 4 {
			step = by
			break
		}
	}
	if w.Fault {
		ticks = append(ticks, plot.Tick{
			At:    plot.At(0),
			Text:  "−" + report.Duration(w.Before),
			Class: "b",
		})
	}
	zero := "0"
	if w.Fault {
		zero = fault
	}
	for t := 0.; t < w.After.Seconds()-total*0.06; t += step {
		k := plot.Tick{
			At:   plot.At(100 * (w.Before.Seconds() + t) / total),
			Text: "+" + report.Duration(time.Duration(t*float64(time.Second))),
		}
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
