package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/result"
)

// scene is what is drawn: from the injection of a fault on, or from the start of the load, of nil
// and several faults.
func (s *subject) scene(main *fault) *curve.Scene {
	if main == nil && len(s.faults) == 1 {
		main = s.faults[0]
	}
	sc := &curve.Scene{
		Columns:      s.columns,
		MeasuredFrom: s.from,
		OpenLoop:     s.openLoop,
		Level:        s.load.Total.Throughput,
		LevelName:    "mean",
	}
	if s.load.Search != nil {
		sc.LevelName = "found"
	}
	if len(s.faults) == 0 {
		sc.Silent = s.silent()
	}
	for _, f := range s.faults {
		sc.Faults = append(sc.Faults, f.drawn)
	}
	if main == nil {
		for i := range sc.Faults {
			if b := sc.Faults[i].Due; b > sc.Level {
				sc.Level, sc.LevelName = b, "baseline"
			}
		}
		return sc
	}
	sc.Zero, sc.OfFault = main.at, true
	for i := range sc.Faults {
		sc.Faults[i].Main = sc.Faults[i].Name == main.Name
	}
	if b := known(main.result.Baseline); b > 0 {
		sc.Level, sc.LevelName, sc.Recovered = b, "baseline", .9
		const longest = 30 * time.Second
		sc.Baseline = curve.Window{From: max(s.from, main.at-longest), To: main.at}
	}
	return sc
}

// silentShown is how many of the times without a success are drawn, the longest.
const silentShown = 50

// silent are the times without a success that are long enough to be seen in steps of the record,
// the longest first.
func (s *subject) silent() (list []curve.Window) {
	for _, g := range s.in.Series.Gaps() {
		w := (curve.Window{
			From: time.Duration(g.From),
			To:   time.Duration(g.To),
		})
		if w.To-w.From >= 3*s.columns.Step {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b curve.Window) int {
		return cmp.Compare(b.To-b.From,
			a.To-a.From)
	})
	return list[:min(len(list), silentShown)]
}

// curves adds the section of the curves, and what the script draws from.
func (s *subject) curves(d *report.Document, main *fault) {
	if s.columns == nil || main != nil && main.Status.InjectedAt == nil {
		if s.in.Series == nil && d.State != report.Pending {
			d.Notes = append(d.Notes, noteOnNoRecord)
		}
		return
	}
	sc := s.scene(main)
	sec := report.Section{
		ID:      "curve",
		Title:   "What the clients had",
		Finding: s.curvesFinding(main),
		Drawing: sc.Curves(),
	}
	c := s.columns
	switch {
	case c.Step > s.in.Series.PodStep && c.Step >= c.Stored:
		sec.Note = fmt.Sprintf(
			"The run is long: a point of the curves is %s, a step of the load pods %s.",
			report.Duration(c.Step), report.Duration(s.in.Series.PodStep))
	case c.Stored > c.Step:
		sec.Note = fmt.Sprintf(
			"The record was shortened: away from the faults a value is of %s, a latency of %s.",
			report.Duration(c.Stored), report.Duration(c.Latencies))
	case c.Latencies > c.Step:
		sec.Note = fmt.Sprintf("The record was shortened: a latency is of %s.",
			report.Duration(c.Latencies))
	}
	d.Series = sc.Series()
	d.Sections = append(d.Sections, sec)
}

func (s *subject) curvesFinding(main *fault) report.Prose {
	if main == nil && len(s.faults) == 1 {
		main = s.faults[0]
	}
	if main == nil {
		return s.steadyFinding()
	}
	i := main.result
	var p report.Prose
	if b := known(i.Baseline); b > 0 {
		p = p.Add("A baseline of " + report.Rate(b))
		if length := main.outage(); length != "" {
			p = p.Add(", then nothing for " + length + inBrackets(ofWhat(i.Outage())))
		}
		if r := known(i.RecoveredShare); r > 0 {
			p = p.Add("; over the 10 s after the recovery it was " + report.Share(r) + " of the baseline")
		}
		p = p.Add(". ")
	}
	if l := i.Latency; l != nil && l.Before != nil {
		text := "p99 was " + report.Seconds(l.Before.P99) + " before"
		if l.During != nil {
			text += ", " + report.Seconds(l.During.P99) + " until recovery"
		}
		if l.After != nil {
			text += ", " + report.Seconds(l.After.P99) + " over the 10 s after it"
		}
		p = p.Strong(text).Add(".")
	}
	return p
}

func (s *subject) steadyFinding() report.Prose {
	if len(s.faults) > 0 {
		return report.Text(fmt.Sprintf("Time counts from the start of the load. %d faults are marked.",
			len(s.faults)))
	}
	p := report.Text("Time counts from the start of the load. ")
	if silent := s.silent(); len(silent) > 0 {
		p = p.Strong("The longest time without a success was " +
			report.Duration(silent[0].To-silent[0].From)).Add(", " + report.Duration(silent[0].From) +
			" after the start. ")
	}
	if n := len(s.load.Anomalies); n > 0 {
		a := slices.MaxFunc(s.load.Anomalies, func(a, b result.Anomaly) int {
			return cmp.Compare(a.Dip,
				b.Dip)
		})
		return p.Strong(fmt.Sprintf("%d fall%s of the throughput that no fault explains", n,
			report.Plural(n))).Add(fmt.Sprintf(": the deepest by %s for %s, %s after the start.",
			report.Share(a.Dip), report.Seconds(a.Length), report.Seconds(a.At)))
	}
	return p.Add("No fall of the throughput was found that lasted.")
}

