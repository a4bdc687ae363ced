package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

// limitsSection is what limited the runs of each cell, and what they used; nil if that is known of
// none.
func (s *subject) limitsSection() *report.Section {
	limits := map[string]int{}
	for i := range s.Runs {
		d := s.Runs[i].Detail
		if d != nil && d.Use.Bottleneck != "" {
			limits[d.Use.Bottleneck]++
		}
	}
	if len(limits) == 0 {
		return nil
	}
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(limits), func(a, b string) int {
		if limits[a] != limits[b] {
			return limits[b] - limits[a]
		}
		return strings.Compare(a, b)
	}) {
		parts = append(parts, fmt.Sprintf("%s in %s", name, wording.Plural(limits[name], "run")))
	}
	return &report.Section{
		ID:      "limits",
		Title:   "What limited it",
		Finding: report.Text(strings.Join(parts, ", ") + "."),
		Tables:  []report.Table{s.limitsTable().WithoutEmptyColumns()},
		Note: "The highest figures of all runs of a cell; CPU of one pod or server. None: nothing was " +
			"at its limit. The report of a load test has the evidence.",
	}
}

func (s *subject) limitsTable() report.Table {
	t := report.Table{
		Columns: []report.Column{
			{Title: "Cell"},
			{Title: "Bottleneck"},
			{Title: "CPU of Redis", Number: true},
			{Title: "Main thread", Number: true},
			{Title: "I/O threads, reads", Number: true},
			{Title: "I/O threads, writes", Number: true},
			{Title: "Slow commands", Number: true},
		},
	}
	var all study.Use
	cells := make([]study.Use, len(s.Cells))
	for i := range s.Runs {
		if d := s.Runs[i].Detail; d != nil {
			all.Raise(&d.Use)
			cells[s.Runs[i].Cell].Raise(&d.Use)
		}
	}
	for _, p := range all.Pods {
		t.Columns = append(t.Columns, report.Column{Title: "CPU of " + p.Name, Number: true})
	}
	for i := range cells {
		u := &cells[i]
		row := []report.Cell{
			{Text: s.Cells[i].Name},
			{Text: u.Bottleneck},
			coresOf(u.CPU),
			coresOf(u.MainThread),
			shareOf(u.ThreadedReads),
			shareOf(u.ThreadedWrites),
			{},
		}
		if u.Slow > 0 {
			row[6].Text = report.Count(u.Slow)
		}
		for _, p := range all.Pods {
			row = append(row, coresOf(u.Pod(p.Name).Max))
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
	}
	return t
}

func coresOf(millicores int64) report.Cell {
	if millicores == 0 {
		return report.Cell{}
	}
	return report.Cell{Text: report.Cores(millicores)}
}

// shareOf is empty also for 0, which a server without I/O threads has.
func shareOf(share *float64) report.Cell {
	if share == nil || *share == 0 {
		return report.Cell{}
	}
	return report.Cell{Text: report.Share(*share)}
}
