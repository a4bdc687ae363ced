package output

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/result"
)

// killed is the course of a run with a fault from which the load recovered, one that had no effect, and a row without any success.
func killed() *result.Course {
	latency := &result.Quantiles{P50: ms(0.4), P90: ms(0.6), P99: ms(1.9), P999: ms(20), Max: ms(31)}
	row := func(from, until float64, o result.Operation) result.Row {
		o.Name = "all"
		return result.Row{At: ms(from), Until: ms(until), Operation: o}
	}
	c := &result.Course{
		Version: result.CourseVersion, Run: "0b1c", Start: time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC),
		Every: ms(10_000), Step: ms(100), Latencies: ms(1000), All: []string{"set", "get"},
		Rows: []result.Row{
			row(0, 10_000, result.Operation{Requests: 20_000, OK: 20_000, Throughput: 2000, Latency: latency}),
			row(10_000, 20_000, result.Operation{Requests: 20_000, OK: 17_700, Failed: 300, Unknown: 1900, Dropped: 100, Throughput: 1770, ErrorRate: 0.115, Latency: latency}),
			row(20_000, 20_100, result.Operation{Requests: 5, Failed: 5, ErrorRate: 1}),
		},
		Gaps:      []result.Gap{{At: ms(11_500), Length: ms(1150), AtLeast: ms(1100), AtMost: ms(1160)}, {At: ms(20_000), Length: ms(100), AtLeast: ms(100), AtMost: ms(100), Open: true}},
		ProbeGaps: []result.Gap{{At: ms(11_490), Length: ms(1010), AtLeast: ms(1000), AtMost: ms(1020)}},
		WriteGaps: []result.Gap{{At: ms(11_500), Length: ms(1155), AtLeast: ms(1105), AtMost: ms(1165)}, {At: ms(15_000), Length: ms(800), AtLeast: ms(790), AtMost: ms(805)}},
		OperationGaps: []result.OperationGaps{
			{Operation: "set", Gaps: []result.Gap{{At: ms(15_000), Length: ms(800), AtLeast: ms(790), AtMost: ms(805)}}}, {Operation: "get", Gaps: []result.Gap{}},
		},
		ShardGaps: []result.ShardGap{{Shard: 1, Gap: result.Gap{At: ms(11_400), Length: ms(1300), AtLeast: ms(1300), AtMost: ms(1300)}}},
		Faults: []result.Mark{
			{Name: "kill-primary", Type: "PodKill", At: ms(11_000), Until: new(ms(14_000)), Took: &result.BoundedSeconds{Value: ms(3000), AtLeast: ms(2990), AtMost: ms(3100)}, Verdict: "Pass", Outage: &result.BoundedSeconds{Value: ms(1150), AtLeast: ms(1100), AtMost: ms(1160)}},
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
		"course.txt": WriteCourse, "course.csv": WriteCSV, "course.json": func(w io.Writer, c *result.Course) error { return WriteJSON(w, c) },
	} {
		var b bytes.Buffer
		if err := write(&b, killed()); err != nil {
			t.Fatal(err)
		}
		isGolden(t, name, b.Bytes())
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

// The gaps of the selected operation replace those of the load.
func TestCourseOfAnOperation(t *testing.T) {
	for operation, want := range map[string]string{"set": "\nGap         800ms ±10ms at 15s: without a success of set\n", "get": "recovery was seen\nProbe gap "} {
		var b bytes.Buffer
		c := killed()
		c.Operation = operation
		if err := WriteCourse(&b, c); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); !strings.Contains(out, want) || strings.Contains(out, "Write gap") {
			t.Errorf("%s: %q is not in, or gaps of writes are in\n%s", operation, want, out)
		}
	}
}

// Of many gaps the longest are listed, those that may be none are left out, and a row has the longest of its gaps, not their sum: a load of 500/s has one between
// any two successes.
func TestCourseListsTheLongestGaps(t *testing.T) {
	c := killed()
	c.Gaps = nil
	for i := range 900 {
		c.Gaps = append(c.Gaps, result.Gap{At: ms(float64(i) * 10), Length: ms(6 + float64(i)/100), AtLeast: ms(5), AtMost: ms(16)})
	}
	c.Gaps = append(c.Gaps, result.Gap{At: ms(9_200), Length: ms(300), AtMost: ms(600)}, // perhaps none
		result.Gap{At: ms(9_990), Length: ms(1150), AtLeast: ms(1100), AtMost: ms(1160)}, result.Gap{At: ms(12_000), Length: ms(818), AtLeast: ms(800), AtMost: ms(820)})
	c.Rows[2].Operation = result.Operation{Name: "all"} // nothing was sent
	var b bytes.Buffer
	if err := WriteCourse(&b, c); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	first, _, _ := strings.Cut(out[strings.Index(out, "\nGap ")+1:], "\nWrite gap")
	lines := strings.Split(first, "\n")
	if len(lines) != gapsListed+1 || !strings.Contains(lines[0], "1.15s ±50ms at 9.99s") || !strings.Contains(lines[1], "818ms") || !strings.Contains(lines[2], "5ms-16ms at 8.99s") ||
		lines[gapsListed] != "Gap         892 more, none of them longer than 14.9ms" {
		t.Errorf("the gaps are\n%s", first)
	}
	for i, want := range []string{"0s    2000       0         0%  0.4ms  1.9ms        15ms", "10s   1770    2300      11.5%  0.4ms  1.9ms       1.14s", "20s      0       0          -      -      -           -"} {
		if row := strings.Split(out, "\n")[i+1]; !strings.HasPrefix(row, want) {
			t.Errorf("row %d is %q, want %q", i, row, want)
		}
	}
}
