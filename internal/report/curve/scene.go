package curve

import (
	"bytes"
	_ "embed" // the markup
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// Scene is what is drawn of a run. Instants count from its start.
type Scene struct {
	Columns      *Columns
	Zero         time.Duration // from which the axis counts
	OfFault      bool          // Zero is an injection
	MeasuredFrom time.Duration // end of ramp-up and warm-up
	// successes per second that are usual: the baseline of the fault, or the mean
	Level     float64
	LevelName string
	Baseline  Window   // over which it was taken; the zero value is not drawn
	Recovered float64  // share of Level from which the load counts as recovered; 0 is not drawn
	Faults    []Fault  // in the order of their injection
	Silent    []Window // without a success, of a load without faults
	OpenLoop  bool     // latency counts from the intended arrival
}

// Window is a part of the run.
type Window struct{ From, To time.Duration }

// Fault is a fault in a drawing.
type Fault struct {
	Name, Type, Target string
	At                 time.Duration
	Recovered          time.Duration // the instant; 0 = it did not, or not yet
	Settled            time.Duration // until when recovery was waited for, if it did not recover
	Outage             Window        // the zero value is none
	Length             string        // of the outage, typeset
	Main               bool          // the drawing is about it
	Phases             []Phase
	Lost               int64 // requests that were not answered in their time
	Due                float64
}

// Phase is a part of a recovery.
type Phase struct {
	Name  string
	Owner report.Owner
	From  time.Duration // from the start of the run
	To    time.Duration
	// Sooner is by how much earlier its end can have been, if that is long enough to be drawn.
	Sooner time.Duration
}

var (
	//go:embed curves.html
	curvesMarkup string

	markup = template.Must(template.New("curves").Parse(curvesMarkup))
)

func execute(name string, data any) template.HTML {
	var b bytes.Buffer
	err := markup.ExecuteTemplate(&b, name, data)
	if err != nil {
		panic(err) // the markup and the types that fill it are in this package
	}
	return template.HTML(b.String())
}

// excerpt is the share of the run that a recovery must have for the first view to be the whole run.
const excerpt = 1.0 / 60

// first is the part that is shown at first: the whole run, or the surroundings of a fault that
// would not be seen in it.
func (s *Scene) first() frame {
	f := frame{
		zero:      s.Zero,
		from:      0,
		to:        s.Columns.End(),
		fromStart: !s.OfFault,
	}
	main := s.main()
	if main == nil || main.Recovered == 0 ||
		(main.Recovered-main.At).Seconds() >= excerpt*s.Columns.End().Seconds() {
		return f
	}
	took := main.Recovered - main.At
	f.from = max(0, main.At-max(45*time.Second, 2*took))
	f.to = min(s.Columns.End(), main.At+max(75*time.Second, 2*took))
	return f
}

// main is the fault that the drawing is about; nil = none, or several.
func (s *Scene) main() *Fault {
	i := slices.IndexFunc(s.Faults, func(f Fault) bool { return f.Main })
	if i >= 0 {
		return &s.Faults[i]
	}
	return nil
}

// button shows a part of the run.
type button struct {
	Label    string
	From, To float64
	Pressed  bool
}

func (s *Scene) buttons() (list []button) {
	shown := s.first()
	add := func(label string, from, to time.Duration) {
		from, to = max(0, from), min(s.Columns.End(), to)
		list = append(list, button{
			label, shown.rel(from), shown.rel(to),
			from == shown.from && to == shown.to,
		})
	}
	add("Whole run", 0, s.Columns.End())
	if main := s.main(); main != nil {
		took := max(5*time.Second, main.until(s.Columns.End())-main.At)
		add("Around the fault", main.At-took, main.At+3*took)
		w := s.zoomed(main)
		add("The fault", w.From, w.To)
		return list
	}
	const most = 4
	for _, f := range s.Faults[:min(len(s.Faults), most)] {
		w := s.zoomed(&f)
		add(f.Name, w.From, w.To)
	}
	return list
}

// until is when the load had recovered from a fault, or when that was given up.
func (f *Fault) until(end time.Duration) time.Duration {
	switch {
	case f.Recovered > 0:
		return f.Recovered
	case f.Settled > f.At:
		return min(f.Settled, end)
	}
	return min(end, f.At+time.Minute)
}

// Series is what the script of the page draws from.
func (s *Scene) Series() *report.Series {
	columns, packed := s.Columns.Pack()
	f, all := s.first(), frame{zero: s.Zero, to: s.Columns.End()}
	names := make([]string, 0, classesShown)
	for _, class := range s.Columns.Errors {
		names = append(names, class.Name)
	}
	meta := map[string]any{
		"a":      all.rel(0),
		"b":      all.rel(all.to),
		"va":     f.rel(f.from),
		"vb":     f.rel(f.to),
		"t0":     s.Zero.Seconds(),
		"dt":     s.Columns.Step.Seconds(),
		"n":      s.Columns.Len(),
		"clock0": float64(s.Columns.Start.UnixMicro()) / 1000,
		"cols":   columns,
		"err":    names,
		"paths":  s.paths(f),
		"fault":  s.OfFault,
	}
	return &report.Series{Meta: meta, Packed: packed}
}

// highest is the highest rate over a second outside of the recoveries from faults: a backlog that
// is worked off makes everything else small.
func (s *Scene) highest() float64 {
	c := s.Columns
	wide := max(1, int(time.Second/c.Step))
	most, total := 0.0, 0.0
	for i := range c.Len() {
		total += c.OK[i]
		if i >= wide {
			total -= c.OK[i-wide]
		}
		if i+1 >= wide && !s.recovering(c.at(i+1-wide), c.at(i+1)) {
			most = max(most, total/(float64(wide)*c.Step.Seconds()))
		}
	}
	return most
}

func (s *Scene) recovering(from, to time.Duration) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool {
		return f.At < to &&
			from < f.until(s.Columns.End())+time.Second
	})
}

