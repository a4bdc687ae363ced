package curve

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// A drawing is a box of width x height, which is stretched to the place that there is.
const (
	width  = 10000
	height = 1000
)

// frame is the part of a run that a drawing shows. Instants count from the start of the run, and
// are written as seconds from zero.
type frame struct {
	zero, from, to time.Duration
	fromStart      bool // zero is the start of the load, and no injection
}

// share is where an instant is, from 0 to 1 within the frame.
func (f frame) share(at time.Duration) float64 {
	return float64(at-f.from) / float64(f.to-f.from)
}

func (f frame) x(at time.Duration) int {
	return int(math.Round(f.share(at) * width))
}

// rel is an instant in seconds from zero.
func (f frame) rel(at time.Duration) float64 {
	return (at - f.zero).Seconds()
}

func (f frame) left(at time.Duration) string {
	return percent(f.share(at))
}

func (f frame) shows(from, to time.Duration) bool {
	return to >= f.from && from <= f.to
}

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 3, 64)
}

// span is a part of the axis in a drawing, which the script moves when the reader zooms.
type span struct {
	Class       string
	Left, Width string
	From, To    float64
	Hidden      bool
}

func (f frame) span(class string, from, to time.Duration) span {
	left, right := min(max(f.share(from), 0), 1), min(max(f.share(to), 0), 1)
	return span{
		Class:  class,
		Left:   percent(left),
		Width:  percent(max(0, right-left)),
		From:   f.rel(from),
		To:     f.rel(to),
		Hidden: !f.shows(from, to),
	}
}

// mark is an instant in a drawing.
type mark struct {
	Class  string
	Left   string
	At     float64
	Hidden bool
}

func (f frame) mark(class string, at time.Duration) mark {
	return mark{
		Class:  class,
		Left:   f.left(at),
		At:     f.rel(at),
		Hidden: !f.shows(at, at),
	}
}

// tick is a label of an axis: of a level at Bottom, of an instant at Left.
type tick struct {
	Class        string
	Bottom, Left string
	At           float64
	Text, Wide   string // Wide is left out where there is little room
}

// axisSteps are the distances of labels on the axis, in seconds; clockSteps those of the clock
// below it.
var (
	axisSteps = []float64{
		.05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600,
		7200, 14400,
	}
	clockSteps = []float64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600}
)

func stepFor(steps []float64, length, most float64) float64 {
	for _, s := range steps {
		if length/s <= most {
			return s
		}
	}
	return math.Ceil(length/most/3600) * 3600
}

// axis labels the time from zero.
func (f frame) axis() (ticks []tick) {
	from, to := f.rel(f.from), f.rel(f.to)
	step := stepFor(axisSteps, to-from, 9)
	for k := math.Ceil(from/step - 1e-9); k*step <= to-(to-from)*.03; k++ {
		t := tick{
			Class: "xt",
			Left:  percent((k*step - from) / (to - from)),
			Text:  sinceZero(k*step, step),
		}
		if k == 0 && !f.fromStart {
			t.Class += " z"
		}
		if (k*step-from)/(to-from) < .03 || int(k)%2 != 0 && step < 1 {
			t.Class += " w5"
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// sinceZero writes seconds from zero on an axis with labels every step.
func sinceZero(seconds, step float64) string {
	sign, x := "+", math.Abs(seconds)
	switch {
	case x < 1e-9:
		return "0"
	case seconds < 0:
		sign = "−"
	}
	if step >= 120 && math.Mod(step, 60) == 0 {
		return fmt.Sprintf("%s%g min", sign, math.Round(x/60*10)/10)
	}
	return sign + strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) + " s"
}

// clock labels the time of day, UTC.
func (f frame) clock(start time.Time) (ticks []tick) {
	length := (f.to - f.from).Seconds()
	step := time.Duration(stepFor(clockSteps, length, 4) * float64(time.Second))
	for at := start.Add(f.from).UTC().Truncate(step); ; at = at.Add(step) {
		since := at.Sub(start)
		if since > f.to {
			return ticks
		}
		if since < f.from || f.share(since) > .97 {
			continue
		}
		ticks = append(ticks, tick{
			Class: "xt xc",
			Left:  f.left(since),
			At:    f.rel(since),
			Text:  at.Format("15:04:05"),
		})
	}
}

// level is a scale of counts from 0 to its highest value.
type level struct{ high float64 }

// niceLevel is a scale that contains a value, and the distance of its labels.
func niceLevel(value float64) (scale level, step float64) {
	if value <= 0 {
		return level{1}, 1
	}
	step = math.Pow10(int(math.Floor(math.Log10(value))))
	switch { // so that there are two to five labels
	case value/step < 2:
		step /= 2
	case value/step > 5:
		step *= 2
	}
	if step < 1 {
		step = 1
	}
	return level{math.Ceil(value/step-1e-9) * step}, step
}

func (l level) share(x float64) float64 {
	return x / l.high
}

// y is the height of a value in a drawing; what is higher than it is cut off above.
func y(share float64) int {
	return int(math.Round((1 - min(share, 1.2)) * height))
}

func (l level) ticks(step float64) (ticks []tick, lines []int) {
	for x := 0.0; x <= l.high*1.0001; x += step {
		ticks = append(ticks, tick{Bottom: percent(l.share(x)), Text: report.Count(int64(math.Round(x)))})
		if x > 0 {
			lines = append(lines, y(l.share(x)))
		}
	}
	return ticks, lines
}

// logarithmic is a scale of milliseconds.
type logarithmic struct{ low, high float64 }

func (l logarithmic) share(ms float64) float64 {
	return (math.Log10(max(ms, l.low)) - math.Log10(l.low)) / (math.Log10(l.high) - math.Log10(l.low))
}

func (l logarithmic) ticks() (ticks []tick, lines []int) {
	for ms := l.low; ms <= l.high*1.0001; ms *= 10 {
		ticks = append(ticks, tick{
			Bottom: percent(l.share(ms)),
			Text:   report.Duration(time.Duration(math.Round(ms * 1e6))),
		})
		lines = append(lines, y(l.share(ms)))
	}
	return ticks, lines
}
