//go:build integration

package accuracy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/await"
)

// load is what the load generators do.
type load struct {
	shape plan.Shape
	depth int // pipeline
	conns int // of a pod, to each server
	// that share the load, each a process with an agent, whose records are merged as the manager does it; 0 = one process
	// without an agent
	pods  int
	probe float64 // requests/s to each shard; 0 = none
	reads bool    // half of the requests only read
}

func (l *load) plan(target plan.Target, length time.Duration) *plan.Plan {
	p := &plan.Plan{
		Run: "accuracy", Pods: max(1, l.pods), Interval: 100 * time.Millisecond, Target: target,
		Client: plan.Client{
			Connections:    l.conns,
			Pipeline:       l.depth,
			DialTimeout:    time.Second,
			RequestTimeout: time.Second,
			Protocol:       3,
		},
		Shape: l.shape,
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}}},
			Keyspace: plan.Keyspace{Prefix: "accuracy:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
	}
	p.Shape.Duration = length
	if l.reads {
		p.Workload.Commands = append(p.Workload.Commands, plan.Command{
			Name:   "get",
			Weight: 1,
			Words:  []string{"GET", "{key}"},
		})
	}
	if l.probe > 0 {
		p.Probe = plan.Probe{Rate: l.probe, Words: []string{"SET", "accuracy:probe:{user}", "{seq}", "EX", "60"}}
	}
	return p
}

// generators are the processes of a load.
type generators struct {
	processes []*exec.Cmd
	file      string           // of the plan
	session   *collect.Session // of load pods
}

// start starts a load and waits until it begins.
func (l load) start(t *testing.T, target plan.Target, length time.Duration) *generators {
	t.Helper()
	p := l.plan(target, length)
	g := &generators{file: filepath.Join(t.TempDir(), "plan.json")}
	writeJSON(t, g.file, p)
	if l.pods == 0 {
		g.launch(t)
		return g
	}
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	writeJSON(t, g.file+credentialsSuffix, credentials)
	g.session, err = collect.Open(collect.Config{
		Run:         p.Run,
		Step:        p.Interval,
		Ops:         p.Operations(),
		ReadOnly:    p.ReadOnly(),
		Pods:        p.Pods,
		Credentials: credentials,
		Store:       &store{},
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.session.Close)
	var list []collect.Pod
	for i := range p.Pods {
		list = append(list, collect.Pod{Index: i, Address: g.launch(t, generatorPod+"="+strconv.Itoa(i))})
	}
	g.session.SetPods(list)
	await.Until(t, "all load pods are ready", func() error { return unless(g.session.Status().AllReady) })
	begin := time.Now().Add(time.Second)
	if err := g.session.Start(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	await.PassTo(begin, "the start of the load")
	return g
}

// launch starts a process and returns its first line.
func (g *generators) launch(t *testing.T, variables ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = slices.Concat(os.Environ(), []string{generatorPlan + "=" + g.file}, variables)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	g.processes = append(g.processes, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the load generator did not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// stop ends the load before its planned end.
func (g *generators) stop(t *testing.T) {
	t.Helper()
	if g.session != nil {
		if err := g.session.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := g.processes[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// end waits for the end of the load and passes its record on, with the conversion of an instant to the time since the
// start.
func (g *generators) end(t *testing.T, read func(series *merged.Series, since func(time.Time) time.Duration)) {
	t.Helper()
	if g.session == nil {
		g.wait(t)
		packed, err := os.ReadFile(g.file + recordSuffix)
		if err != nil {
			t.Fatal(err)
		}
		series, err := merged.Decode(packed)
		if err != nil {
			t.Fatal(err)
		}
		read(series, func(at time.Time) time.Duration { return at.Round(0).Sub(series.Start) })
		return
	}
	await.Until(t, "the records of all load pods are merged", func() error { return unless(g.session.Finished()) })
	g.session.Read(func(series *merged.Series) {
		read(series, func(at time.Time) time.Duration {
			since, _, _ := g.session.At(at.Round(0)) // it was started
			return since
		})
	})
	if err := g.session.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.wait(t)
}

func (g *generators) wait(t *testing.T) {
	t.Helper()
	for _, cmd := range g.processes {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func unless(done bool) error {
	if done {
		return nil
	}
	return errors.New("not yet")
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// store keeps no checkpoint: the session is not resumed.
type store struct{}

func (*store) Load(context.Context) ([]byte, error) { return nil, nil }

func (*store) Save(context.Context, []byte) error { return nil }
