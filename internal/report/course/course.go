// Package course shows the course of a run: its rows, and the times without a success.
package course

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Table is the rows of a course. Time counts from zero, which is so long after the start of the
// load; head says from what.
func Table(c *result.Course, head string, zero time.Duration) report.Table {
	t := report.Table{
		Columns: []report.Column{
			{Title: head},
			{Title: "UTC", Number: true},
			{Title: "OK/s", Number: true},
			{Title: "Errors", Number: true},
			{Title: "Share", Number: true, Wide: true},
			{Title: "p50", Number: true},
			{Title: "p99", Number: true},
			{Title: "Max", Number: true},
			{Title: "No success", Number: true, Wide: true},
			{Title: "Faults", Wide: true},
		},
	}
	decimals := 1
	if time.Duration(c.Every)%(100*time.Millisecond) != 0 {
		decimals = 3
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		since := strconv.FormatFloat((time.Duration(r.At) - zero).Seconds(), 'f', decimals, 64)
		cells := []report.Cell{
			{Text: strings.Replace(since, "-", "−", 1) + " s"},
			{Text: c.Start.Add(time.Duration(r.At)).UTC().Format("15:04:05")},
			report.RateCell(r.Throughput),
			report.CountCell(int64(r.Errors())),
			{},
			{},
			{},
			{},
			{},
			{Text: strings.Join(r.Faults, " ")},
		}
		if r.Requests > 0 {
			cells[4].Text = report.Share(r.ErrorRate)
		}
		if q := r.Latency; q != nil {
			cells[5].Text, cells[6].Text, cells[7].Text = report.Seconds(q.P50), report.Seconds(q.P99),
				report.Seconds(q.Max)
		}
		if longest := c.LongestIn(r); longest > 0 {
			cells[8].Text = report.Seconds(longest)
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t.WithoutEmptyColumns()
}

// Listed is how many times without a success of each kind have a row: JSON has all.
const Listed = 10

// Gaps lists the longest times without a success: of one operation, or of the load, of reads and
// writes where theirs are longer, of the probe and of shards. known returns a gap as exactly as it
// is known. nil = there was none.
func Gaps(c *result.Course, known func(*result.ShardGap) *result.ShardGap) *report.Section {
	t := report.Table{
		Columns: []report.Column{
			{Title: "No success of"},
			{Title: "At", Number: true},
			{Title: "For", Number: true},
			{Title: "Until"},
		},
	}
	if c.Operation != "" {
		addGaps(&t, c.Operation, c.Selected(), known)
	} else {
		addGaps(&t, "the load", c.Gaps, known)
		addGaps(&t, "writes", c.Hidden(c.WriteGaps), known)
		addGaps(&t, "reads", c.Hidden(c.ReadGaps), known)
	}
	addGaps(&t, "new clients", c.ProbeGaps, known)
	shards := map[int][]result.Gap{}
	for _, g := range c.ShardGaps {
		shards[g.Shard] = append(shards[g.Shard], g.Gap)
	}
	for shard := range slices.Max(append(slices.Collect(maps.Keys(shards)), -1)) + 1 {
		addGaps(&t, fmt.Sprintf("shard %d", shard), shards[shard], known)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &report.Section{
		ID:     "gaps",
		Title:  "Times without a success",
		Tables: []report.Table{t.WithoutEmptyColumns()},
	}
}

// addGaps adds the longest gaps of whom, without those that may be none.
func addGaps(
	t *report.Table, whom string, all []result.Gap, known func(*result.ShardGap) *result.ShardGap,
) {
	gaps := slices.DeleteFunc(slices.Clone(all), func(g result.Gap) bool { return g.AtLeast <= 0 })
	slices.SortStableFunc(gaps, func(a, b result.Gap) int { return cmp.Compare(b.Length, a.Length) })
	for i := range gaps[:min(len(gaps), Listed)] {
		g := known(&result.ShardGap{Gap: gaps[i]})
		length := report.Figure{
			Unit:    result.UnitSeconds,
			Value:   new(g.Length.Seconds()),
			AtLeast: new(g.AtLeast.Seconds()),
			AtMost:  new(g.AtMost.Seconds()),
		}
		row := []report.Cell{
			{Text: whom},
			{Text: report.Since(time.Duration(g.At))},
			{Text: length.String(), Value: length.Value, Unit: length.Unit},
			{},
		}
		if g.Open {
			row[3].Text = "the end of the run"
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
	}
	if more := len(gaps) - Listed; more > 0 {
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: whom},
				{},
				{Text: "at most " + report.Seconds(gaps[Listed].Length)},
				{Text: fmt.Sprintf("%s more", report.Count(more))},
			},
		})
	}
}
