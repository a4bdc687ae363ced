package summary

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

func TestServers(t *testing.T) {
	s := merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1)
	reading := func(at time.Duration, runID string, cpu, thread float64, memory, evicted, rejected int64) record.Server {
		return record.Server{
			At: int64(at), Address: "redis:6379", RunID: runID, Name: "redis", Version: "7.0.15",
			Mode:       "standalone",
			CPUSeconds: cpu, CPUMainThreadSeconds: thread, UsedMemory: memory, EvictedKeys: evicted,
			RejectedConnections: rejected,
		}
	}
	iv := &record.Interval{Ops: make([]record.Op, 1), Servers: []record.Server{
		reading(0, "a", 10, 8, 100, 5, 1),
		reading(time.Second, "a", 10.5, 8.4, 300, 7, 1),
		reading(1010*ms, "a", 10.6, 8.5, 300, 7, 1),       // too soon after the last: 100 ms of CPU in 10 ms
		reading(2*time.Second, "a", 11.2, 8.9, 200, 7, 4), // 0.7 s of CPU in 1 s
		reading(3*time.Second, "b", 0.1, 0, 50, 0, 0),     // another process: no difference
		reading(5*time.Second, "b", 0.7, 0, 60, 3, 0),
	}}
	if err := s.Add(0, iv); err != nil {
		t.Fatal(err)
	}
	want := ServerFacts{
		Name: "redis", Version: "7.0.15", Mode: "standalone", MaxCPU: 600, MaxMainThread: 450,
		MaxUsedMemory: 300,
		Evicted:       5, Rejected: 3, Restarts: 1, Readings: 6,
	}
	if diff := cmp.Diff(want, Servers(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(ServerFacts{}, Servers(merged.New("run", time.Unix(0, 0), step, []string{"get"}, 1))); diff != "" {
		t.Error(diff)
	}
}
