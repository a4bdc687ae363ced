package summary

import (
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// waitingLoad is a record of the given length with readings of each pod every second: a pod uses ran of a core and
// waits for waited of each second.
func waitingLoad(
	t *testing.T, length time.Duration, latency time.Duration, perSecond uint64, pods ...record.AgentUse,
) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, len(pods))
	for i := range int64(length / step) {
		for pod, use := range pods {
			begin := i * int64(step)
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: begin, LastOK: begin + int64(step) - 1, FirstError: -1,
				LastError: -1,
			}
			var h histogram.Histogram
			h.RecordN(int64(latency), uint32(perSecond/10))
			iv.Ops[0].Sent, iv.Ops[0].OK, iv.Ops[0].Latency = perSecond/10, perSecond/10, h.AppendTo(nil)
			at := begin + int64(step)
			since := time.Duration(at).Seconds()
			use.At, use.BusyThreads = at, 1
			use.CPUSeconds *= since
			if use.WaitedSeconds > 0 {
				use.WaitedSeconds *= since
			}
			use.ThrottledSeconds, use.StolenSeconds = use.ThrottledSeconds*since, use.StolenSeconds*since
			iv.Agents = []record.AgentUse{use}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	for pod := range pods {
		s.Finish(pod)
	}
	return s
}

func TestWaiting(t *testing.T) {
	always := record.AgentUse{CPUSeconds: 0.25, WaitedSeconds: 0.75} // beside three programs, never asleep
	for _, tt := range []struct {
		name    string
		pods    []record.AgentUse
		without []Window
		share   float64 // less what cold caches add
		mean    float64
		known   bool
	}{
		{"alone", []record.AgentUse{{CPUSeconds: 0.5}}, nil, 0, 0, true},
		{"beside three programs", []record.AgentUse{always}, nil, 0.75, 0.75, true},
		{"asleep for most of the time", []record.AgentUse{{CPUSeconds: 0.02, WaitedSeconds: 0.03}}, nil, 0.03, 0.03, true},
		{"several threads that wait", []record.AgentUse{{CPUSeconds: 0.5, WaitedSeconds: 1.5}}, nil, 0.75, 0.75, true},
		{"throttled", []record.AgentUse{{CPUSeconds: 0.2, ThrottledSeconds: 0.3}}, nil, 0.3, 0.3, true},
		{"stolen", []record.AgentUse{{CPUSeconds: 0.2, StolenSeconds: 0.3}}, nil, 0.3, 0.3, true},
		{"one pod of two", []record.AgentUse{{CPUSeconds: 0.5}, always}, nil, 0.75, 0.375, true},
		{"not counted by the kernel", []record.AgentUse{{CPUSeconds: 0.25, WaitedSeconds: -1}}, nil, 0, 0, false},
		{"without any readings", []record.AgentUse{always}, []Window{{To: time.Hour}}, 0, 0, false},
	} {
		s := waitingLoad(t, 20*time.Second, ms, 1000, tt.pods...)
		w := WaitingTo(s, 2*time.Second, s.End(), tt.without)
		if w.Known != tt.known || w.Share < tt.share-1e-6 || w.Share > tt.share*(1+cold*tt.share)+1e-6 ||
			w.Mean < tt.mean-1e-6 || w.Mean > tt.mean*(1+cold*tt.share)+1e-6 {
			t.Errorf("%s: %+v, want a share of %v and %v on average, known %t", tt.name, w, tt.share, tt.mean, tt.known)
		}
	}
}

// The share of waits and of stalls does not depend on how long the run lasts.
func TestShareDoesNotShrinkWithTheLength(t *testing.T) {
	for _, length := range []time.Duration{time.Minute, 5 * time.Minute, 2 * time.Hour} {
		s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
		for i := range int64(length / step) {
			begin := i * int64(step)
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstError: -1, LastError: -1, FirstOK: begin,
				LastOK: begin + int64(step) - 1,
			}
			iv.Ops[0].Due, iv.Ops[0].Sent, iv.Ops[0].OK = 100, 100, 100
			iv.Ops[0].Latency = histogram.Buckets{{Index: 300, Count: 100}}
			if i%2 == 0 { // 40 ms in each 200 ms
				iv.Stalls = []record.Stall{{From: begin, To: begin + 40e6}}
			}
			iv.Agents = []record.AgentUse{
				{At: begin + int64(step), CPUSeconds: 0.02 * float64(i), WaitedSeconds: 0.01 * float64(i)},
			}
			if err := s.Add(0, iv); err != nil {
				t.Fatal(err)
			}
		}
		s.Finish(0)
		got := StallsTo(s, 0, length, nil)
		if math.Abs(got.Share-0.2) > 1e-9 || (got.Length-length/5).Abs() > time.Second {
			t.Errorf("%s: stalled for %s, %.3g %% of the time; want 20 %%", length, got.Length, 100*got.Share)
		}
		if w := got.Waiting; math.Abs(w.Waited.Seconds()/w.Over.Seconds()-0.1) > 1e-3 || w.Over < length*9/10 {
			t.Errorf("%s: waited for %s of %s, want 10 %%", length, w.Waited, w.Over)
		}
	}
}

// Four users of a server that needs 34 us: of what 18,210 requests/s leave of their time, the load generator took most.
func TestUserTime(t *testing.T) {
	users := func(time.Duration) float64 { return 4 }
	const latency = 34 * time.Microsecond
	for _, tt := range []struct {
		name            string
		perSecond       uint64
		think           time.Duration
		missing, faster float64
	}{
		{"all of it is known", 117_640, 0, 0, 1},
		{"a quarter of a CPU", 18_210, 0, 0.845, 6.46},
		{"thinking", 390, 10 * time.Millisecond, 0.022, 1.022},
	} {
		s := waitingLoad(t, 5*time.Second, latency, tt.perSecond, record.AgentUse{CPUSeconds: 0.2})
		got, ok := UserTimeTo(s, time.Second, s.End(), nil, users, tt.think)
		if !ok || math.Abs(got.Missing-tt.missing) > 0.01 || math.Abs(got.Most/float64(tt.perSecond)-tt.faster) > 0.05 {
			t.Errorf("%s: %+v, want %v and %v", tt.name, got, tt.missing, tt.faster)
		}
	}
	dead := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	iv := &record.Interval{Pods: 1, Ops: make([]record.Op, 1), FirstError: 0, LastError: 0, FirstOK: 5, LastOK: 5}
	iv.Ops[0].OK, iv.Ops[0].Fail, iv.Ops[0].Latency = 1, 1, histogram.Buckets{{Index: 300, Count: 1}}
	if err := dead.Add(0, iv); err != nil {
		t.Fatal(err)
	}
	if got, ok := UserTimeTo(dead, 0, dead.End(), nil, users, 0); ok {
		t.Errorf("while connections may have been down: %+v", got)
	}
}
