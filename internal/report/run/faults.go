package run

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/figures"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// faultsSection lists the faults of a load.
func faultsSection(s *subject.Run, d *report.Document) {
	if len(s.Faults) == 0 {
		return
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Fault"},
			{Title: "Type"},
			{Title: "At", Number: true, Wide: true},
			{Title: "Outage", Number: true},
			{Title: "Dip", Number: true, Wide: true},
			{Title: "Recovery", Number: true},
			{Title: "Lost writes", Number: true, Wide: true},
			{Title: "Verdict"},
		},
	}
	worst := s.Faults[0]
	for _, f := range s.Faults {
		cells := []report.Cell{{Text: f.Name}, {Text: string(f.Spec.Action.Type)}, report.SinceCell(f.At)}
		named := map[string]report.Figure{}
		for _, one := range figures.OfFault(f, f.Name) {
			named[one.Name] = one
		}
		for _, name := range []string{"outage", "dip", "recoveryTime", "lostWrites"} {
			one := named[name]
			cells = append(cells, report.Cell{
				Text:  one.String(),
				Value: one.Value,
				Unit:  one.Unit,
			})
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: append(cells, report.Cell{
				Text:   string(f.Status.Verdict),
				Judged: judgement.OfVerdict(f.Status.Verdict),
			}),
		})
		if f.Result.Outage().Value > worst.Result.Outage().Value {
			worst = f
		}
	}
	sec := report.Section{
		ID:      "faults",
		Title:   "Faults",
		Tables:  []report.Table{t},
		Finding: report.Text("Each has a report of its own."),
	}
	length := worst.Outage()
	if length != "" && len(s.Faults) > 1 {
		sec.Finding = report.Text("").Strong(worst.Name + " had the longest outage, " + length).
			Add(". Each has a report of its own.")
	}
	if len(s.Faults) > faultsShown {
		sec.Note = fmt.Sprintf("The first %d are drawn below.", faultsShown)
	}
	d.Sections = append(d.Sections, sec)
}

// activeSection is the load while a fault that lasts was there.
func activeSection(f *subject.Fault) *report.Section {
	w := f.Result.WhileActive
	if w == nil {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "While active", Number: true},
			{Title: "Change", Number: true},
		},
	}
	add := func(name, text string, change *float64, bounds *result.ChangeBounds) {
		row := report.Row{Cells: []report.Cell{{Text: name}, {Text: text}, {}}}
		if change != nil {
			row.Cells[2] = report.Cell{
				Text:  report.Change(*change),
				Value: change,
				Unit:  result.UnitShare,
			}
		}
		if bounds != nil {
			row.Cells[2].Text = bounds.Text(report.Change)
		}
		t.Rows = append(t.Rows, row)
	}
	p50, p99 := "–", "–"
	if q := w.Latency; q != nil {
		p50, p99 = report.Seconds(q.P50), report.Seconds(q.P99)
	}
	add("throughput", report.Rate(ptr.Deref(w.Throughput, 0)), w.ThroughputChange, nil)
	add("p50", p50, w.LatencyP50Change, w.LatencyP50ChangeBounds)
	add("p99", p99, w.LatencyP99Change, w.LatencyP99ChangeBounds)
	add("errors", report.Share(ptr.Deref(w.ErrorRate, 0)), w.ErrorRateChange, nil)
	finding := report.Text("Over the " + report.Seconds(w.Length) + " in which the fault was complete")
	if x := w.ThroughputChange; x != nil {
		finding = finding.Add(" the throughput changed by ").Strong(report.Change(*x))
	}
	return &report.Section{
		ID:      "active",
		Title:   "While the fault was there",
		Finding: finding.Add("."),
		Tables:  []report.Table{t},
	}
}
