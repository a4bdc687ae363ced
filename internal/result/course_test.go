package result

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// halted is a record of 25 s with 10 successes per second of two operations, and 10 failures of each in the seconds 12
// and 13.
func halted(t *testing.T) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"set", "get"}, 1)
	s.SetReadOnly([]bool{false, true})
	const second = int64(time.Second)
	for i := range int64(25) {
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 2), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
		}
		var latency histogram.Histogram
		latency.RecordN(int64(time.Millisecond), 10)
		for k := range iv.Ops {
			if i == 12 || i == 13 {
				iv.Ops[k].Fail, iv.FirstError, iv.LastError = 10, i*second, i*second+1
				continue
			}
			iv.Ops[k].OK, iv.Ops[k].Latency, iv.FirstOK, iv.LastOK = 10, latency.AppendTo(nil), i*second, (i+1)*second
		}
		if i == 14 {
			iv.Gaps = []record.Gap{{From: 12 * second, To: 14 * second}}
		}
		if i == 20 {
			iv.PartGaps = []record.PartGap{
				{Part: record.OpPart(0), Gap: record.Gap{From: 17 * second, To: 20 * second}},
				{Part: record.Writes, Gap: record.Gap{From: 17 * second, To: 20 * second}},
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

func course(t *testing.T, every time.Duration, operation string, faults ...Mark) *Course {
	t.Helper()
	c, err := NewCourse(halted(t), every, operation, faults)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRowsOfACourse(t *testing.T) {
	s := func(n int) Seconds { return Seconds(n) * Seconds(time.Second) }
	recovered := s(15)
	c := course(t, 10*time.Second, "", Mark{Name: "kill", At: s(11), Until: &recovered}, Mark{Name: "late", At: s(24)})
	type row struct {
		At, Until          Seconds
		Name               string
		OK, Errors         uint64
		Throughput         float64
		WithLatency, InGap bool
		Faults             string
	}
	var got []row
	for i := range c.Rows {
		r := &c.Rows[i]
		got = append(got, row{
			r.At, r.Until, r.Name, r.OK, r.Errors(), r.Throughput, r.Latency != nil, r.Silent > 0,
			strings.Join(r.Faults, " "),
		})
	}
	want := []row{
		{0, s(10), "all", 200, 0, 20, true, false, ""},
		{s(10), s(20), "all", 160, 40, 16, true, true, "kill"},
		{s(20), s(25), "all", 100, 0, 20, true, false, "late"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(c.Gaps) != 1 || c.Gaps[0].Length != s(2) || c.Rows[1].Silent != s(2) || c.Gaps[0].AtLeast > c.Gaps[0].Length ||
		c.Gaps[0].AtMost < c.Gaps[0].Length {
		t.Errorf("gaps %+v, %v of them in the second row", c.Gaps, c.Rows[1].Silent)
	}
}

func TestCourseOfAnOperation(t *testing.T) {
	c := course(t, 25*time.Second, "get")
	if r := c.Rows; len(r) != 1 || r[0].Name != "get" || r[0].OK != 230 || r[0].Errors() != 20 {
		t.Errorf("rows %+v", r)
	}
	for operation, gap := range map[string]Seconds{"get": 0, "set": Seconds(3 * time.Second)} {
		c := course(t, 25*time.Second, operation)
		if r := c.Rows[0]; r.Silent != gap || len(c.Selected()) != int(gap/Seconds(3*time.Second)) ||
			c.Operation != operation {
			t.Errorf("%s: %v of the row in the gaps %+v, want %v", operation, r.Silent, c.Selected(), gap)
		}
	}
	if hidden := c.Hidden(c.WriteGaps); len(hidden) != 1 || hidden[0].At != Seconds(17*time.Second) ||
		len(c.Hidden(c.ReadGaps)) != 0 {
		t.Errorf("hidden gaps of writes %+v, of reads %+v", hidden, c.ReadGaps)
	}
	if _, err := NewCourse(halted(t), time.Second, "del", nil); err == nil ||
		err.Error() != `the run has no operation "del", it has ["set" "get"]` {
		t.Error(err)
	}
}

// Rows are whole steps of the record.
func TestCourseInStepsOfTheRecord(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{
		1:                       time.Second,
		1500 * time.Millisecond: 2 * time.Second,
		5 * time.Second:         5 * time.Second,
	} {
		if c := course(t, every, ""); time.Duration(c.Every) != want || c.Step != Seconds(time.Second) ||
			len(c.Rows) != int((25*time.Second+want-1)/want) {
			t.Errorf("rows of %v: %v, %d rows", every, c.Every, len(c.Rows))
		}
	}
}

func TestCourseOfNothing(t *testing.T) {
	c, err := NewCourse(merged.New("run", time.Unix(0, 0), time.Second, []string{"set"}, 1), time.Second, "", nil)
	if err != nil || len(c.Rows) != 0 || c.Rows == nil {
		t.Errorf("%+v, %v; want an empty list of rows", c, err)
	}
}
