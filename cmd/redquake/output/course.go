// Package output writes results for programs, as JSON and CSV, what has no report as text, such as
// comparisons and the checks of a cluster, and the files of
// --record and --report.
package output

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// WriteCSV writes the rows of a course with a header. The column faults holds names, separated by
// spaces.
func WriteCSV(w io.Writer, c *result.Course) error {
	rows := [][]string{
		{
			"atSeconds", "untilSeconds", "operation", "requests", "ok", "failed", "unknown", "dropped",
			"throughputPerSecond", "errorRate",
			"p50Seconds", "p90Seconds", "p99Seconds", "p999Seconds", "maxSeconds", "gapSeconds", "faults",
			"drained",
		},
	}
	for i := range c.Rows {
		rows = append(rows, csvRow(&c.Rows[i]))
	}
	return report.WriteRows(w, rows)
}

func csvRow(r *result.Row) []string {
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	decimal := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	length := func(s result.Seconds) string { return decimal(float64(s) / float64(time.Second)) }
	row := []string{
		length(r.At), length(r.Until), r.Name, count(r.Requests), count(r.OK),
		count(r.Failed), count(r.Unknown), count(r.Dropped),
		decimal(r.Throughput), decimal(r.ErrorRate),
	}
	if q := r.Latency; q != nil {
		row = append(row, length(q.P50), length(q.P90), length(q.P99), length(q.P999), length(q.Max))
	} else {
		row = append(row, "", "", "", "", "")
	}
	return append(row, length(r.Silent), strings.Join(r.Faults, " "), count(r.Drained))
}
