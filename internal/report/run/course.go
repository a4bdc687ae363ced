package run

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

// Course is the course of a run as parts of a report: its rows, the faults on it, and the times without a success.
func Course(in Input, c *result.Course) *report.Document {
	in.complete()
	s := newSubject(in)
	d := s.document(report.LoadTest)
	d.Sections = []report.Section{{ID: "course", Title: "Every " + report.Seconds(c.Every), Tables: []report.Table{courseTable(c, "Since the start", 0)}}}
	if c.Operation != "" {
		d.Sections[0].Title += ", of " + c.Operation
	}
	s.faultsSection(d)
	s.add(d, s.gapsSection(c))
	d.Notes = c.Notes
	return d
}

// courseTable is the rows of a course. Time counts from zero, which is so long after the start of the load; head says from what.
func courseTable(c *result.Course, head string, zero time.Duration) report.Table {
	t := report.Table{Columns: []report.Column{{Title: head}, {Title: "UTC", Number: true}, {Title: "OK/s", Number: true}, {Title: "Errors", Number: true}, {Title: "Share", Number: true, Wide: true},
		{Title: "p50", Number: true}, {Title: "p99", Number: true}, {Title: "Max", Number: true}, {Title: "No success", Number: true, Wide: true}, {Title: "Faults", Wide: true}}}
	decimals := 1
	if time.Duration(c.Every)%(100*time.Millisecond) != 0 {
		decimals = 3
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		since := strconv.FormatFloat((time.Duration(r.At) - zero).Seconds(), 'f', decimals, 64)
		cells := []report.Cell{{Text: strings.Replace(since, "-", "−", 1) + " s"}, {Text: c.Start.Add(time.Duration(r.At)).UTC().Format("15:04:05")}, report.RateCell(r.Throughput), report.CountCell(int64(r.Errors())),
			{}, {}, {}, {}, {}, {Text: strings.Join(r.Faults, " ")}}
		if r.Requests > 0 {
			cells[4].Text = report.Share(r.ErrorRate)
		}
		if q := r.Latency; q != nil {
			cells[5].Text, cells[6].Text, cells[7].Text = report.Seconds(q.P50), report.Seconds(q.P99), report.Seconds(q.Max)
		}
		if longest := c.LongestIn(r); longest > 0 {
			cells[8].Text = report.Seconds(longest)
		}
		t.Rows = append(t.Rows, report.Row{Cells: cells})
	}
	return t.WithoutEmptyColumns()
}

// gapsListed is how many times without a success of each kind have a row: JSON has all.
const gapsListed = 10

// gapsSection lists the longest times without a success: of one operation, or of the load, of reads and writes where theirs are longer, of the probe and of shards.
func (s *subject) gapsSection(c *result.Course) *report.Section {
	t := report.Table{Columns: []report.Column{{Title: "No success of"}, {Title: "At", Number: true}, {Title: "For", Number: true}, {Title: "Until"}}}
	if c.Operation != "" {
		s.addGaps(&t, c.Operation, c.Selected())
	} else {
		s.addGaps(&t, "the load", c.Gaps)
		s.addGaps(&t, "writes", c.Hidden(c.WriteGaps))
		s.addGaps(&t, "reads", c.Hidden(c.ReadGaps))
	}
	s.addGaps(&t, "new clients", c.ProbeGaps)
	shards := map[int][]result.Gap{}
	for _, g := range c.ShardGaps {
		shards[g.Shard] = append(shards[g.Shard], g.Gap)
	}
	for shard := range slices.Max(append(slices.Collect(maps.Keys(shards)), -1)) + 1 {
		s.addGaps(&t, fmt.Sprintf("shard %d", shard), shards[shard])
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &report.Section{ID: "gaps", Title: "Times without a success", Tables: []report.Table{t.WithoutEmptyColumns()}}
}

// addGaps adds the longest gaps of whom, without those that may be none.
func (s *subject) addGaps(t *report.Table, whom string, all []result.Gap) {
	gaps := slices.DeleteFunc(slices.Clone(all), func(g result.Gap) bool { return g.AtLeast <= 0 })
	slices.SortStableFunc(gaps, func(a, b result.Gap) int { return cmp.Compare(b.Length, a.Length) })
	for i := range gaps[:min(len(gaps), gapsListed)] {
		g := s.known(&result.ShardGap{Gap: gaps[i]})
		length := report.Figure{Unit: result.UnitSeconds}
		setBounds(&length, g.Length.Seconds(), g.AtLeast.Seconds(), g.AtMost.Seconds())
		row := []report.Cell{{Text: whom}, {Text: report.Since(time.Duration(g.At))}, {Text: length.String(), Value: length.Value, Unit: length.Unit}, {}}
		if g.Open {
			row[3].Text = "the end of the run"
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
	}
	if more := len(gaps) - gapsListed; more > 0 {
		t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{{Text: whom}, {}, {Text: "at most " + report.Seconds(gaps[gapsListed].Length)}, {Text: fmt.Sprintf("%s more", report.Count(more))}}})
	}
}
