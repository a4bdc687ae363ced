package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// testPlan is one pod with 10 connections that set and get small values, for a second.
func testPlan(address string) *plan.Plan {
	return &plan.Plan{
		Run: "test", Pods: 1, Interval: 100 * time.Millisecond,
		Target: plan.Target{Addresses: []string{address}},
		Client: plan.Client{
			Connections:    10,
			Pipeline:       1,
			DialTimeout:    3 * time.Second,
			RequestTimeout: 3 * time.Second,
			Protocol:       3,
		},
		Shape: plan.Shape{Users: 10, Duration: time.Second},
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
	lost      uint64             // acknowledged ledger writes that were found lost during the load
	check     record.LedgerCheck // the latest one
	intervals []record.Interval
	sum       record.Op // over all operations
	probe     record.Op
	gaps      []record.Gap
	probeGaps []record.Gap
	servers   []record.Server
	maxLag    int64
	elapsed   time.Duration
}

// perInterval sums a count over the operations of each interval from..to-1.
func (o *outcome) perInterval(from, to int, of func(*record.Counts) uint64) []uint64 {
	var list []uint64
	for _, iv := range o.intervals[from:to] {
		var sum uint64
		for i := range iv.Ops {
			sum += of(&iv.Ops[i].Counts)
		}
		list = append(list, sum)
	}
	return list
}

func succeeded(c *record.Counts) uint64 { return c.OK }

func notDone(c *record.Counts) uint64 { return c.Fail + c.Unknown + c.Dropped }

// total is the sum of a list.
func total(list []uint64) (sum uint64) {
	for _, n := range list {
		sum += n
	}
	return sum
}

func addOp(into *record.Op, op *record.Op) {
	into.Add(&op.Counts)
	into.Latency = histogram.Merge(into.Latency, op.Latency)
	into.Service = histogram.Merge(into.Service, op.Service)
	into.Waited = histogram.Merge(into.Waited, op.Waited)
}

// collector gathers a run's intervals and checks the invariants of every run.
func collect(t *testing.T) (*outcome, func(*record.Interval)) {
	o := &outcome{}
	return o, func(iv *record.Interval) {
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
		o.lost += total(iv.Lost)
		for _, check := range iv.LedgerChecks {
			check.At = max(check.At, o.check.At)
			o.check = check
		}
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

// runPod prepares a pod of the plan, and runs it to its end.
func runPod(t *testing.T, p *plan.Plan, pod int, options ...Option) *Runner {
	t.Helper()
	r, err := New(p, pod, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, sink := collect(t)
	if err := r.Run(t.Context(), time.Now(), sink); err != nil {
		t.Fatal(err)
	}
	return r
}

// runPlan prepares and runs the plan to its end.
func runPlan(t *testing.T, p *plan.Plan, options ...Option) *outcome {
	t.Helper()
	r := prepared(t, p, options...)
	o, sink := collect(t)
	start := time.Now().Add(20 * time.Millisecond)
	if err := r.Run(t.Context(), start, sink); err != nil {
		t.Fatal(err)
	}
	o.elapsed = time.Since(start)
	return o
}

// inBackground runs a prepared runner; wait returns its outcome.
func inBackground(t *testing.T, ctx context.Context, r *Runner) (start time.Time, wait func() (*outcome, error)) {
	o, sink := collect(t)
	start = time.Now().Add(10 * time.Millisecond)
	var all sync.WaitGroup
	var err error
	all.Go(func() { err = r.Run(ctx, start, sink) })
	return start, func() (*outcome, error) {
		all.Wait()
		o.elapsed = time.Since(start)
		return o, err
	}
}

func describe(o *outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "due %d sent %d ok %d fail %d unknown %d dropped %d, maxLag %s, probe %+v, gaps %v, probe gaps %v\n",
		o.sum.Due, o.sum.Sent, o.sum.OK, o.sum.Fail, o.sum.Unknown, o.sum.Dropped, time.Duration(o.maxLag), o.probe.Counts,
		o.gaps, o.probeGaps)
	for c, n := range o.sum.Errors {
		if n > 0 {
			fmt.Fprintf(&b, "  %s %d", record.Class(c), n)
		}
	}
	fmt.Fprintf(&b, " latency p50 %s p99 %s max %s, service p99 %s", o.sum.Latency.Quantile(0.5),
		o.sum.Latency.Quantile(0.99), o.sum.Latency.Max(), o.sum.Service.Quantile(0.99))
	return b.String()
}

// duringRun runs the plan and calls what at the instant after its start.
func duringRun(t *testing.T, p *plan.Plan, after time.Duration, what func(), options ...Option) (*outcome, *Runner) {
	t.Helper()
	r := prepared(t, p, options...)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(after)))
	what()
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	return o, r
}

// addsUp checks that every request ended in one way: in an open loop each that was due, in a closed loop each that was
// sent.
func addsUp(t *testing.T, o *outcome) {
	t.Helper()
	ended := o.sum.OK + o.sum.Fail + o.sum.Unknown + o.sum.Dropped
	if len(o.sum.Service) == 0 {
		ended -= o.sum.Errors[record.ClassRefused] // closed loop: never sent, so never due
	}
	if o.sum.Due != ended {
		t.Errorf("requests are lost: %s", describe(o))
	}
	var classes uint64
	for _, n := range o.sum.Errors {
		classes += n
	}
	if classes != o.sum.Fail+o.sum.Unknown {
		t.Errorf("the classes do not add up: %s", describe(o))
	}
}

func longest(gaps []record.Gap) record.Gap {
	var most record.Gap
	for _, g := range gaps {
		if g.To-g.From > most.To-most.From {
			most = g
		}
	}
	return most
}

// longestGap is the longest gap.
func longestGap(gaps []record.Gap) time.Duration {
	var most time.Duration
	for _, g := range gaps {
		most = max(most, time.Duration(g.To-g.From))
	}
	return most
}

// shardGaps are the gaps of one shard.
func shardGaps(o *outcome, shard int) []record.Gap {
	return gapsAt(o, shard, func(iv *record.Interval) []record.ShardGap { return iv.ShardGaps })
}

func probeShardGaps(o *outcome, shard int) []record.Gap {
	return gapsAt(o, shard, func(iv *record.Interval) []record.ShardGap { return iv.ProbeShardGaps })
}

func gapsAt(o *outcome, shard int, of func(*record.Interval) []record.ShardGap) []record.Gap {
	var gaps []record.Gap
	for i := range o.intervals {
		for _, g := range of(&o.intervals[i]) {
			if g.Shard == shard {
				gaps = append(gaps, g.Gap)
			}
		}
	}
	return gaps
}

func wantReason(t *testing.T, p *plan.Plan, reason plan.Reason, words string, options ...Option) {
	t.Helper()
	r, err := New(p, 0, options...)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Prepare(t.Context(), nil)
	e, ok := errors.AsType[*plan.Error](err)
	if !ok || e.Reason != reason || !strings.Contains(e.Message, words) {
		t.Errorf("want %s with %q, have %v", reason, words, err)
		return
	}
	t.Log(err)
}
