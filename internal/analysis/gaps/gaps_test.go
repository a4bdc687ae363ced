package gaps

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
)

const ms = time.Millisecond

// What is usual comes from the intervals without an outage: in them every request took 1 ms, and in the outage 600 ms.
func TestUsualIsThatOfTheServerThatServes(t *testing.T) {
	var one, many histogram.Histogram
	one.RecordN(int64(ms), 100)
	many.RecordN(int64(600*ms), 100)
	fast, slow := one.AppendTo(nil), many.AppendTo(nil)
	outage := record.Gap{From: int64(2050 * ms), To: int64(2650 * ms)}
	build := func(steps int, always bool) *merged.Series {
		s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"set"}, 1)
		for i := range int64(steps) {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: i * int64(recorded.Step),
				LastOK: (i+1)*int64(recorded.Step) - 1, FirstError: -1, LastError: -1,
			}
			iv.Ops[0].OK, iv.Ops[0].Latency = 100, fast
			switch at := time.Duration(i) * recorded.Step; {
			case at > 2000*ms && at < 2600*ms:
				iv.Ops[0], iv.FirstOK, iv.LastOK = record.Op{}, -1, -1
			case at == 2600*ms:
				iv.Ops[0].Latency, iv.Gaps = slow, []record.Gap{outage}
			}
			if always { // a single outage, and nothing else
				iv.Gaps = []record.Gap{{From: i * int64(recorded.Step), To: (i+1)*int64(recorded.Step) - 1}}
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		return s
	}
	load := New(build(40, false), 0, 4*time.Second).Load()
	if len(load) != 1 || load[0].Length.Value != 600*ms || load[0].Length.AtMost != 600*ms ||
		load[0].Length.AtLeast < 595*ms || load[0].Length.AtLeast > 599*ms {
		t.Errorf("the gap is %+v, want 600 ms, less 1 ms, a mean time between successes or the server's backlog", load)
	}
	coarse := build(40, false)
	coarse.LatencyStep = 20 * recorded.Step // the histograms of the outage span other intervals, too
	if got := Steady(coarse, 0, 40); got.hasHistograms(20) || !got.hasHistograms(0) || got.has(20) || !got.has(30) {
		t.Error("the histograms of an outage are taken as usual")
	}
	if m := Steady(build(10, true), 0, 10); m.outage != nil {
		t.Error("a record that is one outage has no steady part: all of it must count")
	}
	pods := &Gaps{series: &merged.Series{Pods: 2, ClockUncertainty: 10 * ms}}
	if got := pods.bounded([]record.Gap{outage}, 5*ms, true); len(got) != 1 ||
		got[0].Length != (durations.Bounded{Value: 600 * ms, AtLeast: 575 * ms, AtMost: 620 * ms}) {
		t.Errorf("the gap of two pods is %+v, want 600 ms, less 5 ms, and 20 ms more or less as their clocks are", got)
	}
}
