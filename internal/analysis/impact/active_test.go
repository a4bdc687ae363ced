package impact

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// A setting is held for 20 s: every second request comes, and in the last half second none succeeds. What it costs is
// not its recovery.
func TestTruthHeldSettingHasItsOwnFigures(t *testing.T) {
	s := recorded.Load{
		Rate:    1000,
		Length:  90 * time.Second,
		Slow:    []summary.Window{seconds(40, 60)},
		Failing: []summary.Window{seconds(59.5, 60)},
	}.Record(t)
	s.Finish(0)
	fault := Fault{
		At:       40 * time.Second,
		SeenAt:   60 * time.Second,
		Deadline: 40 * time.Second,
		Active:   seconds(40.02, 60.04),
	}
	m := Analyze(s, fault, Options{})
	w := m.WhileActive
	if w == nil {
		t.Fatal("there are no figures")
	}
	// In [40.1, 60): half the requests over 19.9 s, of which those of the last 0.5 s fail.
	truth.Report(t, "whileActive", "every second request for 20 s, those of the last 0.5 s fail",
		"487.4/s, -51.3 %, p50 +0 %, errors 2.5 %",
		fmt.Sprintf("%.1f/s, %.1f %%, p50 %+.0f %%, errors %.1f %%", w.Throughput, 100*w.Change, 100*w.LatencyP50Change,
			100*w.ErrorRate),
		w.Length == 19900*ms && near(w.Throughput, 487.4, 0.1) && near(w.Change, -0.513, 0.001) && w.LatencyP50Change == 0 &&
			w.LatencyP99Change == 0 &&
			near(w.ErrorRate, 0.0251, 0.0002) && w.ErrorRateChange == w.ErrorRate)

	for name, active := range map[string]summary.Window{
		"never":                 {},
		"between two intervals": seconds(40.02, 40.15),
		"after the record":      seconds(95, 99),
	} {
		fault.Active = active
		if m := Analyze(s, fault, Options{}); m.WhileActive != nil {
			t.Errorf("%s: %+v", name, m.WhileActive)
		}
	}
	silent := recorded.Load{Rate: 1000, Length: 90 * time.Second, Down: []summary.Window{seconds(0, 90)}}.Record(t)
	fault.Active = seconds(40, 60)
	if w := Analyze(silent, fault, Options{}).WhileActive; w == nil || !math.IsNaN(w.Change) ||
		!math.IsNaN(w.LatencyP99Change) || w.Throughput != 0 {
		t.Errorf("without a load %+v", w)
	}
}

// A setting is held while the plan halves the load, and costs nothing; one request of a second fails before as well as
// meanwhile.
func TestTruthHeldSettingIsComparedWithThePlan(t *testing.T) {
	failing := []summary.Window{seconds(10, 10.1), seconds(45, 45.05)}
	s := recorded.Load{
		Rate:    1000,
		Length:  90 * time.Second,
		Slow:    []summary.Window{seconds(45, 90)},
		Failing: failing,
	}.Record(t)
	s.Finish(0)
	fault := Fault{At: 40 * time.Second, SeenAt: 60 * time.Second, Active: seconds(40, 60)}
	w := Analyze(s, fault, Options{Planned: recorded.Halved(45*time.Second, true, 0)}).WhileActive
	truth.Report(t, "whileActive",
		"held for 20 s, after 5 s the plan halves; 100 of 30000 requests fail before, 25 of 12500 meanwhile",
		"change -0.2 %, errors -0.13 %",
		fmt.Sprintf("change %.1f %%, errors %+.2f %%", 100*w.Change, 100*w.ErrorRateChange),
		near(w.Change, -0.002, 0.0005) && near(w.ErrorRateChange, 0.002-100.0/30000, 0.0001))
}

// What a load generator that waits for a CPU adds to latencies is no change: here it waits for a tenth of the time from
// the fault on, or before it.
func TestHeldSettingBesideWaits(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after float64 // shares of the time
		truth         float64
		bounded       bool
	}{
		{"waits for neither", 0, 0, 0, false},
		{"waits from the fault on", 0, 0.1, 0, true},
		{"waits before it", 0.1, 0, 0, true},
		{"waits for as long", 0.1, 0.101, 0, false},
	} {
		s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
		waited := 0.0
		for i := range int64(600) {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: i * int64(recorded.Step),
				LastOK: (i+1)*int64(recorded.Step) - 1, FirstError: -1, LastError: -1,
			}
			share := c.before
			if i >= 300 {
				share = c.after
			}
			waited += share * recorded.Step.Seconds()
			var service, latency histogram.Histogram
			service.RecordN(int64(300*time.Microsecond), 100)
			latency.RecordN(int64(300*time.Microsecond), 97)
			if share > 0 {
				latency.RecordN(int64(8*ms), 3)
			} else {
				latency.RecordN(int64(300*time.Microsecond), 3)
			}
			iv.Ops[0] = record.Op{
				Counts:  record.Counts{Sent: 100, OK: 100},
				Latency: latency.AppendTo(nil),
				Service: service.AppendTo(nil),
			}
			at := (i + 1) * int64(recorded.Step)
			iv.Agents = []record.AgentUse{
				{At: at, BusyThreads: 1, CPUSeconds: 0.1 * time.Duration(at).Seconds(), WaitedSeconds: waited},
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		w := Analyze(s, Fault{At: 30 * time.Second, SeenAt: 50 * time.Second, Active: seconds(30, 50)}, Options{}).WhileActive
		b := w.P99Bounds
		if (b != nil) != c.bounded || b == nil && w.LatencyP99Change != c.truth ||
			b != nil && (b.AtLeast > c.truth || b.AtMost < c.truth || w.LatencyP99Change > b.AtMost ||
				w.LatencyP99Change < b.AtLeast) {
			t.Errorf("%s: the p99 changes by %v, bounds %+v, want %v", c.name, w.LatencyP99Change, b, c.truth)
		}
		if w.P50Bounds != nil { // of which half of the requests must be late
			t.Errorf("%s: the bounds of the p50 are %+v", c.name, w.P50Bounds)
		}
	}
}
