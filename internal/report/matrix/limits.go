package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// Use is what the servers and the observed pods of a run used, and what limited it.
type Use struct {
	Bottleneck string // "" = it is not known
	CPU        int64  // the highest of a server, in millicores; 0 = there was no reading
	MainThread int64
	Slow       int64 // commands in the slow logs
	Pods       []PodCPU
	// ThreadedReads and ThreadedWrites are the shares that the I/O threads of the busiest server performed, from 0 to 1; nil = it did not say.
	ThreadedReads, ThreadedWrites *float64
}

// PodCPU is the highest CPU of one of the pods of an entry of spec.observe.pods, in millicores.
type PodCPU struct {
	Name string
	Max  int64
}

// useOf is what a load test says of it.
func useOf(status *v1alpha1.RedisLoadTestStatus) (u Use) {
	if b := status.Bottleneck; b != nil {
		u.Bottleneck = string(b.Component)
		if b.Pods != "" {
			u.Bottleneck += ": " + b.Pods
		}
	}
	if r := status.Redis; r != nil {
		u.CPU = r.MaxCPU
		if r.MaxMainThreadCPU != nil {
			u.MainThread = *r.MaxMainThreadCPU
		}
	}
	busiest := int64(-1)
	for i := range status.Servers {
		s := &status.Servers[i]
		if s.SlowCommands != nil {
			u.Slow += *s.SlowCommands
		}
		if s.CPU != nil && s.CPU.Mean > busiest {
			busiest = s.CPU.Mean
			u.ThreadedReads, u.ThreadedWrites = decimal(s.IOThreadedReads), decimal(s.IOThreadedWrites)
		}
	}
	for i := range status.Pods {
		if p := &status.Pods[i]; p.CPU != nil {
			u.Pods = append(u.Pods, PodCPU{p.Name, p.CPU.Max})
		}
	}
	return u
}

// limitsSection is what limited the runs of each cell, and what they used; nil if that is known of none.
func (s *Source) limitsSection() *report.Section {
	limits := map[string]int{}
	for i := range s.Runs {
		if d := s.Runs[i].Detail; d != nil && d.Use.Bottleneck != "" {
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
		parts = append(parts, fmt.Sprintf("%s in %s", name, plural(limits[name], "run")))
	}
	return &report.Section{
		ID: "limits", Title: "What limited it", Finding: report.Text(strings.Join(parts, ", ") + "."), Tables: []report.Table{s.limitsTable().WithoutEmptyColumns()},
		Note: "The highest figures of all runs of a cell; CPU of one pod or server. None: nothing was at its limit. The report of a load test has the evidence.",
	}
}

func (s *Source) limitsTable() report.Table {
	t := report.Table{Columns: []report.Column{{Title: "Cell"}, {Title: "Bottleneck"}, {Title: "CPU of Redis", Number: true}, {Title: "Main thread", Number: true},
		{Title: "I/O threads, reads", Number: true}, {Title: "I/O threads, writes", Number: true}, {Title: "Slow commands", Number: true}}}
	pods := s.observed()
	for _, name := range pods {
		t.Columns = append(t.Columns, report.Column{Title: "CPU of " + name, Number: true})
	}
	for i := range s.Cells {
		cells := []report.Cell{{Text: s.Cells[i].Name}, {}, {}, {}, {}, {}, {}}
		var found []string
		highest := make([]int64, 2+len(pods))
		var slow int64
		var reads, writes *float64
		for _, run := range s.runsOf(i) {
			if run.Detail == nil {
				continue
			}
			u := &run.Detail.Use
			if u.Bottleneck != "" && !slices.Contains(found, u.Bottleneck) {
				found = append(found, u.Bottleneck)
			}
			highest[0], highest[1], slow = max(highest[0], u.CPU), max(highest[1], u.MainThread), max(slow, u.Slow)
			reads, writes = higher(reads, u.ThreadedReads), higher(writes, u.ThreadedWrites)
			for _, p := range u.Pods {
				at := 2 + slices.Index(pods, p.Name)
				highest[at] = max(highest[at], p.Max)
			}
		}
		cells[1].Text = strings.Join(found, ", ")
		cells[2], cells[3] = coresOf(highest[0]), coresOf(highest[1])
		cells[4], cells[5] = shareOf(reads), shareOf(writes)
		if slow > 0 {
			cells[6].Text = report.Count(slow)
		}
		for _, cores := range highest[2:] {
			cells = append(cells, coresOf(cores))
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t
}

// observed are the names of the pods that were observed in any run.
func (s *Source) observed() (names []string) {
	for i := range s.Runs {
		if s.Runs[i].Detail == nil {
			continue
		}
		for _, p := range s.Runs[i].Detail.Use.Pods {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func higher(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
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
