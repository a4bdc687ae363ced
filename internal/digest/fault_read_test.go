package digest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/result"
)

// Read from an object, a result has all that the status of the fault has of it: written again it is the same.
func TestFaultOfItsObject(t *testing.T) {
	three := durations.Bounded{Value: 3 * time.Second, AtLeast: 2980 * time.Millisecond, AtMost: 3010 * time.Millisecond}
	latency := summary.Latency{P50: time.Millisecond, P99: 3 * time.Millisecond, Count: 9}
	p99 := summary.Latency{P99: 3 * time.Millisecond, Count: 9} // a status has no other of them
	failures := impact.Failures{FirstError: time.Millisecond, LastError: time.Second, Errors: 7}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := result.NewFault(&impact.Impact{
		BaselineRate: 100,
		MinRate:      25,
		TimeToImpact: three,
		Outage:       impact.Outage{Bounded: three, Of: impact.Shard, Shard: 2},
		TotalOutage:  three,
		ErrorWindow:  time.Second,
		Outages: impact.Outages{
			Load:   durations.Exactly(time.Second),
			Reads:  durations.Exactly(2 * time.Second),
			Writes: durations.Exactly(-1),
			Shard:  impact.ShardOutage{Bounded: three, Shard: 2},
			Probe:  three,
		},
		Dip:                 impact.Dip{Value: 0.75, Of: impact.Reads},
		Dips:                impact.Dips{All: 0.5, Reads: 0.75, Writes: 0.25},
		Recovered:           true,
		RecoveryTime:        three,
		RecoveredThroughput: 1,
		LostRequests:        12,
		Errors:              7,
		Before:              p99,
		During:              p99,
		After:               p99,
		Reads:               &failures,
		Writes:              &failures,
		WhileActive: &impact.WhileActive{
			Length: time.Second, Throughput: 5, Change: -0.25, Latency: latency, LatencyP50Change: 1, LatencyP99Change: 2,
			ErrorRate: 0.5, ErrorRateChange: 0.25,
		},
		Operations: []impact.Effect{{Name: "set", Outage: three, Dip: 0.5, Failures: failures}},
		Doubts:     []impact.Doubt{{Reason: "A", Message: "a doubt"}},
	}, result.FaultInput{
		Name:       "kill",
		UID:        "u",
		Type:       "PodKill",
		Targets:    []string{"redis-0"},
		Start:      start,
		At:         12 * time.Second,
		InjectedAt: start.Add(12 * time.Second),
		Deadline:   time.Minute,
	})
	f.Phases = []result.Phase{
		{Name: "Ready", Source: "Kubernetes", At: result.Seconds(time.Second), Took: result.Bounds(three)},
	}
	f.Observed = result.Seconds(20 * time.Second)
	f.Conclude(&result.Losses{
		Count:  result.Count{AtLeast: 2, AtMost: 5},
		First:  9 * time.Second,
		Last:   14 * time.Second,
		Errors: 1,
	}, nil, "Fail", "because")
	o := FaultObject(f, "checkout")
	got := FaultOf(o, start)
	if diff := cmp.Diff(f, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-given +read:\n%s", diff)
	}
	if diff := cmp.Diff(o.Status.Impact, Impact(got)); diff != "" {
		t.Errorf("-in the status +written again:\n%s", diff)
	}
}
