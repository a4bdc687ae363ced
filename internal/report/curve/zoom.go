package curve

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// barsShown is how many bars the drawing of a fault has at most.
const barsShown = 120

// zoomed is the part of the run around a fault: some time before it, and half as much again as its
// recovery after it.
func (s *Scene) zoomed(f *Fault) Window {
	end := s.Columns.End()
	took := f.until(end) - f.At
	after := took + max(took/2, 500*time.Millisecond)
	before := max(after/7, 500*time.Millisecond)
	round := 500 * time.Millisecond
	if after > 20*time.Second {
		round = 5 * time.Second
	}
	up := func(d time.Duration) time.Duration { return (d + round - 1) / round * round }
	return Window{max(0, f.At-up(before)), min(end, f.At+up(after))}
}

// zoomData fills the markup of the drawing of one fault.
type zoomData struct {
	ID, Name, Label, Step, Middle string
	From, To, Zero                float64
	Base, Due                     int
	Lines                         []int
	Regions                       []span
	Paths                         []drawn
	Marks                         []mark
	Ticks, Right                  []tick
	Notes                         []note
	Lanes                         []lane
	Axis                          axisOf
}

// Zoom draws the requests around a fault over the phases of its recovery by owner. id is unique in
// the page.
func (s *Scene) Zoom(id string, fault *Fault) template.HTML {
	w := s.zoomed(fault)
	f := frame{
		zero: fault.At,
		from: w.From,
		to:   w.To,
	}
	page := frame{zero: s.Zero}
	d := &zoomData{
		ID:   id,
		Name: "The fault " + fault.Name,
		From: page.rel(w.From),
		To:   page.rel(w.To),
		Zero: page.rel(fault.At),
		Axis: axisOf{
			"since the fault",
			f.axis(),
			[]tick{
				{
					Class: "xt xc",
					Left:  f.left(fault.At),
					At:    page.rel(fault.At),
					Text:  s.Columns.Start.Add(fault.At).UTC().Format("15:04:05.000"),
				},
			},
		},
	}
	s.requests(d, f, fault)
	if fault.Outage.To > fault.Outage.From {
		d.Regions = append(d.Regions, f.span("out", fault.Outage.From, fault.Outage.To))
	}
	for _, p := range fault.Phases {
		if f.shows(p.To, p.To) {
			d.Marks = append(d.Marks, f.mark("q", p.To))
		}
	}
	d.Marks = append(d.Marks, f.mark("", fault.At))
	d.Lanes = lanes(f, fault)
	return execute("zoom", d)
}

// bar is the requests of a bar of the drawing.
type bar struct {
	from, to time.Duration
	ok       float64
	failed   []float64 // by class
	all      float64
}

// barsIn sums the steps around a fault to bars of one length.
func (s *Scene) barsIn(f frame) (bars []bar, step time.Duration) {
	c := s.Columns
	group := 1
	for _, g := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000} {
		if group = g; float64(f.to-f.from)/float64(c.Step)/float64(g) <= barsShown {
			break
		}
	}
	for first := int(f.from/c.Step) / group * group; first < c.Len() &&
		c.at(first) < f.to; first += group {
		b := bar{
			from:   c.at(first),
			to:     c.at(first + group),
			failed: make([]float64, len(c.Errors)),
		}
		for i := first; i < min(first+group, c.Len()); i++ {
			b.ok += c.OK[i]
			for k := range c.Errors {
				b.failed[k] += c.Errors[k].Counts[i]
				b.all += c.Errors[k].Counts[i]
			}
		}
		bars = append(bars, b)
	}
	return bars, time.Duration(group) * c.Step
}

// mostTicks is how many labels of counts fit beside the drawing of a fault.
const mostTicks = 8