// zoom adds the section of one fault at the resolution of the record, with its phases.
func (s *subject) zoom(d *report.Document, f *fault, several bool) {
	if f.Status.InjectedAt == nil {
		return
	}
	sec := report.Section{
		ID:      "zoom",
		Title:   "The fault",
		Finding: f.phasesFinding(),
	}
	name := ""
	if several {
		sec.ID, name = "zoom-"+f.Name, " "+f.Name
	}
	sec.Title += name
	if s.columns != nil {
		sec.Title = fmt.Sprintf("The fault%s at %s", name, report.Duration(s.columns.Step))
		sec.Drawing = s.scene(f).Zoom("fault-"+f.Name, &f.drawn)
	}
	took, recovered := f.result.Recovery()
	if recovered && len(f.result.Phases) > 0 {
		sec.Title += ", and where the " + report.Duration(took.Value) + " went"
		sec.Tables, sec.Note = []report.Table{f.phasesTable()}, f.phasesNote()
	}
	if sec.Drawing != "" || len(sec.Tables) > 0 {
		d.Sections = append(d.Sections, sec)
	}
}

// owned is how long an owner had of a recovery, and its longest phase.
type owned struct {
	owner   report.Owner
	total   time.Duration
	longest curve.Phase
}

func (f *fault) byOwner() (list []owned) {
	for _, p := range f.drawn.Phases {
		k := slices.IndexFunc(list, func(o owned) bool { return o.owner == p.Owner })
		if k < 0 {
			list, k = append(list, owned{owner: p.Owner}), len(list)
		}
		list[k].total += p.To - p.From
		if p.To-p.From > list[k].longest.To-list[k].longest.From {
			list[k].longest = p
		}
	}
	slices.SortStableFunc(list, func(a, b owned) int { return cmp.Compare(b.total, a.total) })
	return list
}

// phasesFinding says whose the time was, the largest part first.
func (f *fault) phasesFinding() report.Prose {
	took, recovered := f.result.Recovery()
	if took.Value == 0 || len(f.result.Phases) == 0 {
		switch {
		case f.Status.SettledTime == nil:
			return report.Text("The recovery is still observed.")
		case !recovered:
			return report.Text(fmt.Sprintf(
				"The load had not recovered %s after the injection: there are no phases.",
				report.Duration(f.waited())))
		}
		return report.Text("There was nothing to recover from.")
	}
	var p report.Prose
	for _, o := range f.byOwner() {
		if o.total == 0 {
			continue
		}
		if len(p) > 0 {
			p = p.Add(" ")
		}
		share := report.Share(float64(int(100*o.total.Seconds()/took.Value.Seconds()+.5)) / 100)
		had := events.OwnerName(o.owner) + " had"
		if o.owner == report.Nobody {
			had = "No event explains"
		}
		p = p.By(o.owner, fmt.Sprintf("%s %s, %s", had, report.Duration(o.total), share))
		if o.longest.Name == durations.Unexplained {
			p = p.Add(".")
			continue
		}
		p = p.Add(": most of it until " + o.longest.Name + ".")
	}
	return p
}

func (f *fault) phasesTable() report.Table {
	t := report.Table{
		Caption: "The parts of the recovery. Each begins where the one before ended, so they add up.",
		Columns: []report.Column{
			{Title: "Until"},
			{Title: "Whose"},
			{Title: "Took", Number: true},
			{Title: "Ended at", Number: true, Wide: true, Soft: true},
			{Title: "Share", Wide: true, Width: 22},
			{Title: "Ended when", Wide: true, Soft: true},
			{Title: "Known to", Number: true, Soft: true},
		},
	}
	recovery, _ := f.result.Recovery()
	whole := recovery.Value
	for i, p := range f.drawn.Phases {
		took := p.To - p.From
		row := report.Row{Dim: took == 0, Cells: []report.Cell{
			{Text: p.Name},
			{Text: strings.TrimPrefix(events.OwnerName(p.Owner), "The "), Owner: p.Owner},
			report.DurationCell(took),
			report.SinceCell(p.To - f.at),
			{},
			{Text: events.Meaning(p.Name)},
			{Text: exactness(f.result.Phases[i].Took.Bounded())},
		}}
		if took > 0 {
			row.Cells[4].Bar = &report.Bar{Share: took.Seconds() / whole.Seconds(), Owner: p.Owner}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, report.Row{Sum: true, Cells: []report.Cell{
		{Text: "together"}, {}, report.DurationCell(whole), {}, {}, {}, {Text: exactness(recovery)},
	}})
	return t
}

// exactness is how exactly a duration is known.
func exactness(d durations.Bounded) string {
	return report.Off(result.UnitSeconds, d.Value.Seconds(), d.AtLeast.Seconds(), d.AtMost.Seconds())
}

func (f *fault) phasesNote() string {
	if slices.ContainsFunc(f.drawn.Phases, func(p curve.Phase) bool { return p.Sooner > 0 }) {
		return "Kubernetes writes many of its instants in whole seconds: such a phase ended at the " +
			"instant shown, or earlier, by up to the dashed line; the next phase is then longer by as much."
	}
	return ""
}
