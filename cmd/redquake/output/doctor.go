package output

import (
	"io"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
	"github.com/redquake/redquake/internal/report"
)

// WriteDoctor writes what is ready in a cluster as two tables: of the checks, and of the kinds of
// faults.
func WriteDoctor(w io.Writer, r *doctor.Report) error {
	tables := []report.Table{
		{Columns: []report.Column{{Title: "Check"}, {Title: "Status"}, {Title: "Detail"}}},
		{Columns: []report.Column{{Title: "Fault"}, {Title: "Status"}, {Title: "Detail"}}},
	}
	add := func(t *report.Table, name string, status doctor.Status, detail string) {
		t.Rows = append(t.Rows,
			report.Row{Cells: []report.Cell{{Text: name}, {Text: string(status)}, {Text: detail}}})
	}
	for _, c := range r.Checks {
		add(&tables[0], c.Name, c.Status, c.Detail)
	}
	for _, f := range r.Faults {
		name := string(f.Type)
		if f.Engine != v1alpha1.EngineNative {
			name += " by " + string(f.Engine)
		}
		detail := strings.Join(f.Detail, "; ")
		if f.Status == doctor.OK && len(f.Needs) > 0 {
			detail = "needs: " + strings.Join(f.Needs, ", ")
		}
		add(&tables[1], name, f.Status, detail)
	}
	ready := "Ready: load tests can run in namespace " + r.Namespace
	if !r.Ready {
		ready = "Not ready: see what is Missing below"
	}
	return report.WriteParts(w,
		&report.Document{Sections: []report.Section{{Title: ready, Tables: tables}}})
}
