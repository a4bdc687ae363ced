package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

func summaryOf(series *record.Series) summary.Summary { return summary.Summarize(series, 0) }

// limited says what limited the load.
var limited = map[string]string{
	"None": "Nothing limited it.", "LoadGenerator": "The load generator limited it, not Redis.", "Network": "The network limited it.", "Application": "The application limited it.",
	"CPULimit": "The CPU limit of Redis’ container limited it.", "RedisMainThread": "Redis’ main thread limited it.", "Disk": "Redis’ disk limited it.",
	"Memory": "Redis’ memory limited it.", "Clients": "The limit of Redis’ clients limited it.", "Backend": "The backend limited it, not Redis.",
}

// serversSection is what each server used, and what limited the load.
func (s *subject) serversSection() *report.Section {
	l := s.load
	if l.Bottleneck == nil && l.Redis == nil && len(l.Servers) == 0 && l.RoundTrip == nil && l.LoadPodCPU == nil {
		return nil
	}
	sec := &report.Section{ID: "srv", Title: "Server, and what limited the load", Facts: s.serverFacts()}
	if b := l.Bottleneck; b != nil {
		sec.Finding = report.Text("").Strong(cmp.Or(limited[b.Component], b.Component+" limited it."))
		if b.Evidence != "" {
			sec.Finding = sec.Finding.Add(" Evidence: " + ended(b.Evidence))
		}
	}
	if t := s.lookedTable(); len(t.Rows) > 0 {
		sec.Tables = append(sec.Tables, t)
	}
	if len(l.Servers) > 0 {
		sec.Tables = append(sec.Tables, serverTable(l.Servers))
	}
	if len(l.Pods) > 0 {
		t := report.Table{Caption: "Pods that were observed, each figure of one pod.", Columns: []report.Column{{Title: "Pods"}, {Title: "Count", Number: true},
			{Title: "CPU, mean", Number: true}, {Title: "CPU, highest", Number: true}, {Title: "Limit", Number: true}, {Title: "Memory", Number: true}}}
		for _, p := range l.Pods {
			t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
				{Text: p.Name}, countCell(int64(p.Count)), {Text: report.Cores(p.CPU.Mean)}, {Text: report.Cores(p.CPU.Max)}, {Text: coresIf(p.CPU.Limit)}, {Text: report.Bytes(p.Memory)},
			}})
		}
		sec.Tables = append(sec.Tables, t)
	}
	sec.Note = l.Target.NotObserved
	return sec
}

// lookedTable is what the bottleneck was looked for in, by the record.
func (s *subject) lookedTable() report.Table {
	t := report.Table{
		Caption: "Looked at in the steady part, in this order: the first component that reaches its limit is named.",
		Columns: []report.Column{{Title: "Component"}, {Title: "Looked at", Soft: true}, {Title: "Found", Number: true},
			{Title: "Of its limit", Width: 32, Wide: true}, {Title: "Named from", Number: true, Soft: true}},
	}
	if s.test == nil || s.in.Series == nil || s.load.Bottleneck == nil || s.load.Search != nil {
		return t
	}
	planned, err := children.Plan(s.test, s.load.Target.Addresses)
	if err != nil {
		return t // of another version: what it asks for is not known here
	}
	in := bottleneck.Of(planned, s.in.Series)
	if len(s.load.Servers) > 0 {
		in.ServerCPULimit = float64(s.load.Servers[0].CPU.Limit) / 1000 // all have the lowest one
	}
	for _, f := range s.faults {
		in.Without = append(in.Without, summary.Window{From: f.at, To: cmp.Or(f.drawn.Recovered, f.drawn.Settled, s.in.Series.End())})
	}
	for _, r := range bottleneck.Looked(in) {
		unit := result.UnitCount
		row := report.Row{Cells: []report.Cell{{Text: string(r.Component)}, {Text: r.What}, {}, {}, {}}}
		if r.Share {
			unit = result.UnitShare
			row.Cells[3].Bar = &report.Bar{Share: r.Found, Mark: r.Limit, Label: report.Share(r.Found) + ", limit " + report.Share(r.Limit)}
		}
		row.Cells[2] = report.Cell{Text: report.InUnit(unit, math.Round(1000*r.Found)/1000), Value: new(r.Found), Unit: unit}
		row.Cells[4].Text = report.InUnit(unit, r.Limit)
		t.Rows = append(t.Rows, row)
	}
	return t
}

