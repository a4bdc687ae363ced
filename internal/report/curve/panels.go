package curve

import (
	"html/template"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// panel is one drawing of those that share an axis.
type panel struct {
	Title, Unit, Read, Class string
	Label                    string // what is to be seen, for who does not
	Regions, Brackets        []span
	Lines                    []int
	Paths                    []*drawn
	Marks                    []mark
	Ticks, Right             []tick
	Notes                    []note
}

// note is text in a drawing.
type note struct {
	Class, Left, Bottom string
	Top                 int
	At                  float64
	Moves               bool // with the instant At, when the reader zooms
	Hidden              bool
	Swatch              int    // the class of errors whose colour stands before it
	Lead                string // before the rest, where the note stands to the left of its instant
	Strong, Text, Wide  string
}

func (f frame) note(class string, at time.Duration) note {
	// as the script does when the reader zooms
	if strings.Contains(class, "fl") && f.share(at) > .6 && f.shows(at, at) {
		class += " flip"
	}
	return note{
		Class:  class,
		Left:   f.left(at),
		At:     f.rel(at),
		Moves:  true,
		Hidden: !f.shows(at, at),
	}
}

// axisOf labels the time below the drawings.
type axisOf struct {
	Name         string
	Ticks, Clock []tick
}

// Curves draws throughput, errors and latency over one axis.
func (s *Scene) Curves() template.HTML {
	f := s.first()
	paths := s.paths(f)
	of := func(begin string) (list []*drawn) {
		for _, p := range paths {
			if strings.HasPrefix(p.ID, begin) {
				list = append(list, p)
			}
		}
		return list
	}
	panels := []panel{
		s.throughputPanel(f, of("c-tps")), s.errorsPanel(f, of("c-e")),
		s.latencyPanel(f, append(of("c-max"), of("c-p")...)),
	}
	name := "since the fault"
	if f.fromStart {
		name = "since the start"
	}
	return execute("curves", map[string]any{
		"Buttons": s.buttons(),
		"From":    f.rel(f.from),
		"To":      f.rel(f.to),
		"Panels":  panels,
		"Axis":    axisOf{name, f.axis(), f.clock(s.Columns.Start)},
	})
}

// background is what all panels have: the time that was not measured, the outages, and the faults.
func (s *Scene) background(f frame, p *panel) {
	if s.MeasuredFrom > 0 {
		p.Regions = append(p.Regions, f.span("warm", 0, min(s.MeasuredFrom, s.Columns.End())))
	}
	for _, w := range s.Silent {
		p.Regions = append(p.Regions, f.span("out", w.From, w.To))
	}
	for _, fault := range s.Faults {
		if fault.Outage.To > fault.Outage.From {
			p.Regions = append(p.Regions, f.span("out", fault.Outage.From, fault.Outage.To))
		}
		class := ""
		if !fault.Main && s.main() != nil {
			class = "other"
		}
		p.Marks = append(p.Marks, f.mark(class, fault.At))
	}
}

// cut is the highest rate of a step, if it is cut off in a drawing.
func (s *Scene) cut(scale level) (rate float64, at time.Duration) {
	per := 1 / s.Columns.Step.Seconds()
	for i, n := range s.Columns.OK {
		if n*per > max(rate, scale.high) {
			rate, at = n*per, s.Columns.at(i)
		}
	}
	return rate, at
}

func (s *Scene) throughputPanel(f frame, paths []*drawn) panel {
	scale, step := s.throughput()
	p := panel{
		Title: "Throughput",
		Unit:  "successes per second",
		Read:  "tps",
		Class: "strip p1",
		Paths: paths,
	}
	s.background(f, &p)
	p.Ticks, p.Lines = scale.ticks(step)
	if s.Level > 0 {
		p.Right = append(p.Right, tick{
			Bottom: percent(scale.share(s.Level)),
			Text:   s.LevelName,
			Wide:   report.Count(int64(math.Round(s.Level))),
		})
	}
	low := s.Level * s.Recovered
	if low > 0 && s.Recovered < 1 {
		p.Right = append(p.Right, tick{
			Bottom: percent(min(scale.share(low), scale.share(s.Level)-.085)),
			Text:   report.Share(s.Recovered),
			Wide:   report.Count(int64(math.Round(low))),
		})
	}
	if s.MeasuredFrom > 0 {
		n := f.note("halo w7 before", s.MeasuredFrom)
		n.Bottom, n.Text = "4px", "not measured"
		n.Hidden = n.Hidden || f.share(s.MeasuredFrom) < .09
		p.Notes = append(p.Notes, n)
	}
	rate, at := s.cut(scale)
	main := s.main()
	if main == nil {
		s.names(f, &p)
		if rate > 0 {
			n := f.note("halo fl cutoff", at)
			n.Text = report.Rate(math.Round(rate)) + ", drawn cut off"
			p.Notes = append(p.Notes, n)
		}
		p.Label = s.throughputLabel(rate)
		return p
	}
	s.mainNotes(f, &p, main, rate)
	p.Label = s.throughputLabel(rate)
	return p
}

// mainNotes are those in the strip over the curve: the fault to the left of its line, the outage to
// the right of its end, and brackets. Without room on the right, the outage's note begins with the
// fault, whose own note directly after it is hidden.
func (s *Scene) mainNotes(f frame, p *panel, main *Fault, rate float64) {
	if main.Length != "" {
		n := f.note("outage r1 fl after", main.Outage.To)
		n.Lead, n.Strong = main.Type+" "+main.Target+": ", "nothing for "+main.Length
		if rate > 0 {
			n.Wide = ", then " + report.Rate(math.Round(rate)) + ", drawn cut off"
		}
		p.Notes = append(p.Notes, n)
	}
	n := f.note("fault d r1 before", main.At)
	n.Text, n.Wide = main.Type, " "+main.Target
	p.Notes = append(p.Notes, n)
	if w := s.Baseline; w.To > w.From {
		p.Brackets = append(p.Brackets, f.span("", w.From, w.To))
		n = f.note("r2 w7 centre", w.From+(w.To-w.From)/2)
		n.Text = "baseline: " + report.Duration((w.To - w.From).Round(100*time.Millisecond))
		n.Hidden = n.Hidden || f.share(w.To)-f.share(w.From) < .1
		p.Notes = append(p.Notes, n)
	}
	if main.Recovered > 0 {
		const sustained = 10 * time.Second
		p.Brackets = append(p.Brackets, f.span("", main.Recovered, main.Recovered+sustained))
		n = f.note("r2 w7 fl after", main.Recovered)
		n.Text = "recovered: held 10 s"
		p.Notes = append(p.Notes, n)
	}
}

// names writes the names of several faults over the curve, as far as there is room.
func (s *Scene) names(f frame, p *panel) {
	last := -1.0
	for _, fault := range s.Faults {
		at := f.share(fault.At)
		if last >= 0 && at-last < .12 {
			continue
		}
		last = at
		n := f.note("d r1 fl after w5", fault.At)
		n.Text = fault.Name
		p.Notes = append(p.Notes, n)
	}
}

func (s *Scene) throughputLabel(rate float64) string {
	var b strings.Builder
	b.WriteString("Throughput over time")
	if s.Level > 0 {
		b.WriteString(": " + s.LevelName + " " + report.Count(int64(math.Round(s.Level))) +
			" successes a second")
	}
	for _, f := range s.Faults {
		if f.Length != "" {
			b.WriteString("; none for " + f.Length + " after the injection of " + f.Name)
		}
	}
	if rate > 0 {
		b.WriteString("; at most " + report.Count(int64(math.Round(rate))) + " a second for a moment")
	}
	return b.String() + "."
}

func (s *Scene) errorsPanel(f frame, paths []*drawn) panel {
	scale, step := s.errors()
	p := panel{
		Title: "Errors",
		Unit:  "per second, by class",
		Read:  "err",
		Class: "p2",
		Paths: paths,
		Label: "Errors over time: none.",
	}
	s.background(f, &p)
	p.Ticks, p.Lines = scale.ticks(step)
	if len(p.Ticks) > 3 { // the panel is low
		p.Ticks = []tick{p.Ticks[0], p.Ticks[len(p.Ticks)-1]}
	}
	if len(s.Columns.Errors) == 0 {
		p.Ticks, p.Lines = p.Ticks[:1], nil
	}
	var parts []string
	for k, class := range s.Columns.Errors {
		n := note{Class: "legend", Left: "100"}
		if main := s.main(); main != nil {
			n = f.note("halo fl after6", max(main.At, main.Outage.To))
		}
		n.Top = 4 + 16*k
		n.Swatch = k + 1
		n.Text = class.Name + " " + report.Count(int64(math.Round(class.Total)))
		p.Notes = append(p.Notes, n)
		parts = append(parts, report.Count(int64(math.Round(class.Total)))+" "+class.Name)
	}
	if len(parts) > 0 {
		p.Label = "Errors over time, altogether " + strings.Join(parts, ", ") + "."
	}
	return p
}

func (s *Scene) latencyPanel(f frame, paths []*drawn) panel {
	scale := s.latency()
	p := panel{
		Title: "Latency",
		Unit:  "of successes, from the send; log scale",
		Read:  "lat",
		Class: "p3",
		Paths: paths,
	}
	if s.OpenLoop {
		p.Unit = "of successes, from the intended arrival; log scale"
	}
	s.background(f, &p)
	p.Ticks, p.Lines = scale.ticks()
	c := s.Columns
	p50, p99, highest := median(c.P50), median(c.P99), median(c.Max)
	if p50 <= 0 {
		p.Label = "Latency over time: no request succeeded."
		return p
	}
	at, least := 0.0, .098
	for _, l := range []struct {
		class, text string
		ms          float64
	}{{"p50", "p50", p50}, {"p99", "p99", p99}, {"max", "max", highest}} {
		at = max(scale.share(l.ms), at)
		p.Right = append(p.Right, tick{
			Class:  l.class,
			Bottom: percent(at),
			Text:   l.text,
		})
		at += least
	}
	ms := func(x float64) string { return report.Duration(time.Duration(x * 1e6)) }
	p.Label = "Latency over time, logarithmic: usually p50 " + ms(p50) + ", p99 " + ms(p99) +
		", at most " + ms(slices.MaxFunc(c.Max, compareNaN)) + "."
	return p
}

func compareNaN(a, b float64) int {
	switch {
	case math.IsNaN(a) || a < b:
		return -1
	case math.IsNaN(b) || a > b:
		return 1
	}
	return 0
}

// median is that of the values that there are; 0 without.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return 0
	}
	sort.Float64s(known)
	return known[len(known)/2]
}
