// Package agenttest has a load without Redis, and agents that run it, in memory or on loopback: for tests of both sides
// of the protocol.
package agenttest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// Runner is a scripted load: after Prepare it delivers Interval(Pod, i, Ops, Step) for i < Intervals, each when it is
// over.
type Runner struct {
	Pod, Ops  int
	Step      time.Duration
	Intervals int64

	Preparing  time.Duration // how long Prepare takes
	PrepareErr error
	FailAfter  int64 // with RunErr or Panic: after this many intervals
	RunErr     error
	Panic      any
	Late       time.Duration // how long after the start instant the load begins

	Verifying time.Duration // how long Verify takes
	Ledger    *record.Ledger
	Found     *record.Guarantees
	VerifyErr error

	mu      sync.Mutex
	started time.Time
}

// Prepare reports "prefilled 50 %", waits, and returns PrepareErr.
func (r *Runner) Prepare(ctx context.Context, progress func(string)) error {
	progress("prefilled 50 %")
	err := WaitUntil(ctx, time.Now().Add(r.Preparing))
	if err != nil {
		return err
	}
	return r.PrepareErr
}

// Run delivers the intervals.
func (r *Runner) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	if err := WaitUntil(ctx, start.Add(r.Late)); err != nil {
		return err
	}
	r.mu.Lock()
	r.started = time.Now()
	r.mu.Unlock()
	for i := range r.Intervals {
		if i == r.FailAfter && r.Panic != nil {
			panic(r.Panic)
		}
		if i == r.FailAfter && r.RunErr != nil {
			return r.RunErr
		}
		err := WaitUntil(ctx, start.Add(time.Duration(i+1)*r.Step))
		if err != nil {
			return err
		}
		iv := Interval(r.Pod, i, r.Ops, r.Step)
		sink(&iv)
	}
	return nil
}

// Interval returns what pod records for the interval index with the given number of operations: deterministic,
// different for different arguments, with every field set.
func Interval(pod int, index int64, ops int, step time.Duration) record.Interval {
	draw := rand.New(rand.NewPCG(uint64(pod)+1, uint64(index)+1))
	begin := index * int64(step)
	iv := record.Interval{
		Index: index, Pods: 1, Ops: make([]record.Op, ops), Probe: op(draw),
		FirstError: begin + draw.Int64N(int64(step)), FirstOK: begin + draw.Int64N(int64(step)/2),
		MaxLag: draw.Int64N(1e6), Connections: draw.IntN(50),
	}
	iv.LastError, iv.LastOK = iv.FirstError, iv.FirstOK+int64(step)/2-1
	for i := range iv.Ops {
		iv.Ops[i] = op(draw)
	}
	if index%7 == 3 {
		from := begin - int64(step) + draw.Int64N(1000)
		iv.Gaps = []record.Gap{{From: from, To: from + 7e6}}
	}
	if index%10 == 0 && pod == 0 {
		iv.Servers = []record.Server{
			{At: begin, Address: "redis:6379", RunID: "r", Name: "redis", CommandsProcessed: index * 100},
		}
	}
	return iv
}

func op(draw *rand.Rand) record.Op {
	o := record.Op{Counts: record.Counts{
		OK:       1 + draw.Uint64N(1000),
		Fail:     draw.Uint64N(3),
		Unknown:  draw.Uint64N(3),
		BytesOut: draw.Uint64N(1e6),
		BytesIn:  draw.Uint64N(1e6),
	}}
	o.Sent = o.OK + o.Fail + o.Unknown
	o.Due = o.Sent
	o.Errors[record.ClassReadOnly], o.Errors[record.ClassTimeout] = o.Fail, o.Unknown
	var latency histogram.Histogram
	for range 20 {
		latency.Record(1000 + draw.Int64N(5e6))
	}
	o.Latency = latency.AppendTo(nil)
	return o
}

// Guarantees returns Found.
func (r *Runner) Guarantees() *record.Guarantees { return r.Found }

// Verify waits, reports "reading", and returns Ledger and VerifyErr.
func (r *Runner) Verify(ctx context.Context, progress func(string)) (*record.Ledger, error) {
	progress("reading")
	err := WaitUntil(ctx, time.Now().Add(r.Verifying))
	if err != nil {
		return nil, err
	}
	return r.Ledger, r.VerifyErr
}

// StartedAt is when Run began to deliver.
func (r *Runner) StartedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// Server is a fixed reading.
func (r *Runner) Server() *record.Server {
	return &record.Server{Name: "redis", Version: "7.0.15", Role: "master"}
}

// WaitUntil waits until an instant, or returns the error of ctx if that ends before.
func WaitUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
