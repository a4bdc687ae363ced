package run

import (
	"cmp"
	"math"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

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
