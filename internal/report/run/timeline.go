package run

import (
	"cmp"
	"math"
	"slices"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/events"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// timelineOf is the events of a fault; own tells that time counts from its injection, and not
// from the start of the load.
func timelineOf(f *subject.Fault, own bool) (list []report.Event) {
	for _, e := range f.Status.Timeline {
		event := report.Event{
			At:      e.At.UTC(),
			Offset:  result.Seconds(e.Offset.Duration()),
			Event:   e.Event,
			Object:  e.Object,
			Message: e.Message,
			Owner:   events.OwnerOf(e.Event, ""),
		}
		if event.Message == "" {
			event.Message = events.Meaning(e.Event)
		}
		if !own {
			event.Offset += result.Seconds(f.At)
		}
		list = append(list, event)
	}
	w := f.Drawn.Outage
	for i := range list {
		at := f.At + f.Status.Timeline[i].Offset.Duration()
		list[i].Silent = w.To > w.From && at >= w.From && at < w.To
	}
	return list
}

// timeline is the events of all faults, from the start of the load; of a single one from its
// injection.
func timeline(s *subject.Run) (list []report.Event) {
	for _, f := range s.Faults {
		list = append(list, timelineOf(f, len(s.Faults) == 1)...)
	}
	slices.SortStableFunc(list, func(a, b report.Event) int { return a.At.Compare(b.At) })
	return list
}

// quiet reports whether a fault had an outage that is drawn.
func quiet(s *subject.Run) bool {
	return slices.ContainsFunc(s.Faults, func(f *subject.Fault) bool {
		return f.Drawn.Outage.To > f.Drawn.Outage.From
	})
}

// lookedTable is what the bottleneck was looked for in, by the record.
func lookedTable(s *subject.Run) report.Table {
	t := report.Table{
		Caption: "Looked at in the steady part, in this order: the first component that reaches its limit is named.",
		Columns: []report.Column{
			{Title: "Component"},
			{Title: "Looked at", Soft: true},
			{Title: "Found", Number: true},
			{Title: "Of its limit", Width: 32, Wide: true},
			{Title: "Named from", Number: true, Soft: true},
		},
	}
	if s.Test == nil || s.In.Series == nil || s.Load.Bottleneck == nil || s.Load.Search != nil {
		return t
	}
	planned, err := children.Plan(s.Test, s.Load.Target.Addresses)
	if err != nil {
		return t // of another version: what it asks for is not known here
	}
	in := bottleneck.Of(planned, s.In.Series)
	if len(s.Load.Servers) > 0 {
		in.ServerCPULimit = float64(s.Load.Servers[0].CPU.Limit) / 1000 // all have the lowest one
	}
	for _, f := range s.Faults {
		in.Without = append(in.Without, summary.Window{
			From: f.At,
			To:   cmp.Or(f.Drawn.Recovered, f.Drawn.Settled, s.In.Series.End()),
		})
	}
	for _, r := range bottleneck.Looked(in) {
		unit := result.UnitCount
		row := report.Row{Cells: []report.Cell{{Text: string(r.Component)}, {Text: r.What}, {}, {}, {}}}
		if r.Share {
			unit = result.UnitShare
			row.Cells[3].Bar = &report.Bar{
				Share: r.Found,
				Mark:  r.Limit,
				Label: report.Share(r.Found) + ", limit " + report.Share(r.Limit),
			}
		}
		row.Cells[2] = report.Cell{
			Text:  report.InUnit(unit, math.Round(1000*r.Found)/1000),
			Value: new(r.Found),
			Unit:  unit,
		}
		row.Cells[4].Text = report.InUnit(unit, r.Limit)
		t.Rows = append(t.Rows, row)
	}
	return t
}
