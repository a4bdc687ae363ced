//go:build integration

package bottleneck

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/load"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
)

// set writes values of 100 bytes; think gives Redis and the load time between requests, so that nothing of the CPU is at its limit.
func set(address string, users int, think time.Duration) *plan.Plan {
	return planOf(address, users, think, "SET", "{key}", "{value}")
}

func planOf(address string, users int, think time.Duration, words ...string) *plan.Plan {
	return &plan.Plan{
		Run: "bottleneck", Pods: 1, Interval: 100 * time.Millisecond, Info: 500 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: users, Pipeline: 1, DialTimeout: time.Second, RequestTimeout: 2 * time.Second, Protocol: 2},
		Shape:  plan.Shape{Users: users, ThinkTime: think, WarmUp: time.Second, Duration: 6 * time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{{Name: "it", Weight: 1, Words: words}},
			Keyspace: plan.Keyspace{Prefix: "k:", Keys: 100_000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 100, MaxBytes: 100},
		},
	}
}

// record runs the load in this process; beside is called when it has begun, and must return when ctx ends.
func record(t *testing.T, p *plan.Plan, beside func(context.Context)) *sample.Series {
	t.Helper()
	runner, err := load.New(p, 0)
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
	s := sample.NewSeries(p.Run, start, p.Interval, p.Operations(), 1)
	if err := runner.Run(ctx, start, runner.Watch(NewSelf().Read, func(iv *sample.Interval) {
		if err := s.Add(0, iv); err != nil {
			t.Error(err)
		}
	})); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	s.Finish(0)
	return s
}

// expect names the bottleneck of a record.
func expect(t *testing.T, in Input, want Component, evidence string) {
	t.Helper()
	in.MeasuredFrom = time.Second
	got := Find(in)
	t.Logf("%s: %s", got.Component, got.Evidence)
	if got.Component != want || !strings.Contains(got.Evidence, evidence) {
		t.Errorf("want %s: ... %s ...", want, evidence)
	}
}

// The load runs in a process of its own that may use a tenth of a core.
func TestProvokeLoadGenerator(t *testing.T) {
	if file := os.Getenv("REDQUAKE_TEST_CAPPED_LOAD"); file != "" {
		cappedLoad(t, file)
		return
	}
	server := startRedis(t)
	text, err := json.Marshal(set(server.address, 20, 0))
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/record"
	cmd := exec.Command(os.Args[0], "-test.run=^TestProvokeLoadGenerator$")
	cmd.Env = append(os.Environ(), "REDQUAKE_TEST_CAPPED_LOAD="+file, "REDQUAKE_TEST_PLAN="+string(text))
	hold, err := cmd.StdinPipe() // it begins when this is closed: by then it has its limit
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
	s, err := sample.DecodeSeries(data)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, Input{Series: s}, LoadGenerator, " limit of 0.10 cores")
	agents := s.Agents()
	if last := agents[len(agents)-1]; last.ThrottledSeconds < 0.5 || last.CPULimit != 0.1 {
		t.Errorf("the last reading is %+v", last)
	}
}

func cappedLoad(t *testing.T, file string) {
	var p plan.Plan
	if err := json.Unmarshal([]byte(os.Getenv("REDQUAKE_TEST_PLAN")), &p); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	data, err := record(t, &p, nil).Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProvokeNetwork(t *testing.T) {
	server := startRedis(t)
	expect(t, Input{Series: record(t, set(delayed(t, server.address, 15*time.Millisecond), 10, 0), nil)}, Network, "of the median latency of ")
}

func TestProvokeCPULimit(t *testing.T) {
	server := startRedis(t)
	capCPU(t, server.pid, 0.1)
	s := record(t, set(server.address, 10, 0), nil)
	expect(t, Input{Series: s, ServerCPULimit: 0.1}, CPULimit, "of its container's limit of 0.10 cores")
}

func TestProvokeRedisMainThread(t *testing.T) {
	server := startRedis(t, "--slowlog-log-slower-than", "2000")
	server.favour(t)
	p := planOf(server.address, 4, 0, "EVAL", "local x = 0 for i = 1, 1000000 do x = x + i end return 1", "0")
	p.Client.Pipeline, p.Client.RequestTimeout = 4, 5*time.Second // Redis has work while the load's turn to send comes, however late on a busy machine
	s := record(t, p, nil)
	expect(t, Input{Series: s}, RedisMainThread, "the longest EVAL with")
}

// The disk takes twenty writes a second where the machine lets its block devices be throttled (cgroup v1 or v2, as root); else it is as slow as it is,
// and the threshold of what Redis calls slow is 1 ms.
func TestProvokeDisk(t *testing.T) {
	server := startRedis(t, "--appendonly", "yes", "--appendfsync", "always", "--latency-monitor-threshold", "1")
	throttleWrites(t, server.pid, server.dir, 20)
	s := record(t, set(server.address, 10, 0), nil)
	expect(t, Input{Series: s}, Disk, "with appendfsync always")
}

func TestProvokeMemory(t *testing.T) {
	server := startRedis(t, "--maxmemory", "5mb", "--maxmemory-policy", "allkeys-lru")
	p := set(server.address, 20, 10*time.Millisecond)
	p.Workload.Values = plan.Values{MinBytes: 2000, MaxBytes: 2000}
	expect(t, Input{Series: record(t, p, nil)}, Memory, "of maxmemory 5.0 MiB, policy allkeys-lru")
}

func TestProvokeMemoryRefused(t *testing.T) {
	server := startRedis(t, "--maxmemory", "5mb")
	p := set(server.address, 20, 10*time.Millisecond)
	p.Workload.Values = plan.Values{MinBytes: 2000, MaxBytes: 2000}
	expect(t, Input{Series: record(t, p, nil)}, Memory, "for want of memory")
}

func TestProvokeClients(t *testing.T) {
	server := startRedis(t, "--maxclients", "30")
	s := record(t, set(server.address, 10, 10*time.Millisecond), func(ctx context.Context) {
		var held []net.Conn
		defer func() {
			for _, c := range held {
				_ = c.Close()
			}
		}()
		for ctx.Err() == nil {
			if c, err := net.Dial("tcp", server.address); err == nil {
				held = append(held, c)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	expect(t, Input{Series: s}, Clients, "maxclients is 30")
}

// A healthy Redis under a load that leaves it time: nothing is at its limit but the round trip itself.
func TestNothingProvoked(t *testing.T) {
	server := startRedis(t)
	got := Find(Input{Series: record(t, set(server.address, 10, 10*time.Millisecond), nil), MeasuredFrom: time.Second})
	t.Logf("%s: %s", got.Component, got.Evidence)
	if got.Component != None && got.Component != Network {
		t.Errorf("%s: %s", got.Component, got.Evidence)
	}
}
