// Package measured makes the sections of a report that the result of a load alone shows: its
// operations, shards, servers and trials, and what was read back.
package measured

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Operations is the figures of each operation of a load over the measured time; nil if no request
// was made in it. openLoop tells from when latency counts.
func Operations(l *result.Load, openLoop bool) *report.Section {
	if l.Total.Requests == 0 {
		return nil
	}
	from := "from the send"
	if openLoop {
		from = "from the intended arrival"
	}
	t := report.Table{
		Caption: "Over the measured time, the faults included. Latency counts " + from +
			", of successes.",
		Columns: []report.Column{
			{Title: "Operation"},
			{Title: "Requests", Number: true},
			{Title: "Errors", Number: true},
			{Title: "OK/s", Number: true},
			{Title: "p50", Number: true},
			{Title: "p90", Number: true},
			{Title: "p95", Number: true},
			{Title: "p99", Number: true},
			{Title: "p99.9", Number: true},
			{Title: "p99.99", Number: true},
			{Title: "Max", Number: true},
		},
	}
	rows := []*result.Operation{&l.Total}
	if len(l.Operations) > 1 {
		for i := range l.Operations {
			rows = append(rows, &l.Operations[i])
		}
	}
	for i, o := range rows {
		cells := []report.Cell{
			{Text: o.Name},
			report.CountCell(int64(o.Requests)),
			report.CountCell(int64(o.Errors())),
			report.RateCell(o.Throughput),
		}
		t.Rows = append(t.Rows, report.Row{
			Strong: i == 0,
			Cells:  append(cells, quantileCells(o.Latency)...),
		})
	}
	if q := l.Total.Service; q != nil {
		t.Rows = append(t.Rows, report.Row{
			Cells: append([]report.Cell{{Text: "all, from the send"}, {}, {}, {}}, quantileCells(q)...),
		})
	}
	sec := &report.Section{
		ID:     "ops",
		Title:  "Operations",
		Tables: []report.Table{t},
		Facts:  append(lateFacts(l), answerFacts(l)...),
	}
	for _, f := range l.Workload {
		text := ""
		switch {
		case f.Share != nil:
			text = report.Share(*f.Share)
		case f.Seconds != nil:
			text = report.Seconds(*f.Seconds)
		case f.Count != nil:
			text = report.Count(*f.Count)
		}
		sec.Facts = append(sec.Facts, report.Fact{Name: f.Name, Value: text})
	}
	if l.Seed != 0 {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:   "Seed",
			Value:  strconv.FormatUint(l.Seed, 10),
			Detail: "repeats the random draws of keys, values and operations",
		})
	}
	return sec
}

// lateFacts say how late requests were sent, and for how long the load generator did not run.
func lateFacts(l *result.Load) (facts []report.Fact) {
	if lag := l.MaxLag; lag > 0 {
		facts = append(facts, report.Fact{
			Name:   "Lag",
			Value:  report.Seconds(lag),
			Detail: "the most from an intended arrival to its send",
		})
	}
	stalled, p99 := l.Total.Stalled, l.Total.Latency
	if stalled == nil || stalled.Length == 0 && !stalled.Starved() {
		return facts
	}
	f := report.Fact{Name: "Stalls", Value: stalled.String()}
	if p99 != nil && stalled.Latency != nil && stalled.Latency.P99 != p99.P99 {
		f.Detail = fmt.Sprintf("without these stalls the p99 would have been from %s to %s",
			report.Seconds(stalled.Latency.P99), report.Seconds(p99.P99))
	}
	return append(facts, f)
}

// answerFacts say how many reads found nothing, and how many requests were sent to the wrong node.
func answerFacts(l *result.Load) (facts []report.Fact) {
	for i := range l.Operations {
		o := &l.Operations[i]
		ratio := o.HitRatio()
		if ratio == nil {
			continue
		}
		facts = append(facts, report.Fact{
			Name:  "Hits",
			Value: report.Share(*ratio),
			Detail: fmt.Sprintf("%s: %s of %s reads were answered by null, as of keys that do not exist", o.Name,
				report.Count(o.Misses), report.Count(o.OK)),
		})
	}
	if n := l.Total.Redirected; n > 0 {
		facts = append(facts, report.Fact{
			Name:   "Redirected",
			Value:  report.Count(n),
			Detail: "times a node answered MOVED or ASK, and the request was sent again to another one",
		})
	}
	return facts
}

func quantileCells(q *result.Quantiles) []report.Cell {
	if q == nil {
		return make([]report.Cell, 7)
	}
	var cells []report.Cell
	for _, v := range []result.Seconds{q.P50, q.P90, q.P95, q.P99, q.P999, q.P9999, q.Max} {
		if v == 0 && q.P50 > 0 { // an earlier version did not compute it
			cells = append(cells, report.Cell{})
			continue
		}
		cells = append(cells, report.DurationCell(time.Duration(v)))
	}
	return cells
}

// shardsShown is how many shards have a row, those with the longest gaps first.
const shardsShown = 64

// Shards is the figures of each shard; nil if there are not several.
func Shards(l *result.Load) *report.Section {
	if len(l.Shards) < 2 {
		return nil
	}
	list := slices.SortedStableFunc(slices.Values(l.Shards), func(a, b result.Shard) int {
		return cmp.Compare(b.LongestGap, a.LongestGap)
	})
	t := report.Table{
		Columns: []report.Column{
			{Title: "Shard"},
			{Title: "OK/s", Number: true},
			{Title: "Errors", Number: true},
			{Title: "Longest outage", Number: true},
		},
	}
	for _, one := range list[:min(len(list), shardsShown)] {
		t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
			{Text: strconv.Itoa(one.Shard)},
			report.RateCell(one.Throughput),
			report.CountCell(int64(one.Errors)),
			report.DurationCell(time.Duration(one.LongestGap)),
		}})
	}
	finding := report.Text("No shard was without a success for long.")
	if w := list[0]; w.LongestGap > 0 {
		finding = report.Text("").
			Strong(fmt.Sprintf("Shard %d had the longest outage, %s", w.Shard,
				report.Seconds(w.LongestGap))).
			Add("; the sum of all shards hides it while the others answer.")
	}
	return &report.Section{
		ID:      "shards",
		Title:   "Shards",
		Finding: finding,
		Tables:  []report.Table{t},
	}
}

// Search is the trials of a search for a rate; nil = there was none.
func Search(search *result.Search) *report.Section {
	if search == nil {
		return nil
	}
	sec := &report.Section{
		ID:      "search",
		Title:   "The search for a rate",
		Finding: report.Text(search.Message),
	}
	if search.Rate > 0 {
		sec.Finding = report.Text("").
			Strong(report.Rate(search.Rate) + " is the highest rate that met the objectives").
			Add(". " + report.Sentence(search.Message))
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Trial"},
			{Title: "Requests/s", Number: true},
			{Title: "OK/s", Number: true},
			{Title: "p99", Number: true},
			{Title: "Errors", Number: true},
			{Title: "Objectives"},
		},
	}
	for i, one := range search.Trials {
		verdict := report.Cell{Text: "met", Judged: report.Met}
		if !one.Met {
			verdict = report.Cell{Text: strings.TrimSpace("missed " + one.Missed), Judged: report.Missed}
		}
		cells := []report.Cell{
			{Text: strconv.Itoa(i + 1)},
			report.RateCell(one.Rate),
			report.RateCell(one.Throughput),
			{},
			{Text: report.Share(one.ErrorRate)},
			verdict,
		}
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
