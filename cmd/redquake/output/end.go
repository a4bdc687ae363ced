// Package output writes results for programs, as JSON and CSV, what has no report as text, such as
// comparisons and the checks of a cluster, and the files of
// --record and --report.
package output

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
)

// WriteEnds writes how objects have ended: the short report of each, by its status as it was last
// seen. shown are those that were shown with them, too.
func WriteEnds(out io.Writer, objects, shown []*kube.Object) error {
	for i, o := range objects {
		d, err := EndOf(o, shown)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := report.WriteText(out, run.Short(d)); err != nil {
			return err
		}
	}
	return nil
}

// EndOf makes the report of an object that was shown, with the faults of a load, or the load of a
// fault, if they were shown, too.
func EndOf(o *kube.Object, shown []*kube.Object) (*report.Document, error) {
	switch o.Kind {
	case kube.LoadTest:
		in := subject.Input{Test: o.Test}
		for _, other := range shown {
			if other.Kind == kube.Fault {
				in.Faults = append(in.Faults, *other.Fault)
			}
		}
		return run.LoadTest(in), nil
	case kube.Fault:
		in := subject.Input{Faults: []v1alpha1.RedisFault{*o.Fault}}
		if i := slices.IndexFunc(shown, func(other *kube.Object) bool {
			return other.Kind == kube.LoadTest && other.Test.Name == o.Fault.Status.LoadTest
		}); i >= 0 {
			in.Test = shown[i].Test
		}
		return run.Fault(in, o.Fault.Name)
	}
	return matrix.Status(o.Experiment), nil
}

// WriteCSV writes the rows of a course with a header. The column faults holds names, separated by
// spaces.
func WriteCSV(w io.Writer, c *result.Course) error {
	rows := [][]string{
		{
			"atSeconds", "untilSeconds", "operation", "requests", "ok", "failed", "unknown", "dropped",
			"throughputPerSecond", "errorRate",
			"p50Seconds", "p90Seconds", "p99Seconds", "p999Seconds", "maxSeconds", "gapSeconds", "faults",
			"drained", "p95Seconds", "p9999Seconds",
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
	tail := []string{count(r.Drained), "", ""}
	if q := r.Latency; q != nil {
		row = append(row, length(q.P50), length(q.P90), length(q.P99), length(q.P999), length(q.Max))
		tail[1], tail[2] = length(q.P95), length(q.P9999)
	} else {
		row = append(row, "", "", "", "", "")
	}
	return slices.Concat(row, []string{length(r.Silent), strings.Join(r.Faults, " ")}, tail)
}
