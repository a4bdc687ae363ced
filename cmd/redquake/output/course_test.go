package output

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/golden"
)

// killed is the course of a run with a fault from which the load recovered, one that had no effect, and a row without
// any success.
func killed() *result.Course {
	latency := &result.Quantiles{
		P50: ms(0.4), P90: ms(0.6), P95: ms(0.9), P99: ms(1.9), P999: ms(20), P9999: ms(30), Max: ms(31),
	}
	row := func(from, until float64, o result.Operation) result.Row {
		o.Name = "all"
		return result.Row{At: ms(from), Until: ms(until), Operation: o}
	}
	c := &result.Course{
		Version: result.CourseVersion, Run: "0b1c", Start: time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC),
		Every: ms(10_000), Step: ms(100), Latencies: ms(1000), All: []string{"set", "get"},
		Rows: []result.Row{
			row(0, 10_000, result.Operation{Requests: 20_000, OK: 20_000, Throughput: 2000, Latency: latency}),
			row(10_000, 20_000, result.Operation{
				Requests: 20_000, OK: 17_700, Failed: 300, Unknown: 1900, Dropped: 100, Throughput: 1770, ErrorRate: 0.115,
				Latency: latency,
			}),
			row(20_000, 20_100, result.Operation{Requests: 5, Failed: 5, ErrorRate: 1}),
		},
		Gaps: []result.Gap{
			{At: ms(11_500), Length: ms(1150), AtLeast: ms(1100), AtMost: ms(1160)},
			{At: ms(20_000), Length: ms(100), AtLeast: ms(100), AtMost: ms(100), Open: true},
		},
		ProbeGaps: []result.Gap{{At: ms(11_490), Length: ms(1010), AtLeast: ms(1000), AtMost: ms(1020)}},
		WriteGaps: []result.Gap{
			{At: ms(11_500), Length: ms(1155), AtLeast: ms(1105), AtMost: ms(1165)},
			{At: ms(15_000), Length: ms(800), AtLeast: ms(790), AtMost: ms(805)},
		},
		OperationGaps: []result.OperationGaps{
			{Operation: "set", Gaps: []result.Gap{{At: ms(15_000), Length: ms(800), AtLeast: ms(790), AtMost: ms(805)}}},
			{Operation: "get", Gaps: []result.Gap{}},
		},
		ShardGaps: []result.ShardGap{
			{Shard: 1, Gap: result.Gap{At: ms(11_400), Length: ms(1300), AtLeast: ms(1300), AtMost: ms(1300)}},
		},
		Faults: []result.Mark{
			{
				Name:    "kill-primary",
				Type:    "PodKill",
				At:      ms(11_000),
				Until:   new(ms(14_000)),
				Took:    &result.BoundedSeconds{Value: ms(3000), AtLeast: ms(2990), AtMost: ms(3100)},
				Verdict: "Pass",
				Outage:  &result.BoundedSeconds{Value: ms(1150), AtLeast: ms(1100), AtMost: ms(1160)},
			},
			{Name: "hang", Type: "Hang", At: ms(19_000)},
		},
		Notes: []string{"Kept more coarsely than measured: latency per 1s."},
	}
	c.Rows[1].Silent, c.Rows[1].Faults = ms(1150), []string{"kill-primary", "hang"}
	c.Rows[2].Silent, c.Rows[2].Faults = ms(100), []string{"hang"}
	return c
}

func TestCourse(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *result.Course) error{
		"course.csv": WriteCSV, "course.json": func(w io.Writer, c *result.Course) error { return WriteJSON(w, c) },
	} {
		var b bytes.Buffer
		if err := write(&b, killed()); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", name), b.String())
		if name != "course.json" {
			continue
		}
		var back result.Course
		if err := json.Unmarshal(b.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(killed(), &back); diff != "" {
			t.Errorf("JSON loses something (-written +read):\n%s", diff)
		}
	}
}
