//go:build integration

package load

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/resp"
	"github.com/redquake/redquake/internal/sample"
)

// redisProcess is a real redis-server of a test on loopback.
type redisProcess struct {
	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
	out  bytes.Buffer
}

// freePort asks the kernel for a port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// startRedis starts a server with further arguments and waits until it accepts connections.
func startRedis(t testing.TB, args ...string) *redisProcess {
	t.Helper()
	r := &redisProcess{t: t, port: freePort(t), args: append([]string{"--dir", t.TempDir()}, args...)}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *redisProcess) address() string { return "127.0.0.1:" + strconv.Itoa(r.port) }

// launch starts the process without waiting for it.
func (r *redisProcess) launch() {
	r.t.Helper()
	args := []string{"--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
	r.cmd = exec.Command("redis-server", append(args, r.args...)...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redisProcess) start() {
	r.t.Helper()
	r.launch()
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := net.Dial("tcp", r.address())
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			r.kill()
			r.t.Fatalf("redis-server does not listen: %s", r.out.String())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *redisProcess) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redisProcess) kill() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.cmd = nil
}

// do sends one command on a connection of its own.
func (r *redisProcess) do(words ...string) resp.Value {
	r.t.Helper()
	c, err := net.Dial("tcp", r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	v, err := ask(c, 5*time.Second, resp.AppendCommand(nil, words...))
	if err != nil {
		r.t.Fatalf("%v: %v", words, err)
	}
	return v
}

// testPlan is one pod with 10 connections that set and get small values, for a second.
func testPlan(address string) *plan.Plan {
	return &plan.Plan{
		Run: "test", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{Connections: 10, Pipeline: 1, DialTimeout: 3 * time.Second, RequestTimeout: 3 * time.Second, Protocol: 3},
		Shape:  plan.Shape{Users: 10, Duration: time.Second},
		Workload: plan.Workload{
			Commands: []plan.Command{
				{Name: "set", Weight: 1, Words: []string{"SET", "{key}", "{value}"}},
				{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}},
			},
			Keyspace: plan.Keyspace{Prefix: "t:", Keys: 1000, Distribution: plan.Uniform},
			Values:   plan.Values{MinBytes: 32, MaxBytes: 32},
		},
		Probe: plan.Probe{Rate: 100, Words: []string{"SET", "probe:{user}", "{seq}", "EX", "60"}},
		Info:  200 * time.Millisecond,
	}
}

// outcome is a whole run, summed up.
type outcome struct {
	intervals []sample.Interval
	sum       sample.Op // over all operations
	probe     sample.Op
	gaps      []sample.Gap
	probeGaps []sample.Gap
	servers   []sample.Server
	maxLag    int64
	elapsed   time.Duration
	late      time.Duration // by which a timer of the test was late at most: how busy the machine was
}

// rate is successes per second over intervals from..to-1.
func (o *outcome) rate(from, to int, step time.Duration) float64 {
	var ok uint64
	for _, iv := range o.intervals[from:to] {
		for i := range iv.Ops {
			ok += iv.Ops[i].OK
		}
	}
	return float64(ok) / (time.Duration(to-from) * step).Seconds()
}

func addOp(into *sample.Op, op *sample.Op) {
	into.Due += op.Due
	into.Sent += op.Sent
	into.OK += op.OK
	into.Fail += op.Fail
	into.Unknown += op.Unknown
	into.Dropped += op.Dropped
	into.BytesIn += op.BytesIn
	into.BytesOut += op.BytesOut
	for c := range op.Errors {
		into.Errors[c] += op.Errors[c]
	}
	into.Latency = sample.Merge(into.Latency, op.Latency)
	into.Service = sample.Merge(into.Service, op.Service)
	into.Waited = sample.Merge(into.Waited, op.Waited)
}

// collector gathers a run's intervals and checks what is true of every run.
func collect(t *testing.T) (*outcome, func(*sample.Interval)) {
	o := &outcome{}
	return o, func(iv *sample.Interval) {
		if iv.Index != int64(len(o.intervals)) {
			t.Errorf("interval %d came in place %d", iv.Index, len(o.intervals))
		}
		for i := range iv.Ops {
			op := &iv.Ops[i]
			if op.Latency.Count() != op.OK || op.Waited.Count() != op.Fail+op.Unknown {
				t.Errorf("interval %d op %d: %d latencies for %d ok, %d waits for %d+%d errors", iv.Index, i,
					op.Latency.Count(), op.OK, op.Waited.Count(), op.Fail, op.Unknown)
			}
			addOp(&o.sum, op)
		}
		addOp(&o.probe, &iv.Probe)
		o.gaps = append(o.gaps, iv.Gaps...)
		o.probeGaps = append(o.probeGaps, iv.ProbeGaps...)
		o.servers = append(o.servers, iv.Servers...)
		o.maxLag = max(o.maxLag, iv.MaxLag)
		o.intervals = append(o.intervals, *iv)
	}
}

// prepared is a runner that is ready for Run.
func prepared(t *testing.T, p *plan.Plan, options ...Option) *Runner {
	t.Helper()
	r, err := New(p, 0, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// runPlan prepares and runs the plan to its end.
func runPlan(t *testing.T, p *plan.Plan, options ...Option) *outcome {
	t.Helper()
	r := prepared(t, p, options...)
	o, sink := collect(t)
	start, stop := time.Now(), watchTimer()
	if err := r.Run(t.Context(), start.Add(20*time.Millisecond), sink); err != nil {
		t.Fatal(err)
	}
	o.elapsed, o.late = time.Since(start), stop()
	return o
}

// inBackground runs a prepared runner; wait returns what came of it.
func inBackground(t *testing.T, ctx context.Context, r *Runner) (start time.Time, wait func() (*outcome, error)) {
	o, sink := collect(t)
	stop := watchTimer()
	start = time.Now().Add(10 * time.Millisecond)
	var all sync.WaitGroup
	var err error
	all.Go(func() { err = r.Run(ctx, start, sink) })
	return start, func() (*outcome, error) {
		all.Wait()
		o.elapsed, o.late = time.Since(start), stop()
		return o, err
	}
}

func describe(o *outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "due %d sent %d ok %d fail %d unknown %d dropped %d, maxLag %s, timer late %s, probe %+v, gaps %v, probe gaps %v\n",
		o.sum.Due, o.sum.Sent, o.sum.OK, o.sum.Fail, o.sum.Unknown, o.sum.Dropped, time.Duration(o.maxLag), o.late, o.probe.Counts, o.gaps, o.probeGaps)
	for c, n := range o.sum.Errors {
		if n > 0 {
			fmt.Fprintf(&b, "  %s %d", sample.Class(c), n)
		}
	}
	fmt.Fprintf(&b, " latency p50 %s p99 %s max %s, service p99 %s", o.sum.Latency.Quantile(0.5), o.sum.Latency.Quantile(0.99), o.sum.Latency.Max(), o.sum.Service.Quantile(0.99))
	return b.String()
}

// watchTimer lets a timer run; stop tells how late it was at most.
func watchTimer() (stop func() time.Duration) {
	quit, most := make(chan struct{}), make(chan time.Duration, 1)
	go func() {
		const nap = time.Millisecond
		var worst time.Duration
		for {
			select {
			case <-quit:
				most <- worst
				return
			default:
			}
			began := time.Now()
			time.Sleep(nap)
			worst = max(worst, time.Since(began)-nap)
		}
	}()
	return func() time.Duration {
		close(quit)
		return <-most
	}
}
