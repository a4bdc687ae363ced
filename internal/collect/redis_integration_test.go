//go:build integration

package collect_test

import (
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// startRedis starts a server on a loopback port and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	server := exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address
		}
		if time.Now().After(end) {
			t.Fatal("redis-server does not listen")
		}
	}
}

// TestRealLoadIsCollected runs two agents with the real load against a real server, restarts the session on the way, and compares the
// sums with what the plan asks for.
func TestRealLoadIsCollected(t *testing.T) {
	noLeak(t)
	const pods, rate, grid = 2, 2000, 50 * time.Millisecond
	plan := &plan.Plan{
		Run: "run", Pods: pods, Interval: grid,
		Target: plan.Target{Addresses: []string{startRedis(t)}},
		Client: plan.Client{Connections: 5, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: time.Second, Protocol: 3},
		Shape:  plan.Shape{Rate: rate, Duration: 3 * time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{
				{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}},
			},
			Keyspace: plan.Keyspace{Prefix: "t:", Keys: 100, Distribution: plan.Uniform, Prefill: true},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}"}},
		Info:  200 * time.Millisecond,
	}
	w := newWorld(t, 0, 0, nil)
	w.config.Step, w.config.Ops, w.config.Pods = grid, plan.Operations(), pods
	for i := range pods {
		runner, err := load.New(plan, i)
		if err != nil {
			t.Fatal(err)
		}
		w.agents = append(w.agents, agenttest.Serve(t, "127.0.0.1", w.config.Credentials, agent.Config{Plan: plan, Pod: i, Runner: runner}))
	}
	s := w.open()
	at := w.start(s)
	began := lateness(at)
	w.until(s, "stored some", func(st collect.Status) bool { return st.Pods[0].Acked > 5 && st.Pods[1].Acked > 5 })
	s.Close()
	s = w.open()
	if err := s.Resume(t.Context(), at.Round(0)); err != nil {
		t.Fatal(err)
	}
	st := w.until(s, "finished", func(st collect.Status) bool { return st.Finished && st.Skew >= 0 })
	if st.Failed > 0 || st.Pods[0].Server == nil || st.Pods[0].Server.Version == "" {
		t.Errorf("%+v", st)
	}
	late := <-began
	t.Logf("skew %v ± %v, error of the start %v", st.Skew, st.SkewUncertainty, st.StartError)
	if st.Skew > 50*time.Millisecond+late || st.StartError > 50*time.Millisecond+late {
		t.Errorf("skew %v, error of the start %v", st.Skew, st.StartError)
	}
	s.Read(func(series *sample.Series) {
		var sum sample.Counts
		for i := range series.Len() {
			for k := range series.Ops {
				addCounts(&sum, series.At(i).Ops[k].Counts)
			}
		}
		// The arrivals are fixed in advance: rate x duration, to one per pod.
		if want := uint64(rate * 3); sum.Due < want-pods || sum.Due > want+pods || sum.OK+sum.Fail+sum.Unknown+sum.Dropped != sum.Due || sum.OK < want*9/10 {
			t.Errorf("due %d, ok %d, fail %d, unknown %d, dropped %d; want %d due", sum.Due, sum.OK, sum.Fail, sum.Unknown, sum.Dropped, want)
		}
		if !series.Ended() || len(series.Servers()) < 5 || !series.HasProbe() {
			t.Errorf("ended %v, %d readings of INFO, probe %v", series.Ended(), len(series.Servers()), series.HasProbe())
		}
	})
	if err := s.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