// requests draws answered requests upwards and failed ones downwards, on one scale, which ends at
// 1.5 times of what is due, and downwards at three times of that.
func (s *Scene) requests(d *zoomData, f frame, fault *Fault) {
	bars, step := s.barsIn(f)
	d.Step = report.Duration(step)
	due := fault.Due * step.Seconds()
	most, failed := 0.0, 0.0
	for _, b := range bars {
		most, failed = max(most, b.ok), max(failed, b.all)
	}
	scale, ticks := niceLevel(max(1.4*due, 1))
	if due == 0 {
		scale, ticks = niceLevel(max(most, 1))
	}
	failed = min(failed, 3*scale.high) // all that is due may fail at once, after a timeout
	for (scale.high+failed)/ticks > mostTicks {
		ticks *= 2
	}
	below := math.Ceil(failed/ticks) * ticks
	whole := scale.high + below
	at := func(n float64) int {
		n = min(max(n, -below-scale.high), scale.high*1.1)
		return int(math.Round((scale.high - n) / whole * height))
	}
	d.Base, d.Middle = at(0), percent(below/whole)
	for x := -below; x <= scale.high*1.0001; x += ticks {
		d.Ticks = append(d.Ticks, tick{
			Bottom: percent((x + below) / whole),
			Text:   report.Count(int64(math.Abs(math.Round(x)))),
		})
		if x != 0 && math.Abs(x-due) > ticks/10 {
			d.Lines = append(d.Lines, at(x))
		}
	}
	if due > 0 {
		d.Due = at(due)
		d.Right = append(d.Right, tick{
			Bottom: percent((due + below) / whole),
			Text:   report.Count(int64(math.Round(due))) + " were due",
		})
	}
	d.Paths = s.barPaths(f, bars, at)
	s.zoomNotes(d, f, fault, bars, scale, whole, below)
	d.Label = fmt.Sprintf(
		"Answered and failed requests in each %s, from %s before the injection to %s after it.", d.Step,
		report.Duration(fault.At-f.from), report.Duration(f.to-fault.At))
}

func (s *Scene) barPaths(f frame, bars []bar, at func(float64) int) []drawn {
	d := make([]strings.Builder, len(s.Columns.Errors)+1)
	for _, b := range bars {
		from, to := f.x(b.from), f.x(b.to)
		to -= (to - from) / 10
		if b.ok > 0 {
			fmt.Fprintf(&d[0], "M%d %dV%dH%dV%dZ", from, at(0), at(b.ok), to, at(0))
		}
		base := 0.0
		for k, n := range b.failed {
			if n > 0 {
				fmt.Fprintf(&d[k+1], "M%d %dV%dH%dV%dZ", from, at(-base), at(-base-n), to, at(-base))
			}
			base += n
		}
	}
	paths := []drawn{{Fill: "var(--ink2)", D: d[0].String()}}
	for k := range s.Columns.Errors {
		paths = append(paths, drawn{Fill: fmt.Sprintf("var(--err%d)", k+1), D: d[k+1].String()})
	}
	return paths
}

// zoomNotes name the fault, what was lost, what is cut off, and the classes of errors below the
// bars.
func (s *Scene) zoomNotes(
	d *zoomData, f frame, fault *Fault, bars []bar, scale level, whole, below float64,
) {
	n := note{
		Class: "halo d before",
		Left:  f.left(fault.At),
		Top:   2,
		Text:  fault.Type,
	}
	d.Notes = append(d.Notes, n)
	out := fault.Outage
	wide := f.share(out.To) - f.share(out.From)
	if fault.Lost > 0 && wide > .15 {
		n := note{
			Class:  "d lost",
			Left:   f.left(out.From + (out.To-out.From)/2),
			Bottom: percent((below+.35*scale.high)/whole) + "%",
			Text:   report.Count(fault.Lost) + " not answered",
		}
		const inTime = " in their time"
		class, _ := fits(n.Text+inTime, wide)
		if class != never {
			n.Wide = inTime
		}
		d.Notes = append(d.Notes, n)
	}
	highest, lowest := bar{}, bar{}
	for _, b := range bars {
		if b.ok > max(highest.ok, scale.high) && b.from >= fault.At {
			highest = b
		}
		if b.all > max(lowest.all, below) {
			lowest = b
		}
	}
	cut := func(n float64, of bar) note {
		class := "halo after"
		if f.share(of.to) > .7 {
			class = "halo before"
		}
		return note{
			Class: class,
			Left:  f.left(of.to),
			Text:  report.Count(int64(math.Round(n))),
			Wide:  " in " + d.Step + ", cut off",
		}
	}
	if highest.ok > 0 {
		n := cut(highest.ok, highest)
		n.Top = 1
		d.Notes = append(d.Notes, n)
	}
	if lowest.all > 0 {
		n := cut(lowest.all, lowest)
		n.Bottom = "20px"
		d.Notes = append(d.Notes, n)
	}
	row := 0
	for k, class := range s.Columns.Errors {
		n := 0.0
		for _, b := range bars {
			n += b.failed[k]
		}
		if n == 0 {
			continue
		}
		d.Notes = append(d.Notes, note{
			Class:  "legend low",
			Left:   "100",
			Bottom: fmt.Sprintf("%dpx", 2+15*row),
			Swatch: k + 1,
			Text:   class.Name + " " + report.Count(int64(math.Round(n))),
		})
		row++
	}
}