// throughput is the scale of the throughput: 1.5 times of what is usual, or what a load that
// changes reaches.
func (s *Scene) throughput() (level, float64) {
	high := s.highest() * 1.05
	if s.Level > 0 {
		high = max(high, 1.5*s.Level)
	}
	return niceLevel(high)
}

func (s *Scene) errors() (level, float64) {
	most := 0.0
	for i := range s.Columns.Len() {
		most = max(most, s.Columns.failed(i))
	}
	return niceLevel(most / s.Columns.Step.Seconds())
}

// latency is the scale of the latency, in whole decades at its lower end.
func (s *Scene) latency() logarithmic {
	low, high := math.Inf(1), 0.0
	for i, ms := range s.Columns.P50 {
		if ms > 0 {
			low, high = min(low, ms), max(high, s.Columns.Max[i])
		}
	}
	if high == 0 {
		return logarithmic{0.1, 1000}
	}
	scale := logarithmic{low: math.Pow10(int(math.Floor(math.Log10(low))))}
	decade := math.Pow10(int(math.Floor(math.Log10(high))))
	for _, part := range []float64{1, 2, 5, 10} {
		if scale.high = decade * part; scale.high >= high {
			break
		}
	}
	scale.high = max(scale.high, scale.low*10)
	return scale
}

// paths are all curves of a scene, as the script draws them.
func (s *Scene) paths(f frame) []*drawn {
	rate, _ := s.throughput()
	failed, _ := s.errors()
	ms := s.latency()
	list := []*drawn{
		{
			ID:      "c-tps-a",
			Column:  "ok",
			Kind:    "area",
			Rate:    true,
			High:    rate.high,
			Fill:    "var(--fill)",
			Opacity: ".75",
		},
		{
			ID:      "c-tps-b",
			Column:  "ok",
			Kind:    "band",
			Rate:    true,
			High:    rate.high,
			Fill:    "var(--ink3)",
			Opacity: ".45",
		},
		{
			ID:     "c-tps",
			Column: "ok",
			Kind:   "line",
			Rate:   true,
			High:   rate.high,
			Fill:   "none",
			Stroke: "var(--ink)",
			Weight: "1.5",
		},
	}
	for _, p := range list {
		p.draw(s.Columns, s.Columns.OK, f)
	}
	for k, d := range s.Columns.bars(f, failed) {
		list = append(list, &drawn{
			ID:     fmt.Sprintf("c-e%d", k),
			Column: s.Columns.Errors[k].Name,
			Kind:   "bars",
			High:   failed.high,
			Fill:   fmt.Sprintf("var(--err%d)", k+1),
			D:      d,
		})
	}
	for _, l := range []struct {
		id, column, use, stroke, weight, opacity string
		values                                   []float64
	}{
		{"c-max", "max", "hi", "var(--ink3)", "1", ".7", s.Columns.Max},
		{"c-p99", "p99", "hi", "var(--ink2)", "1.4", "", s.Columns.P99},
		{"c-p50", "p50", "", "var(--ink)", "2", "", s.Columns.P50},
	} {
		p := &drawn{
			ID:      l.id,
			Column:  l.column,
			Kind:    "line",
			Use:     l.use,
			Log:     true,
			Low:     ms.low,
			High:    ms.high,
			Fill:    "none",
			Stroke:  l.stroke,
			Weight:  l.weight,
			Opacity: l.opacity,
		}
		p.draw(s.Columns, l.values, f)
		list = append(list, p)
	}
	return list
}