func coresIf(limit int64) string {
	if limit == 0 {
		return "none"
	}
	return report.Cores(limit)
}

func (s *subject) serverFacts() (facts []report.Fact) {
	l := s.load
	if t := &l.Target; t.Version != "" {
		facts = append(facts, report.Fact{Name: "Server", Value: strings.TrimSpace(t.Server + " " + t.Version), Detail: lower(t.Topology)})
	}
	if r := l.Redis; r != nil {
		cpu := report.Fact{Name: "Highest CPU", Value: report.Cores(r.MaxCPU)}
		if r.MaxMainThreadCPU > 0 {
			cpu.Detail = "main thread " + report.Cores(r.MaxMainThreadCPU)
		}
		facts = append(facts, cpu, report.Fact{Name: "Highest memory", Value: report.Bytes(r.MaxMemory), Detail: report.Count(r.EvictedKeys) + " keys evicted"},
			report.Fact{Name: "Restarts seen", Value: report.Count(r.Restarts), Detail: report.Count(r.RejectedConnections) + " connections rejected"})
	}
	if t := l.RoundTrip; t != nil && t.Idle != nil {
		f := report.Fact{Name: "Round trip", Value: report.Seconds(*t.Idle), Detail: "before the load"}
		if t.UnderLoad != nil {
			f.Detail += ", " + report.Seconds(*t.UnderLoad) + " under it"
		}
		facts = append(facts, f)
	}
	if c := l.LoadPodCPU; c != nil {
		f := report.Fact{Name: "Load generator’s CPU", Value: report.Cores(c.Max), Detail: report.Cores(c.Mean) + " on average"}
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
	t := report.Table{Columns: []report.Column{{Title: "Server"}, {Title: "Role"}, {Title: "Shard", Number: true}, {Title: "CPU, mean", Number: true}, {Title: "CPU, highest", Number: true},
		{Title: "Limit", Number: true}, {Title: "Memory", Number: true}, {Title: "In/s", Number: true, Wide: true}, {Title: "Out/s", Number: true, Wide: true}, {Title: "I/O threads, reads", Number: true, Wide: true}, {Title: "Slowest command", Wide: true}, {Title: "Restarts", Number: true, Wide: true}}}
	for i := range servers[:min(len(servers), serversShown)] {
		u := &servers[i]
		cells := []report.Cell{
			{Text: strings.TrimSpace(u.Pod + " " + u.Address)}, {Text: lower(u.Role)}, {}, {Text: report.Cores(u.CPU.Mean)}, {Text: report.Cores(u.CPU.Max)}, {}, {Text: report.Bytes(u.Memory)},
			{Text: report.Bytes(int64(u.BytesIn))}, {Text: report.Bytes(int64(u.BytesOut))}, {}, {}, {}}
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

// shardsShown is how many shards have a row, those with the longest gaps first.
const shardsShown = 64

func (s *subject) shardsSection() *report.Section {
	if len(s.load.Shards) < 2 {
		return nil
	}
	list := slices.SortedStableFunc(slices.Values(s.load.Shards), func(a, b result.Shard) int { return cmp.Compare(b.LongestGap, a.LongestGap) })
	t := report.Table{Columns: []report.Column{{Title: "Shard"}, {Title: "OK/s", Number: true}, {Title: "Errors", Number: true}, {Title: "Longest outage", Number: true}}}
	for _, one := range list[:min(len(list), shardsShown)] {
		t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
			{Text: strconv.Itoa(one.Shard)}, rateCell(one.Throughput), countCell(int64(one.Errors)), secondsCell(time.Duration(one.LongestGap)),
		}})
	}
	finding := report.Text("No shard was without a success for long.")
	if w := list[0]; w.LongestGap > 0 {
		finding = report.Text("").Strong(fmt.Sprintf("Shard %d had the longest outage, %s", w.Shard, report.Seconds(w.LongestGap))).Add("; the sum of all shards hides it while the others answer.")
	}
	return &report.Section{ID: "shards", Title: "Shards", Finding: finding, Tables: []report.Table{t}}
}

