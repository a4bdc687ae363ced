package run

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/curve"
	"github.com/redquake/redquake/internal/result"
)

// timeline is the events of a fault; own tells that time counts from its injection, and not from the start of the load.
func (f *fault) timeline(own bool) (list []report.Event) {
	for _, e := range f.Status.Timeline {
		event := report.Event{At: e.At.UTC(), Offset: result.Seconds(e.Offset.Duration()), Event: e.Event, Object: e.Object, Message: e.Message, Owner: ownerOf(e.Event, "")}
		if event.Message == "" {
			event.Message = meaning(e.Event)
		}
		if !own {
			event.Offset += result.Seconds(f.at)
		}
		list = append(list, event)
	}
	w := f.drawn.Outage
	for i := range list {
		at := f.at + f.Status.Timeline[i].Offset.Duration()
		list[i].Silent = w.To > w.From && at >= w.From && at < w.To
	}
	return list
}

// timeline is the events of all faults, from the start of the load; of a single one from its injection.
func (s *subject) timeline() (list []report.Event) {
	for _, f := range s.faults {
		list = append(list, f.timeline(len(s.faults) == 1)...)
	}
	slices.SortStableFunc(list, func(a, b report.Event) int { return a.At.Compare(b.At) })
	return list
}

// quietTimes are the outages of the faults.
func (s *subject) quietTimes() (list []curve.Window) {
	for _, f := range s.faults {
		if f.drawn.Outage.To > f.drawn.Outage.From {
			list = append(list, f.drawn.Outage)
		}
	}
	return list
}

func timelineSection(d *report.Document, quiet []curve.Window) *report.Section {
	if len(d.Timeline) == 0 {
		return nil
	}
	t := report.Table{Columns: []report.Column{{Title: "Event"}, {Title: "Since the fault", Number: true},
		{Title: "UTC", Number: true, Soft: true, Wide: true}, {Title: "Of"}, {Title: "What happened", Soft: true}}}
	text := "From the injection on."
	if d.Kind == report.LoadTest && d.Timeline[0].Offset > 0 {
		t.Columns[1].Title, text = "Since the start", "From the start of the load on."
	}
	if len(quiet) > 0 {
		text += " The line on the left is the time in which no request succeeded."
	}
	for _, e := range d.Timeline {
		t.Rows = append(t.Rows, report.Row{Silent: e.Silent, Cells: []report.Cell{
			{Text: e.Event, Owner: e.Owner}, report.SinceCell(time.Duration(e.Offset)), {Text: e.At.Format("15:04:05.000")}, {Text: e.Object}, {Text: e.Message},
		}})
	}
	return &report.Section{ID: "time", Title: "Timeline", Finding: report.Text(text), Tables: []report.Table{t}, Derived: true}
}
