//go:build integration

package bottleneck

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

const (
	provokeOut    = "REDQUAKE_PROVOKE_OUT" // names the folder for the records and findings.txt
	cappedRecord  = "REDQUAKE_TEST_CAPPED_LOAD"
	cappedPlan    = "REDQUAKE_TEST_PLAN"
	provokeLength = 6 * time.Second // of load after the warm-up
)

// TestProvoke drives one component after the other to its limit, on this machine, and writes the findings: a table to
// the log, and to the folder that REDQUAKE_PROVOKE_OUT names the records and findings.txt, which may replace those in
// testdata. It takes 70 s, root, and a machine without other work: a component whose limit is not reached because the
// machine is busy is not found, which the table shows.
func TestProvoke(t *testing.T) {
	if file := os.Getenv(cappedRecord); file != "" {
		cappedLoad(t, file)
		return
	}
	folder := os.Getenv(provokeOut)
	if folder == "" {
		t.Skip("only where REDQUAKE_PROVOKE_OUT names the folder of the records: make provoke")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines, table strings.Builder
	for _, p := range provocations {
		t.Run(p.name, func(t *testing.T) {
			s := provoke[p.name](t)
			data, err := s.Encode(0)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, p.name+".record"), data, 0o644); err != nil {
				t.Fatal(err)
			}
			got, right := p.find(s)
			lines.WriteString(p.line(got))
			mark := "as provoked  "
			if !right {
				mark = "NOT " + string(p.want) + "  "
				t.Errorf("%s: %s\nwant %s: ... %s ...", got.Component, got.Evidence, p.want, p.evidence)
			}
			table.WriteString(mark + p.line(got))
		})
	}
	if err := os.WriteFile(filepath.Join(folder, "findings.txt"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", table.String())
}

// provoke makes the record of each provocation.
var provoke = map[string]func(*testing.T) *merged.Series{
	"load-generator": provokeLoadGenerator,
	"network": func(t *testing.T) *merged.Series {
		server := redistest.NewServer(t, redistest.Options{})
		return recordRun(t, set(delayed(t, server.Address(), 15*time.Millisecond), 10, 0), nil)
	},
	"cpu-limit": func(t *testing.T) *merged.Series {
		server := redistest.NewServer(t, redistest.Options{})
		capCPU(t, pid(t, server), 0.1)
		return recordRun(t, set(server.Address(), 10, 0), nil)
	},
	"redis-main-thread": provokeMainThread,
	"disk":              provokeDisk,
	"memory-evicted": func(t *testing.T) *merged.Series {
		return recordRun(t, large(full(t, "maxmemory-policy allkeys-lru"), 2000), nil)
	},
	"memory-refused": func(t *testing.T) *merged.Series { return recordRun(t, large(full(t), 2000), nil) },
	"clients": func(t *testing.T) *merged.Series {
		server := redistest.NewServer(t, redistest.Options{Config: []string{"maxclients 30"}})
		return recordRun(t, set(server.Address(), 10, 10*time.Millisecond), occupy(server.Address(), 50*time.Millisecond))
	},
	"nothing": func(t *testing.T) *merged.Series {
		server := redistest.NewServer(t, redistest.Options{})
		return recordRun(t, set(server.Address(), 10, 10*time.Millisecond), nil)
	},
}

// provokeLoadGenerator runs the load in a separate process that may use a tenth of a core.
func provokeLoadGenerator(t *testing.T) *merged.Series {
	server := redistest.NewServer(t, redistest.Options{})
	text, err := json.Marshal(set(server.Address(), 20, 0))
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/record"
	cmd := exec.Command(os.Args[0], "-test.run=^TestProvoke$")
	cmd.Env = append(os.Environ(), cappedRecord+"="+file, cappedPlan+"="+string(text))
	hold, err := cmd.StdinPipe() // the load starts when this is closed: by then the limit is set
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	capCPU(t, cmd.Process.Pid, 0.1)
	_ = hold.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := merged.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cappedLoad(t *testing.T, file string) {
	var p plan.Plan
	if err := json.Unmarshal([]byte(os.Getenv(cappedPlan)), &p); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	data, err := recordRun(t, &p, nil).Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func provokeMainThread(t *testing.T) *merged.Series {
	server := redistest.NewServer(t, redistest.Options{Config: []string{"slowlog-log-slower-than 2000"}})
	prioritize(t, pid(t, server))
	p := planOf(server.Address(), 4, 0, "EVAL", "local x = 0 for i = 1, 1000000 do x = x + i end return 1", "0")
	// Redis has work until the load sends again, however late on a busy machine
	p.Client.Pipeline, p.Client.RequestTimeout = 4, 5*time.Second
	return recordRun(t, p, nil)
}

// provokeDisk limits the disk to twenty writes per second if block devices can be throttled (cgroup v1 or v2, as root);
// otherwise the disk is not limited, and commands count as slow from 1 ms.
func provokeDisk(t *testing.T) *merged.Series {
	server := redistest.NewServer(t, redistest.Options{
		Config: []string{"appendonly yes", "appendfsync always", "latency-monitor-threshold 1"},
	})
	throttleWrites(t, pid(t, server), server.Dir, 20)
	return recordRun(t, set(server.Address(), 10, 0), nil)
}

// full starts a server with a memory limit of 5 MiB, and returns its address.
func full(t *testing.T, config ...string) string {
	t.Helper()
	return redistest.NewServer(t, redistest.Options{Config: append([]string{"maxmemory 5mb"}, config...)}).Address()
}

// large writes values of this size.
func large(address string, bytes int) *plan.Plan {
	p := set(address, 20, 10*time.Millisecond)
	p.Workload.Values = plan.Values{MinBytes: bytes, MaxBytes: bytes}
	return p
}

// set writes values of 100 bytes; think gives Redis and the load time between requests, so that the CPU is not at its
// limit.
func set(address string, users int, think time.Duration) *plan.Plan {
	return planOf(address, users, think, "SET", "{key}", "{value}")
}

func planOf(address string, users int, think time.Duration, words ...string) *plan.Plan {
	return &plan.Plan{
		Run: "bottleneck", Pods: 1, Interval: 100 * time.Millisecond, Info: 500 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{
			Connections:    users,
			Pipeline:       1,
			DialTimeout:    time.Second,
			RequestTimeout: 2 * time.Second,
			Protocol:       2,
		},
		Shape: plan.Shape{Users: users, ThinkTime: think, WarmUp: recordedFrom, Duration: provokeLength},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "it", Weight: 1, Words: words}},
			Keyspace: plan.Keyspace{Prefix: "k:", Keys: 100_000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 100, MaxBytes: 100},
		},
	}
}

