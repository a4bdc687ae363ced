package events

import (
	"time"

	"github.com/redquake/redquake/internal/report"
)

// Timeline is the timeline of a report as a table; nil if nothing happened. silent tells that some
// events were in a time without a success.
func Timeline(d *report.Document, silent bool) *report.Section {
	if len(d.Timeline) == 0 {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Event"},
			{Title: "Since the fault", Number: true},
			{Title: "UTC", Number: true, Soft: true, Wide: true},
			{Title: "Of"},
			{Title: "What happened", Soft: true},
		},
	}
	text := "From the injection on."
	if d.Kind == report.LoadTest && d.Timeline[0].Offset > 0 {
		t.Columns[1].Title, text = "Since the start", "From the start of the load on."
	}
	if silent {
		text += " The line on the left is the time in which no request succeeded."
	}
	for _, e := range d.Timeline {
		t.Rows = append(t.Rows, report.Row{Silent: e.Silent, Cells: []report.Cell{
			{Text: e.Event, Owner: e.Owner},
			report.SinceCell(time.Duration(e.Offset)),
			{Text: e.At.Format("15:04:05.000")},
			{Text: e.Object},
			{Text: e.Message},
		}})
	}
	return &report.Section{
		ID:      "time",
		Title:   "Timeline",
		Finding: report.Text(text),
		Tables:  []report.Table{t},
		Derived: true,
	}
}
