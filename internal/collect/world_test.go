package collect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/agenttest"
	"github.com/redquake/redquake/internal/testing/memnet"
)

const step = 5 * time.Millisecond

var ops = []string{"set", "get"}

// memory is a Store. It can fail, also after it has stored.
type memory struct {
	mu    sync.Mutex
	mute  func() bool // whether to fail after storing
	data  []byte
	saves int
	err   error
}

func (m *memory) Load(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.data), m.err
}

func (m *memory) Save(_ context.Context, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.data = slices.Clone(data)
	m.saves++
	if m.mute != nil && m.mute() {
		return errDown
	}
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// world is a run: agents and the configuration of a session that collects from them.
type world struct {
	t       *testing.T
	network *memnet.Network
	config  collect.Config
	store   *memory
	agents  []*agenttest.Agent
	runners []*agenttest.Runner
}

// newWorld serves agents with scripted loads, in memory. Their clocks began at different times.
func newWorld(
	t *testing.T, pods int, intervals int64, change func(pod int, runner *agenttest.Runner, config *agent.Config),
) *world {
	t.Helper()
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	store, network := &memory{}, memnet.New()
	w := &world{t: t, store: store, network: network, config: collect.Config{
		Run: "run", Step: step, Ops: ops, Pods: pods, Credentials: credentials, Store: store, Dial: network.Dial,
		PollEvery: 10 * time.Millisecond, PullEvery: 15 * time.Millisecond, StatusEvery: 50 * time.Millisecond,
		Checkpoints: collect.Checkpoints{Every: 30 * time.Millisecond}, Logger: slog.New(slog.DiscardHandler),
	}}
	for i := range pods {
		runner := &agenttest.Runner{Pod: i, Ops: len(ops), Step: step, Intervals: intervals}
		config := agent.Config{Epoch: time.Now().Add(-time.Duration(i+1) * 1000 * time.Second), Linger: time.Minute}
		if change != nil {
			change(i, runner, &config)
		}
		w.runners = append(w.runners, runner)
		w.agents = append(w.agents, nil)
		w.serve(i, config)
	}
	return w
}

// serve starts the process of a pod, or restarts it.
func (w *world) serve(i int, config agent.Config) {
	w.t.Helper()
	plan := &plan.Plan{Run: "run", Pods: w.config.Pods, Interval: step}
	if config.Plan != nil {
		plan.Verify = config.Plan.Verify
	}
	config.Plan, config.Pod, config.Runner = plan, i, w.runners[i]
	w.agents[i] = agenttest.Serve(w.t, w.network, fmt.Sprintf("pod-%d", i), w.config.Credentials, config)
}

func (w *world) pods() []collect.Pod {
	var pods []collect.Pod
	for i, a := range w.agents {
		pods = append(pods, collect.Pod{Index: i, Name: fmt.Sprintf("pod-%d", i), Address: a.Address})
	}
	return pods
}

// open opens a session with all pods.
func (w *world) open() *collect.Session {
	w.t.Helper()
	s, err := collect.Open(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	s.SetPods(w.pods())
	return s
}

// until waits until the status satisfies a condition.
func (w *world) until(s *collect.Session, what string, wanted func(collect.Status) bool) collect.Status {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		status := s.Status()
		if wanted(status) {
			return status
		}
		if time.Now().After(end) {
			w.t.Fatalf("not %s: %+v", what, status)
		}
	}
}

func allReady(st collect.Status) bool { return st.AllReady }
func finished(st collect.Status) bool { return st.Finished }

// start starts all pods soon.
func (w *world) start(s *collect.Session) time.Time {
	w.t.Helper()
	w.until(s, "ready", allReady)
	at := time.Now().Add(time.Second)
	if err := s.Start(w.t.Context(), at); err != nil {
		w.t.Fatal(err)
	}
	return at
}

// expect compares a session's series with that of an uninterrupted delivery of this number of intervals per pod.
func (w *world) expect(s *collect.Session, delivered ...int64) {
	w.t.Helper()
	s.Read(func(got *merged.Series) {
		w.t.Helper()
		want := merged.New("run", got.Start, step, ops, w.config.Pods)
		for pod, n := range delivered {
			for i := range n {
				iv := agenttest.Interval(pod, i, len(ops), step)
				if err := want.Add(pod, &iv); err != nil {
					w.t.Fatal(err)
				}
			}
			if n < slices.Max(delivered) {
				want.Lose(pod)
			} else {
				want.Finish(pod)
			}
		}
		same(w.t, want, got)
	})
}

// same compares two series, interval by interval.
func same(t *testing.T, want, got *merged.Series) {
	t.Helper()
	if want.Len() != got.Len() || want.Complete() != got.Complete() || !got.Ended() {
		t.Fatalf("%d intervals, %d complete, ended %v; want %d, %d", got.Len(), got.Complete(), got.Ended(), want.Len(),
			want.Complete())
	}
	for i := range want.Len() {
		if diff := cmp.Diff(want.At(i), got.At(i)); diff != "" {
			t.Fatalf("interval %d (-want +got)\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(want.Gaps(), got.Gaps()); diff != "" {
		t.Errorf("gaps (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want.ProbeGaps(), got.ProbeGaps()); diff != "" {
		t.Errorf("gaps of the probe (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want.Servers(), got.Servers()); diff != "" {
		t.Errorf("servers (-want +got)\n%s", diff)
	}
}

// noLeak checks, after all other cleanup of the test, that no goroutine is left.
func noLeak(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, before %d\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	})
}

var errDown = errors.New("the API server is away")
