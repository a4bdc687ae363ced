package impact

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/recorded"
	"github.com/redquake/redquake/internal/testing/truth"
)

// TestOutageAfterAStall: the load generator did not run from 270 ms before the fault on, so that the last success is
// long before it. The silence is the fault's all the same: nobody asked before. If somebody did, it may have been there
// before, and nothing of it is certain.
func TestOutageAfterAStall(t *testing.T) {
	const fault, stall, down = 30 * time.Second, 270 * ms, 1450 * ms
	l := recorded.Load{
		Rate:   1000,
		Length: 60 * time.Second,
		Down:   []summary.Window{{From: fault - stall, To: fault + down}},
	}
	for _, tt := range []struct {
		name     string
		unproven time.Duration // of the gap's head
		certain  bool
	}{
		{"nothing was sent in the stall", stall + 10*ms, true},
		{"requests waited before the fault", 20 * ms, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
			for _, iv := range l.Intervals(0, 1) {
				for i := range iv.Gaps {
					iv.Gaps[i].UnprovenHead = int64(tt.unproven)
				}
				if err := s.Add(0, iv); err != nil {
					t.Fatal(err)
				}
			}
			m := Analyze(s, Fault{At: fault}, Options{})
			if o := m.Outage; o.AtLeast > down || down > o.AtMost || (o.Value-down).Abs() > 2*ms ||
				(o.AtLeast > 0) != tt.certain {
				t.Errorf("the outage is %v, want %v, certain: %v", o, down, tt.certain)
			}
			if doubted := slices.ContainsFunc(m.Doubts, func(d Doubt) bool {
				return d.Reason == DownBefore
			}); doubted == tt.certain {
				t.Errorf("doubts %v", m.Doubts)
			}
		})
	}
}

// TestStallInTheShorterGap: of two gaps the shorter one may have been longer, as the load generator did not run before
// it. The doubt names this stall.
func TestStallInTheShorterGap(t *testing.T) {
	const fault = 30 * time.Second
	l := recorded.Load{
		Rate:   1000,
		Length: 60 * time.Second,
		Down:   []summary.Window{{From: fault, To: fault + time.Second}, {From: fault + 2*time.Second, To: fault + 2900*ms}},
	}
	s := merged.New("run", time.Unix(0, 0), recorded.Step, []string{"get"}, 1)
	for _, iv := range l.Intervals(0, 1) {
		for i, g := range iv.Gaps {
			if time.Duration(g.From) > fault+time.Second {
				iv.Gaps[i].MaybeBefore, iv.Gaps[i].UnprovenHead = int64(600*ms), int64(10*ms)
				iv.Stalls = []record.Stall{{From: g.From - int64(600*ms), To: g.From}}
			}
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	m := Analyze(s, Fault{At: fault}, Options{})
	if m.Outage.AtMost < 1400*ms ||
		!slices.ContainsFunc(m.Doubts, func(d Doubt) bool { return d.Reason == GeneratorStalled }) {
		t.Errorf("outage %v, doubts %v", m.Outage, m.Doubts)
	}
}

// Redis serves again after 500 ms, and then the load generator does not run for a quarter of each second: that the load
// did not recover may be its own doing.
func TestTruthStallsAfterTheOutage(t *testing.T) {
	const at = 40 * time.Second
	var stalled []summary.Window
	for from := at + 2*time.Second; from < 80*time.Second; from += time.Second {
		stalled = append(stalled, summary.Window{From: from, To: from + 250*ms})
	}
	l := recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{{From: at, To: at + 500*ms}}}
	m := Analyze(l.WithStalls(t, stalled...), Fault{At: at, Deadline: 10 * time.Second}, Options{})
	truth.Report(t, "V4",
		"Redis stopped for 500 ms; from 2 s on the generator is stopped for 250 ms in each second: recovery",
		"not known, 0.5 s or more; outage 501 ms",
		fmt.Sprintf("recovered %v, %v, outage %v, doubts %v", m.Recovered, m.RecoveryTime, m.Outage, m.Doubts),
		m.IsRecoveryUnknown() && (m.RecoveryTime.AtLeast-500*ms).Abs() < 2*ms && m.Outage.Value == 501*ms &&
			strings.Contains(reasons(m), RecoveryUnknown) &&
			strings.Contains(fmt.Sprint(m.Doubts), "the load generator did not run"))

	// An independent outage while it is not known whether the load had recovered may be the fault's, or not.
	l.Down = append(l.Down, summary.Window{From: at + 15*time.Second, To: at + 16700*ms})
	if m := Analyze(l.WithStalls(t, stalled[:12]...), Fault{At: at, Deadline: 30 * time.Second},
		Options{}); m.Outage.AtLeast > 500*ms || m.Outage.AtMost < 1700*ms || m.RecoveryTime.AtLeast > 501*ms {
		t.Errorf("recovered %v, %v, outage %v", m.Recovered, m.RecoveryTime, m.Outage)
	}
	l.Down, l.Slow = nil, []summary.Window{{From: at, To: 80 * time.Second}}
	if m := Analyze(l.WithStalls(t, stalled...), Fault{At: at, Deadline: 10 * time.Second}, Options{}); m.Recovered ||
		m.IsRecoveryUnknown() {
		t.Errorf("half the throughput: recovered %v, %v, doubts %v", m.Recovered, m.RecoveryTime, m.Doubts)
	}
}

// What only the load generator did is no impact.
func TestTruthAStallIsNoImpact(t *testing.T) {
	const at = 40 * time.Second
	l := recorded.Load{Rate: 1000, Length: 80 * time.Second, Down: []summary.Window{{From: at + 900*ms, To: at + 1500*ms}}}
	m := Analyze(l.WithStalls(t, summary.Window{From: at + 300*ms, To: at + 550*ms}), Fault{At: at}, Options{})
	truth.Report(t, "V9",
		"the generator is stopped from 300 to 550 ms, Redis from 900 to 1500 ms: time to impact, outage, recovery",
		"900 ms, 601 ms, 1.5 s",
		fmt.Sprintf("%v, %v, %v", m.TimeToImpact, m.Outage, m.RecoveryTime),
		(m.TimeToImpact.Value-900*ms).Abs() < 2*ms && m.TimeToImpact.AtMost < 910*ms && m.Outage.Value == 601*ms &&
			(m.RecoveryTime.Value-1500*ms).Abs() < 2*ms)
}

// A load generator that did not run right after the injection saw no outage, and excludes none.
func TestStallIsADoubt(t *testing.T) {
	const at = 40 * time.Second
	m := Analyze(recorded.Load{
		Rate:   1000,
		Length: 80 * time.Second,
	}.WithStalls(t, summary.Window{From: at + ms, To: at + 301*ms}), Fault{At: at}, Options{})
	if o := m.Outage; o.Value != 0 || o.AtLeast != 0 || o.AtMost < 300*ms || reasons(m) != GeneratorStalled ||
		m.TotalOutage.Value != 0 || m.TimeToImpact.Known() {
		t.Errorf("outage %v of %v, impact %v, doubts %v", o, m.TotalOutage, m.TimeToImpact, m.Doubts)
	}
}
