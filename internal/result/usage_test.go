package result

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// withUse is a record of 30 s with readings around the load: half a core of Redis, a quarter of a core of the load pod.
func withUse(t *testing.T) *merged.Series {
	t.Helper()
	s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 2)
	var h histogram.Histogram
	h.RecordN(int64(time.Millisecond), 10)
	for i := range int64(30) {
		for pod := range 2 {
			iv := &record.Interval{
				Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1,
			}
			iv.Ops[0].OK, iv.Ops[0].Sent, iv.Ops[0].Latency = 10, 10, h.AppendTo(nil)
			at := (i + 1) * int64(time.Second)
			iv.Agents = []record.AgentUse{
				{At: at, CPUSeconds: float64(i) / 4, CPULimit: 0.5, IdleRoundTrip: int64(1+pod) * 250_000},
			}
			if pod == 0 {
				iv.Agents[0].RoundTrip = 500_000
				iv.Servers = []record.Server{
					{
						At: at, Address: "a:1", RunID: "r", Role: "slave", Shard: 1, CPUSeconds: float64(i) / 2, UsedMemory: 7,
						UsedMemoryRSS: 9, NetInput: 100 * i,
					},
				}
			}
			if err := s.Add(pod, iv); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Finish(0)
	s.Finish(1)
	s.AddPodUses([]record.PodUse{
		{
			At: int64(25 * time.Second), Window: int64(10 * time.Second), Name: "api", Pod: "api-0", Container: "app", CPU: 0.25,
			MaxCPU: 0.25, Memory: 11,
		},
	})
	return s
}

func TestUseAroundALoad(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{Pods: 2, Shape: plan.Shape{Users: 2, WarmUp: 10 * time.Second, Duration: 20 * time.Second}}
	r := NewLoad(p, withUse(t), LoadInput{Outcome: Finished, ServerCPULimit: 2})
	wantServers := []ServerUse{
		{
			Address:      "a:1",
			Role:         "replica",
			Shard:        new(0),
			CPU:          CPU{Mean: 500, Max: 500, Limit: 2000},
			Memory:       7,
			RSS:          9,
			BytesIn:      100,
			SlowCommands: new(int64(0)),
		},
	}
	if diff := cmp.Diff(wantServers, r.Servers); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if want := (&CPU{Mean: 250, Max: 250, Limit: 500}); !cmp.Equal(r.LoadPodCPU, want) {
		t.Errorf("load pods %+v, want %+v", r.LoadPodCPU, want)
	}
	if want := []PodsUse{{Name: "api", Count: 1, CPU: CPU{Mean: 250, Max: 250}, Memory: 11}}; !cmp.Equal(r.Pods, want) {
		t.Errorf("pods %+v, want %+v", r.Pods, want)
	}
	us := func(n int) *Seconds { return new(Seconds(time.Duration(n) * time.Microsecond)) }
	want := &RoundTrip{Idle: us(250), Farthest: us(500), UnderLoad: us(500), ShareOfLatency: r.RoundTrip.ShareOfLatency}
	if diff := cmp.Diff(want, r.RoundTrip); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
	if share := r.RoundTrip.ShareOfLatency; share == nil || *share < 0.248 || *share > 0.252 {
		t.Errorf("a round trip of 0.25 ms is %v of a latency of 1 ms", share)
	}

	p.Workload.HTTP = &plan.HTTP{URL: "http://shop/"}
	if r := NewLoad(p, withUse(t), LoadInput{Outcome: Finished}); r.RoundTrip.ShareOfLatency != nil {
		t.Error("a round trip to Redis as a share of the latency of an API")
	}
}

// A PING that takes longer than half of the requests is no part of them.
func TestRoundTripLongerThanTheLatency(t *testing.T) {
	t.Parallel()
	p := &plan.Plan{
		Pods:   2,
		Shape:  plan.Shape{Users: 2, WarmUp: 10 * time.Second, Duration: 20 * time.Second},
		Client: plan.Client{AddedLatency: 900 * time.Microsecond},
	}
	r := NewLoad(p, withUse(t), LoadInput{Outcome: Finished})
	if r.RoundTrip == nil || r.RoundTrip.Idle == nil || r.RoundTrip.ShareOfLatency != nil {
		t.Errorf("%+v, want no share of the latency", r.RoundTrip)
	}
}

// A target without readings has a reason for it.
func TestTargetThatIsNotObserved(t *testing.T) {
	t.Parallel()
	redis := plan.Target{Addresses: []string{"a:1"}}
	none := func(failed ...record.Unobserved) *merged.Series {
		s := merged.New("run", time.Unix(0, 0), time.Second, []string{"get"}, 1)
		iv := &record.Interval{
			Pods: 1, Ops: make([]record.Op, 1), FirstOK: -1, LastOK: -1, FirstError: -1, LastError: -1, Unobserved: failed,
		}
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
		s.Finish(0)
		return s
	}
	for _, c := range []struct {
		name   string
		target plan.Target
		info   time.Duration
		series *merged.Series
		want   string
	}{
		{
			"no permission",
			redis,
			time.Second,
			none(record.Unobserved{Address: "a:1", Reason: "INFO: NOPERM"}),
			"INFO: NOPERM",
		},
		{"disabled", redis, 0, none(), "observe.redisInfo is 0s"},
		{"too short", redis, time.Second, none(), "no server replied to INFO twice in the measured time"},
		{"no target", plan.Target{}, 0, none(), ""},
	} {
		p := &plan.Plan{Pods: 1, Target: c.target, Info: c.info, Shape: plan.Shape{Users: 1, Duration: time.Second}}
		if got := NewLoad(p, c.series, LoadInput{Outcome: Finished}).Target.NotObserved; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
