//go:build integration

package collect_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestCollectRealLoad runs two agents with the real load against a real server, over TCP, restarts the session on the
// way, and compares the sums with the plan.
func TestCollectRealLoad(t *testing.T) { redistest.Each(t, testCollectRealLoad) }

func testCollectRealLoad(t *testing.T) {
	noLeak(t)
	// in which INFO is read at least some times, also on a machine that stalls
	const pods, rate, seconds, grid = 2, 1000, 5, 50 * time.Millisecond
	plan := &plan.Plan{
		Run: "run", Pods: pods, Interval: grid,
		Target: plan.Target{Addresses: []string{redistest.NewServer(t, redistest.Options{}).Address()}},
		Client: plan.Client{
			Connections:    5,
			Pipeline:       1,
			DialTimeout:    20 * time.Second,
			RequestTimeout: 20 * time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Rate: rate, Duration: seconds * time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{
				{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}},
			},
			Keyspace: plan.Keyspace{Prefix: "t:", Keys: 100, Distribution: plan.Uniform, Prefill: true},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}"}},
		Info:  100 * time.Millisecond,
	}
	w := newWorld(t, 0, 0, nil)
	w.config.Step, w.config.Ops, w.config.Pods, w.config.Dial = grid, plan.Operations(), pods, nil
	for i := range pods {
		runner, err := engine.New(plan, i)
		if err != nil {
			t.Fatal(err)
		}
		w.agents = append(w.agents,
			agenttest.ServeTCP(t, w.config.Credentials, agent.Config{Plan: plan, Pod: i, Runner: runner}))
	}
	s := w.open()
	at := w.start(s)
	w.until(s, "stored some", func(st collect.Status) bool { return st.Pods[0].Acked > 2 && st.Pods[1].Acked > 2 })
	s.Close()
	s = w.open()
	if err := s.Resume(t.Context(), at.Round(0)); err != nil {
		t.Fatal(err)
	}
	st := w.until(s, "finished", func(st collect.Status) bool { return st.Finished && st.Skew >= 0 })
	if st.Failed > 0 || st.Pods[0].Server == nil || st.Pods[0].Server.Version == "" {
		t.Errorf("%+v", st)
	}
	t.Logf("skew %v ± %v, error of the start %v", st.Skew, st.SkewUncertainty, st.StartError)
	s.Read(func(series *merged.Series) {
		var sum record.Counts
		for i := range series.Len() {
			for k := range series.Ops {
				addCounts(&sum, series.At(i).Ops[k].Counts)
			}
		}
		// The arrivals are fixed in advance: rate x duration, to one per pod.
		if want := uint64(rate * seconds); sum.Due < want-pods || sum.Due > want+pods ||
			sum.OK+sum.Fail+sum.Unknown+sum.Dropped != sum.Due || sum.OK == 0 {
			t.Errorf("due %d, ok %d, fail %d, unknown %d, dropped %d; want %d due", sum.Due, sum.OK, sum.Fail, sum.Unknown,
				sum.Dropped, want)
		}
		if !series.Ended() || len(series.Servers()) < 5 || !series.HasProbe() {
			t.Errorf("ended %v, %d readings of INFO, probe %v", series.Ended(), len(series.Servers()), series.HasProbe())
		}
	})
	if err := s.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
