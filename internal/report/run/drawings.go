package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// scene is what is drawn: from the injection of a fault on, or from the start of the load, of nil
// and several faults.
func scene(s *subject.Run, main *subject.Fault) *curve.Scene {
	if main == nil && len(s.Faults) == 1 {
		main = s.Faults[0]
	}
	sc := &curve.Scene{
		Columns:      s.Columns,
		MeasuredFrom: s.From,
		OpenLoop:     s.OpenLoop,
		Level:        s.Load.Total.Throughput,
		LevelName:    "mean",
	}
	if s.Load.Search != nil {
		sc.LevelName = "found"
	}
	if len(s.Faults) == 0 {
		sc.Silent = silences(s)
	}
	for _, f := range s.Faults {
		sc.Faults = append(sc.Faults, f.Drawn)
	}
	if main == nil {
		for i := range sc.Faults {
			if b := sc.Faults[i].Due; b > sc.Level {
				sc.Level, sc.LevelName = b, "baseline"
			}
		}
		return sc
	}
	sc.Zero, sc.OfFault = main.At, true
	for i := range sc.Faults {
		sc.Faults[i].Main = sc.Faults[i].Name == main.Name
	}
	if b := ptr.Deref(main.Result.Baseline, 0); b > 0 {
		sc.Level, sc.LevelName, sc.Recovered = b, "baseline", .9
		const longest = 30 * time.Second
		sc.Baseline = curve.Window{From: max(s.From, main.At-longest), To: main.At}
	}
	return sc
}

// silentShown is how many of the times without a success are drawn, the longest.
const silentShown = 50

// silences are the times without a success that are long enough to be seen in steps of the
// record, the longest first.
func silences(s *subject.Run) (list []curve.Window) {
	for _, g := range s.In.Series.Gaps() {
		w := (curve.Window{
			From: time.Duration(g.From),
			To:   time.Duration(g.To),
		})
		if w.To-w.From >= 3*s.Columns.Step {
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
func curves(s *subject.Run, d *report.Document, main *subject.Fault) {
	if s.Columns == nil || main != nil && main.Status.InjectedAt == nil {
		if s.In.Series == nil && d.State != report.Pending {
			d.Notes = append(d.Notes, noteOnNoRecord)
		}
		return
	}
	sc := scene(s, main)
	sec := report.Section{
		ID:      "curve",
		Title:   "What the clients had",
		Finding: curvesFinding(s, main),
		Drawing: sc.Curves(),
	}
	c := s.Columns
	switch {
	case c.Step > s.In.Series.PodStep && c.Step >= c.Stored:
		sec.Note = fmt.Sprintf(
			"The run is long: a point of the curves is %s, a step of the load pods %s.",
			report.Duration(c.Step), report.Duration(s.In.Series.PodStep))
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

func curvesFinding(s *subject.Run, main *subject.Fault) report.Prose {
	if main == nil && len(s.Faults) == 1 {
		main = s.Faults[0]
	}
	if main == nil {
		return steadyFinding(s)
	}
	i := main.Result
	var p report.Prose
	if b := ptr.Deref(i.Baseline, 0); b > 0 {
		p = p.Add("A baseline of " + report.Rate(b))
		if main.Outage() != "" {
			p = p.Add(", then nothing for " + main.OutageOfWhat())
		}
		if r := ptr.Deref(i.RecoveredShare, 0); r > 0 {
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

func steadyFinding(s *subject.Run) report.Prose {
	if len(s.Faults) > 0 {
		return report.Text(fmt.Sprintf("Time counts from the start of the load. %d faults are marked.",
			len(s.Faults)))
	}
	p := report.Text("Time counts from the start of the load. ")
	if silent := silences(s); len(silent) > 0 {
		p = p.Strong("The longest time without a success was " +
			report.Duration(silent[0].To-silent[0].From)).Add(", " + report.Duration(silent[0].From) +
			" after the start. ")
	}
	if n := len(s.Load.Anomalies); n > 0 {
		a := slices.MaxFunc(s.Load.Anomalies, func(a, b result.Anomaly) int {
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
func zoom(s *subject.Run, d *report.Document, f *subject.Fault, several bool) {
	if f.Status.InjectedAt == nil {
		return
	}
	sec := report.Section{
		ID:      "zoom",
		Title:   "The fault",
		Finding: phasesFinding(f),
	}
	name := ""
	if several {
		sec.ID, name = "zoom-"+f.Name, " "+f.Name
	}
	sec.Title += name
	if s.Columns != nil {
		sec.Title = fmt.Sprintf("The fault%s at %s", name, report.Duration(s.Columns.Step))
		sec.Drawing = scene(s, f).Zoom("fault-"+f.Name, &f.Drawn)
	}
	took, recovered := f.Result.Recovery()
	if recovered && len(f.Result.Phases) > 0 {
		sec.Title += ", and where the " + report.Duration(took.Value) + " went"
		sec.Tables, sec.Note = []report.Table{phasesTable(f)}, phasesNote(f)
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

func byOwner(f *subject.Fault) (list []owned) {
	for _, p := range f.Drawn.Phases {
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
func phasesFinding(f *subject.Fault) report.Prose {
	took, recovered := f.Result.Recovery()
	if took.Value == 0 || len(f.Result.Phases) == 0 {
		switch {
		case f.Status.SettledTime == nil:
			return report.Text("The recovery is still observed.")
		case !recovered:
			return report.Text(fmt.Sprintf(
				"The load had not recovered %s after the injection: there are no phases.",
				report.Duration(f.Waited())))
		}
		return report.Text("There was nothing to recover from.")
	}
	var p report.Prose
	for _, o := range byOwner(f) {
		if o.total == 0 {
			continue
		}
		if len(p) > 0 {
			p = p.Add(" ")
		}
		share := report.Share(float64(int(100*o.total.Seconds()/took.Value.Seconds()+.5)) / 100)
		name := events.OwnerName(o.owner)
		had := strings.ToUpper(name[:1]) + name[1:] + " had"
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

func phasesTable(f *subject.Fault) report.Table {
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
	recovery, _ := f.Result.Recovery()
	whole := recovery.Value
	for i, p := range f.Drawn.Phases {
		took := p.To - p.From
		row := report.Row{Dim: took == 0, Cells: []report.Cell{
			{Text: p.Name},
			{Text: strings.TrimPrefix(events.OwnerName(p.Owner), "the "), Owner: p.Owner},
			report.DurationCell(took),
			report.SinceCell(p.To - f.At),
			{},
			{Text: events.Meaning(p.Name)},
			{Text: exactness(f.Result.Phases[i].Took.Bounded())},
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

func phasesNote(f *subject.Fault) string {
	if slices.ContainsFunc(f.Drawn.Phases, func(p curve.Phase) bool { return p.Sooner > 0 }) {
		return "Kubernetes writes many of its instants in whole seconds: such a phase ended at the " +
			"instant shown, or earlier, by up to the dashed line; the next phase is then longer by as much."
	}
	return ""
}
