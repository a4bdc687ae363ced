package result

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// loop is a load of one pod for 10 s, whose process uses ran of a core and waits for waited of each second; waited -1 =
// the kernel does not count it.
type loop struct {
	perSecond        uint64
	latency, service time.Duration // service 0 = closed loop
	ran, waited      float64
}

func (l loop) record(t *testing.T) *merged.Series {
	t.Helper()
	const step = 100 * time.Millisecond
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	s.SetReadOnly([]bool{true})
	for i := range int64(100) {
		begin := i * int64(step)
		iv := &record.Interval{
			Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin,
			LastOK: begin + int64(step) - 1, Connections: 4,
		}
		n := l.perSecond / 10
		op := &iv.Ops[0]
		op.OK, op.Sent, op.Due = n, n, n
		var h histogram.Histogram
		h.RecordN(int64(l.latency), uint32(n))
		op.Latency = h.AppendTo(nil)
		if l.service > 0 {
			h.Reset()
			h.RecordN(int64(l.service), uint32(n))
			op.Service = h.AppendTo(nil)
		}
		since := time.Duration(begin + int64(step)).Seconds()
		use := record.AgentUse{
			At:            begin + int64(step),
			CPUSeconds:    l.ran * since,
			WaitedSeconds: l.waited * since,
			BusyThreads:   1,
		}
		if l.waited < 0 {
			use.WaitedSeconds = -1
		}
		iv.Agents = []record.AgentUse{use}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// Four users of a Redis that serves 70,810/s alone, by what a load generator that shares its core with 0, 1 and 3 busy
// programs records: the truth lies within the bounds, and where much of it may be missing, that is said.
func TestThroughputOfAStarvedLoop(t *testing.T) {
	const alone = 70_810
	closed := plan.Plan{
		Pods:   1,
		Shape:  plan.Shape{Users: 4, Duration: 10 * time.Second},
		Client: plan.Client{Connections: 4, Pipeline: 1},
	}
	for _, tt := range []struct {
		name     string
		run      loop
		starved  string // a part of why; "" = not
		mostOver float64
	}{
		{"alone", loop{70_810, 34 * time.Microsecond, 0, 0.66, 0.01}, "", 1.1},
		{"beside one", loop{35_400, 34 * time.Microsecond, 0, 0.35, 0.48}, "load pod 0 waited for a CPU for 4.", 1.4},
		{"beside three", loop{18_210, 34 * time.Microsecond, 0, 0.21, 0.74}, "load pod 0 waited for a CPU for 6.73s", 1.6},
		{
			"beside three, the kernel does not count it",
			loop{18_210, 34 * time.Microsecond, 0, 0.21, -1},
			"% of the time of the users is missing",
			2,
		},
		{"users who wait for replies", loop{4_000, time.Millisecond, 0, 0.2, 0.3}, "", 100},
	} {
		r := NewLoad(&closed, tt.run.record(t), LoadInput{Outcome: Finished})
		if got := r.Starved(); !strings.Contains(got, tt.starved) || (got == "") != (tt.starved == "") {
			t.Errorf("%s: starved: %q, want %q", tt.name, got, tt.starved)
		}
		if tt.mostOver == 100 { // no more than their number of users allows
			if s := r.Total.Stalled; s.Throughput > 1.01*float64(tt.run.perSecond) {
				t.Errorf("%s: at most %v/s", tt.name, s.Throughput)
			}
			continue
		}
		if s := r.Total.Stalled; s == nil || s.Throughput < alone || s.Throughput > tt.mostOver*alone {
			t.Errorf("%s: %v/s, at most %+v; the truth is %d/s", tt.name, r.Total.Throughput, s, alone)
		}
	}
}

// Of an open loop, a wait makes requests late, and not fewer: their latency is at least that from the send.
func TestLatencyOfAStarvedOpenLoop(t *testing.T) {
	open := plan.Plan{
		Pods:   1,
		Shape:  plan.Shape{Rate: 20_000, Duration: 10 * time.Second},
		Client: plan.Client{Connections: 4, Pipeline: 1},
	}
	r := NewLoad(&open, loop{20_000, 36 * time.Millisecond, 200 * time.Microsecond, 0.12, 0.5}.record(t), LoadInput{
		Outcome: Finished,
	})
	s := r.Total.Stalled
	if s == nil || math.Abs(s.Throughput-20_000) > 1 || r.Starved() != "" {
		t.Errorf("%+v, starved %q, want that 20,000/s were sent, though late", s, r.Starved())
	}
	if at := time.Duration(s.Latency.P99); at < 199*time.Microsecond || at > 300*time.Microsecond {
		t.Errorf("the p99 is at least %s, want what Redis needed: all of the 36 ms beyond it can be waits", at)
	}
	if r.Bottleneck.Component == string(bottleneck.Network) {
		t.Errorf("%+v", r.Bottleneck)
	}
}
