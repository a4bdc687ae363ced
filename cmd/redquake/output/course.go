package output

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// WriteCourse writes the course of a run as a table, and below it the faults, the gaps and the notes.
func WriteCourse(w io.Writer, c *result.Course) error {
	var b strings.Builder
	var t table
	t.row("TIME", "OK/S", "ERRORS", "ERRORS(%)", "P50", "P99", "NO SUCCESS", "FAULTS")
	for i := range c.Rows {
		r := &c.Rows[i]
		p50, p99, silent, share := "-", "-", "-", "-"
		if r.Latency != nil {
			p50, p99 = seconds(r.Latency.P50), seconds(r.Latency.P99)
		}
		if longest := c.LongestIn(r); longest > 0 {
			silent = seconds(longest)
		}
		if r.Requests > 0 {
			share = format.Share(r.ErrorRate)
		}
		t.row(seconds(r.At), format.Rate(r.Throughput), strconv.FormatUint(r.Errors(), 10), share, p50, p99, silent, strings.Join(r.Faults, " "))
	}
	t.dropEmpty("NO SUCCESS", "FAULTS")
	b.WriteString(t.String())
	if below := belowRows(c); below != "" {
		b.WriteString("\n" + below)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the course: %w", err)
	}
	return nil
}

func belowRows(c *result.Course) string {
	var b strings.Builder
	for _, f := range c.Faults {
		parts := []string{f.Type, "at " + seconds(f.At)}
		if f.Outage != nil {
			parts = append(parts, "outage "+bounded(f.Outage.Value, f.Outage.AtLeast, f.Outage.AtMost))
		}
		if f.Took != nil {
			parts = append(parts, "recovered after "+bounded(f.Took.Value, f.Took.AtLeast, f.Took.AtMost))
		} else {
			parts = append(parts, "no recovery was seen")
		}
		if f.Verdict != "" {
			parts = append(parts, f.Verdict)
		}
		line(&b, "Fault", "%s: %s", f.Name, strings.Join(parts, ", "))
	}
	if c.Operation != "" {
		listGaps(&b, "Gap", "without a success of "+c.Operation, c.Selected())
	} else {
		listGaps(&b, "Gap", "without a success", c.Gaps)
		listGaps(&b, "Write gap", "without a success of a write", c.Hidden(c.WriteGaps))
		listGaps(&b, "Read gap", "without a success of a read", c.Hidden(c.ReadGaps))
	}
	listGaps(&b, "Probe gap", "without a success of the probe", c.ProbeGaps)
	var shards []result.Gap
	for _, g := range c.ShardGaps {
		shards = append(shards, g.Gap)
	}
	listGaps(&b, "Shard gap", "without a success at one shard", shards)
	for _, note := range c.Notes {
		line(&b, "Note", "%s", note)
	}
	return b.String()
}

// gapsListed is the number of gaps in the table of each kind; JSON contains all.
const gapsListed = 10

// listGaps lists the longest gaps, without those that may be none.
func listGaps(b *strings.Builder, name, what string, all []result.Gap) {
	gaps := slices.DeleteFunc(slices.Clone(all), func(g result.Gap) bool { return g.AtLeast <= 0 })
	slices.SortStableFunc(gaps, func(a, b result.Gap) int { return cmp.Compare(b.Length, a.Length) })
	for _, g := range gaps[:min(len(gaps), gapsListed)] {
		line(b, name, "%s", gap(&g, what))
	}
	if more := len(gaps) - gapsListed; more > 0 {
		line(b, name, "%d more, none of them longer than %s", more, seconds(gaps[gapsListed].Length))
	}
}

// WriteCSV writes the rows of a course with a header. The column faults holds names, separated by spaces.
func WriteCSV(w io.Writer, c *result.Course) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"atSeconds", "untilSeconds", "operation", "requests", "ok", "failed", "unknown", "dropped", "throughputPerSecond", "errorRate",
		"p50Seconds", "p90Seconds", "p99Seconds", "p999Seconds", "maxSeconds", "gapSeconds", "faults", "drained"}}
	for i := range c.Rows {
		rows = append(rows, csvRow(&c.Rows[i]))
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write the course: %w", err)
	}
	return nil
}

func csvRow(r *result.Row) []string {
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	decimal := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	length := func(s result.Seconds) string { return decimal(float64(s) / float64(time.Second)) }
	row := []string{length(r.At), length(r.Until), r.Name, count(r.Requests), count(r.OK), count(r.Failed), count(r.Unknown), count(r.Dropped),
		decimal(r.Throughput), decimal(r.ErrorRate)}
	if q := r.Latency; q != nil {
		row = append(row, length(q.P50), length(q.P90), length(q.P99), length(q.P999), length(q.Max))
	} else {
		row = append(row, "", "", "", "", "")
	}
	return append(row, length(r.Silent), strings.Join(r.Faults, " "), count(r.Drained))
}
