package impact

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// TestOutageAfterAStall: the load generator did not run from 270 ms before the fault on, so that the last success is long before it. The silence is the
// fault's all the same: nobody asked before.
func TestOutageAfterAStall(t *testing.T) {
	const fault, stall, down = 30 * time.Second, 270 * ms, 1450 * ms
	l := load{rate: 1000, length: 60 * time.Second, down: []Window{{fault - stall, fault + down}}}
	for _, tt := range []struct {
		name     string
		unproven time.Duration // of the gap's head
		counts   bool
	}{
		{"nothing was sent in the stall", stall + 10*ms, true},
		{"requests waited before the fault", 20 * ms, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 1)
			for _, iv := range l.intervals(0, 1) {
				for i := range iv.Gaps {
					iv.Gaps[i].UnprovenHead = int64(tt.unproven)
				}
				if err := s.Add(0, iv); err != nil {
					t.Fatal(err)
				}
			}
			o := Analyze(s, Fault{At: fault}, Options{}).Outage
			if contains := o.AtLeast <= down && down <= o.AtMost; contains != tt.counts {
				t.Errorf("the outage is %v, want one that contains %v: %v", o, down, tt.counts)
			}
			if tt.counts && (o.Value-down).Abs() > 2*ms {
				t.Errorf("the outage is %v, want %v: before the fault nobody asked", o.Value, down)
			}
		})
	}
}

// TestStallInTheShorterGap: of two gaps the shorter one may have been longer, as the load generator did not run before it. The doubt names this stall.
func TestStallInTheShorterGap(t *testing.T) {
	const fault = 30 * time.Second
	l := load{rate: 1000, length: 60 * time.Second, down: []Window{{fault, fault + time.Second}, {fault + 2*time.Second, fault + 2900*ms}}}
	s := record.NewSeries("run", time.Unix(0, 0), step, []string{"get"}, 1)
	for _, iv := range l.intervals(0, 1) {
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
	if m.Outage.AtMost < 1400*ms || !slices.ContainsFunc(m.Doubts, func(d Doubt) bool { return d.Reason == GeneratorStalled }) {
		t.Errorf("outage %v, doubts %v", m.Outage, m.Doubts)
	}
}