func (s *subject) searchSection() *report.Section {
	search := s.load.Search
	if search == nil {
		return nil
	}
	sec := &report.Section{ID: "search", Title: "The search for a rate", Finding: report.Text(search.Message)}
	if search.Rate > 0 {
		sec.Finding = report.Text("").Strong(report.Rate(search.Rate) + " is the highest rate that met the objectives").Add(". " + ended(search.Message))
	}
	t := report.Table{Columns: []report.Column{{Title: "Trial"}, {Title: "Requests/s", Number: true}, {Title: "OK/s", Number: true}, {Title: "p99", Number: true},
		{Title: "Errors", Number: true}, {Title: "Objectives"}}}
	for i, one := range search.Trials {
		verdict := report.Cell{Text: "met", Judged: report.Met}
		if !one.Met {
			verdict = report.Cell{Text: strings.TrimSpace("missed " + one.Missed), Judged: report.Missed}
		}
		cells := []report.Cell{{Text: strconv.Itoa(i + 1)}, rateCell(one.Rate), rateCell(one.Throughput), {}, {Text: report.Share(one.ErrorRate)}, verdict}
		if one.Latency != nil {
			cells[3].Text = report.Seconds(one.Latency.P99)
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	if len(t.Rows) > 0 {
		sec.Tables = []report.Table{t}
	}
	return sec
}

func (s *subject) verificationSection() *report.Section {
	v := s.verification()
	if v == nil {
		return nil
	}
	sec := &report.Section{ID: "ledger", Title: "Acknowledged writes, read back"}
	switch lost := v.LostWrites(); {
	case lost == nil:
		sec.Finding = report.Text("How many were lost is not known: " + ended(v.Unread))
	case lost.AtMost == 0:
		sec.Finding = report.Text("").Strong(fmt.Sprintf("None of %s was lost", report.Count(v.Acknowledged))).Add(": a sample of all writes, so that a loss of a few can go unseen.")
	default:
		known := ": exact for these, a lower bound for all writes of the load."
		if _, exact := lost.Exact(); !exact {
			known = ": Redis may have evicted the others that are absent."
		}
		sec.Finding = report.Text("").Damage(fmt.Sprintf("%s of %s were lost", bounds(lost), report.Count(v.Acknowledged))).Add(known)
	}
	sec.Facts = []report.Fact{
		{Name: "Acknowledged", Value: report.Count(v.Acknowledged)}, {Name: "Unknown", Value: report.Count(v.Unknown), Detail: report.Count(v.UnknownPresent) + " of them were found"},
		{Name: "Failed", Value: report.Count(v.Failed)}, {Name: "Replicas read", Value: report.Count(v.Replicas), Detail: report.Count(v.ReplicaMissing) + " missing at the worst"}}
	if lost := v.LostWrites(); lost != nil && lost.AtMost > 0 && v.LastLost > 0 { // the status does not have when
		seen := "no client saw an error then"
		if v.Errors > 0 {
			seen = fmt.Sprintf("about %s requests failed then", report.Count(v.Errors))
		}
		sec.Facts = append(sec.Facts, report.Fact{Name: "The lost ones were acknowledged", Value: report.Seconds(v.FirstLost) + " to " + report.Seconds(v.LastLost) + " after the start", Detail: seen})
	}
	if st := v.Stale; st != nil {
		sec.Facts = append(sec.Facts, report.Fact{Name: "Stale reads", Value: report.Count(st.Stale),
			Detail: fmt.Sprintf("of %s, at most %s writes and %s behind; %s went backwards", report.Count(st.Reads), report.Count(st.MaxWrites), report.Seconds(st.MaxBehind), report.Count(st.Backwards))})
	}
	if d := v.Dual; d != nil {
		f := report.Fact{Name: "Writes at a second primary", Value: report.Count(d.Writes)}
		if d.Writes > 0 {
			f.Detail = report.Seconds(d.First) + " to " + report.Seconds(d.Last) + " after the start"
		}
		sec.Facts = append(sec.Facts, f)
	}
	sec.Note = v.Settings
	return sec
}

// bounds is a number, or what it is between.
func bounds(c *result.Count) string {
	if n, exact := c.Exact(); exact {
		return report.Count(n)
	}
	return report.Count(c.AtLeast) + " to " + report.Count(c.AtMost)
}
