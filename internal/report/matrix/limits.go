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
func (s *subject) limitsSection() *report.Section {
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

func (s *subject) limitsTable() report.Table {
	t := report.Table{Columns: []report.Column{{Title: "Cell"}, {Title: "Bottleneck"}, {Title: "CPU of Redis", Number: true}, {Title: "Main thread", Number: true},
		{Title: "I/O threads, reads", Number: true}, {Title: "I/O threads, writes", Number: true}, {Title: "Slow commands", Number: true}}}
	var all Use
	cells := make([]Use, len(s.Cells))
	for i := range s.Runs {
		if d := s.Runs[i].Detail; d != nil {
			all.raise(&d.Use)
			cells[s.Runs[i].Cell].raise(&d.Use)
		}
	}
	for _, p := range all.Pods {
		t.Columns = append(t.Columns, report.Column{Title: "CPU of " + p.Name, Number: true})
	}
	for i := range cells {
		u := &cells[i]
		row := []report.Cell{{Text: s.Cells[i].Name}, {Text: u.Bottleneck}, coresOf(u.CPU), coresOf(u.MainThread), shareOf(u.ThreadedReads), shareOf(u.ThreadedWrites), {}}
		if u.Slow > 0 {
			row[6].Text = report.Count(u.Slow)
		}
		for _, p := range all.Pods {
			row = append(row, coresOf(u.pod(p.Name).Max))
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
	}
	return t
}

// raise makes each figure the higher one of both, and names both bottlenecks.
func (u *Use) raise(o *Use) {
	if o.Bottleneck != "" && !slices.Contains(strings.Split(u.Bottleneck, ", "), o.Bottleneck) {
		u.Bottleneck = strings.TrimPrefix(u.Bottleneck+", "+o.Bottleneck, ", ")
	}
	u.CPU, u.MainThread, u.Slow = max(u.CPU, o.CPU), max(u.MainThread, o.MainThread), max(u.Slow, o.Slow)
	u.ThreadedReads, u.ThreadedWrites = higher(u.ThreadedReads, o.ThreadedReads), higher(u.ThreadedWrites, o.ThreadedWrites)
	for _, p := range o.Pods {
		mine := u.pod(p.Name)
		mine.Max = max(mine.Max, p.Max)
	}
}

// pod is the entry with a name, which is added where there is none.
func (u *Use) pod(name string) *PodCPU {
	i := slices.IndexFunc(u.Pods, func(p PodCPU) bool { return p.Name == name })
	if i < 0 {
		u.Pods = append(u.Pods, PodCPU{Name: name})
		i = len(u.Pods) - 1
	}
	return &u.Pods[i]
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