// occupy opens a connection per period until the load ends.
func occupy(address string, period time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		var held []net.Conn
		defer func() {
			for _, c := range held {
				_ = c.Close()
			}
		}()
		tick := time.NewTicker(period)
		defer tick.Stop()
		for ctx.Err() == nil {
			if c, err := net.Dial("tcp", address); err == nil {
				held = append(held, c)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
}

// recordRun runs the load in this process; beside is called when it has begun, and must return when ctx ends.
func recordRun(t *testing.T, p *plan.Plan, beside func(context.Context)) *merged.Series {
	t.Helper()
	return recordUntil(t, p, beside, func(*merged.Series) bool { return false })
}

// recordUntil is recordRun, but ends the load as soon as the record is sufficient.
func recordUntil(
	t *testing.T, p *plan.Plan, beside func(context.Context), enough func(*merged.Series) bool,
) *merged.Series {
	t.Helper()
	runner, err := engine.New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := runner.Prepare(ctx, nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	if beside == nil {
		close(done)
	} else {
		go func() { defer close(done); beside(ctx) }()
	}
	start := time.Now()
	s := merged.New(p.Run, start, p.Interval, p.Operations(), 1)
	if err := runner.Run(ctx, start, runner.Watch(NewSelf().Read, func(iv *record.Interval) {
		if err := s.Add(0, iv); err != nil {
			t.Error(err)
		}
		if enough(s) {
			cancel()
		}
	})); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	s.Finish(0)
	return s
}
