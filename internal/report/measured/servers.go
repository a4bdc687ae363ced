package measured

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// limited says what limited the load.
var limited = map[string]string{
	"None":            "Nothing limited it.",
	"LoadGenerator":   "The load generator limited it, not Redis.",
	"Network":         "The network limited it.",
	"Application":     "The application limited it.",
	"CPULimit":        "The CPU limit of Redis’ container limited it.",
	"RedisMainThread": "Redis’ main thread limited it.",
	"Disk":            "Redis’ disk limited it.",
	"Memory":          "Redis’ memory limited it.",
	"Clients":         "The limit of Redis’ clients limited it.",
	"Backend":         "The backend limited it, not Redis.",
}

// Servers is what each server of a load used, and what limited it; nil if nothing is known of that.
// looked is what the limit was looked for in.
func Servers(l *result.Load, looked report.Table) *report.Section {
	if l.Bottleneck == nil && l.Redis == nil && len(l.Servers) == 0 && l.RoundTrip == nil &&
		l.LoadPodCPU == nil {
		return nil
	}
	sec := &report.Section{
		ID:    "srv",
		Title: "Server, and what limited the load",
		Facts: serverFacts(l),
	}
	if b := l.Bottleneck; b != nil {
		sec.Finding = report.Text("").Strong(cmp.Or(limited[b.Component], b.Component+" limited it."))
		if b.Evidence != "" {
			sec.Finding = sec.Finding.Add(" Evidence: " + report.Sentence(b.Evidence))
		}
	}
	if len(looked.Rows) > 0 {
		sec.Tables = append(sec.Tables, looked)
	}
	if len(l.Servers) > 0 {
		sec.Tables = append(sec.Tables, serverTable(l.Servers))
	}
	if len(l.Pods) > 0 {
		t := report.Table{
			Caption: "Pods that were observed, each figure of one pod.",
			Columns: []report.Column{
				{Title: "Pods"},
				{Title: "Count", Number: true},
				{Title: "CPU, mean", Number: true},
				{Title: "CPU, highest", Number: true},
				{Title: "Limit", Number: true},
				{Title: "Memory", Number: true},
			},
		}
		for _, p := range l.Pods {
			t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
				{Text: p.Name},
				report.CountCell(int64(p.Count)),
				{Text: report.Cores(p.CPU.Mean)},
				{Text: report.Cores(p.CPU.Max)},
				{Text: coresIf(p.CPU.Limit)},
				{Text: report.Bytes(p.Memory)},
			}})
		}
		sec.Tables = append(sec.Tables, t)
	}
	sec.Note = l.Target.NotObserved
	return sec
}

func coresIf(limit int64) string {
	if limit == 0 {
		return "none"
	}
	return report.Cores(limit)
}

func serverFacts(l *result.Load) (facts []report.Fact) {
	if t := &l.Target; t.Version != "" {
		facts = append(facts, report.Fact{
			Name:   "Server",
			Value:  strings.TrimSpace(t.Server + " " + t.Version),
			Detail: strings.ToLower(t.Topology),
		})
	}
	if r := l.Redis; r != nil {
		cpu := report.Fact{Name: "Highest CPU", Value: report.Cores(r.MaxCPU)}
		if r.MaxMainThreadCPU > 0 {
			cpu.Detail = "main thread " + report.Cores(r.MaxMainThreadCPU)
		}
		facts = append(facts, cpu, report.Fact{
			Name:   "Highest memory",
			Value:  report.Bytes(r.MaxMemory),
			Detail: report.Count(r.EvictedKeys) + " keys evicted",
		},
			report.Fact{
				Name:   "Restarts seen",
				Value:  report.Count(r.Restarts),
				Detail: report.Count(r.RejectedConnections) + " connections rejected",
			})
	}
	if t := l.RoundTrip; t != nil && t.Idle != nil {
		f := report.Fact{
			Name:   "Round trip",
			Value:  report.Seconds(*t.Idle),
			Detail: "before the load",
		}
		if t.UnderLoad != nil {
			f.Detail += ", " + report.Seconds(*t.UnderLoad) + " under it"
		}
		facts = append(facts, f)
	}
	if c := l.LoadPodCPU; c != nil {
		f := report.Fact{
			Name:   "Load generator’s CPU",
			Value:  report.Cores(c.Max),
			Detail: report.Cores(c.Mean) + " on average",
		}
		if c.Limit > 0 {
			f.Detail += ", limit " + report.Cores(c.Limit)
		}
		facts = append(facts, f)
	}
	return facts
}

// serversShown is how many servers have a row: JSON has the others in the status.
const serversShown = 64

func serverTable(servers []result.ServerUse) report.Table {
	t := report.Table{
		Columns: []report.Column{
			{Title: "Server"},
			{Title: "Role"},
			{Title: "Shard", Number: true},
			{Title: "CPU, mean", Number: true},
			{Title: "CPU, highest", Number: true},
			{Title: "Limit", Number: true},
			{Title: "Memory", Number: true},
			{Title: "In/s", Number: true, Wide: true},
			{Title: "Out/s", Number: true, Wide: true},
			{Title: "I/O threads, reads", Number: true, Wide: true},
			{Title: "Slowest command", Wide: true},
			{Title: "Restarts", Number: true, Wide: true},
		},
	}
	for i := range servers[:min(len(servers), serversShown)] {
		u := &servers[i]
		cells := []report.Cell{
			{Text: strings.TrimSpace(u.Pod + " " + u.Address)},
			{Text: strings.ToLower(u.Role)},
			{},
			{Text: report.Cores(u.CPU.Mean)},
			{Text: report.Cores(u.CPU.Max)},
			{},
			{Text: report.Bytes(u.Memory)},
			{Text: report.Bytes(int64(u.BytesIn))},
			{Text: report.Bytes(int64(u.BytesOut))},
			{},
			{},
			{},
		}
		if u.Shard != nil {
			cells[2].Text = strconv.Itoa(*u.Shard)
		}
		if u.CPU.Limit > 0 {
			cells[5].Text = report.Cores(u.CPU.Limit)
		}
		if u.IOThreadedReads != nil && *u.IOThreadedReads > 0 {
			cells[9].Text = report.Share(*u.IOThreadedReads)
		}
		if len(u.Slowest) > 0 {
			cells[10].Text = u.Slowest[0].Command + " " + report.Seconds(u.Slowest[0].Took)
		}
		if u.Restarts > 0 {
			cells[11].Text = report.Count(u.Restarts)
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t.WithoutEmptyColumns()
}
