package sim

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

// Load is one pod's share of an open loop in place of the load engine: evenly spaced arrivals, each succeeds after the
// plan's added latency if Redis responded when it was sent, and fails at once otherwise. As many are in flight as the
// plan allows; the others wait. It takes the steps of a search and keeps a ledger.
type Load struct {
	Plan  *plan.Plan
	Pod   int
	Redis *Redis

	mu    sync.Mutex
	steps []step
	began time.Time
	takes time.Duration // each request, beside the plan's added latency

	free    []time.Duration // when each request that may be in flight ends
	pending []request       // not yet recorded, in the order of their ends
	ops     int             // arrivals so far
	acked   []time.Duration // writes of the ledger
	lost    int             // of these, those that a check has found lost
	failed  uint64          // requests
	lastOK  time.Duration   // of the load
	probeOK time.Duration   // of the probe
}

// step is a rate of the whole run from an instant on; 0 ends the load.
type step struct {
	at   time.Duration
	rate float64
}

// request is one arrival and what becomes of it. Instants count from the start.
type request struct {
	op             int
	due, sent, end time.Duration
	ok             bool
}

// NewLoad is a Load that is laid out.
func NewLoad(plan *plan.Plan, pod int, redis *Redis) (*Load, error) {
	if plan.Shape.Rate <= 0 || len(plan.Shape.Stages) > 0 || plan.Shape.RampUp > 0 {
		return nil, errors.New("sim: only an open loop of a constant rate")
	}
	inFlight := plan.Client.Connections * plan.Client.Pipeline
	if plan.Shape.Users > 0 {
		inFlight = plan.Shape.Users / plan.Pods
	}
	return &Load{
		Plan:  plan,
		Pod:   pod,
		Redis: redis,
		steps: []step{{0, plan.Shape.Rate}},
		free:  make([]time.Duration, inFlight),
	}, nil
}

// Prepare implements agent.Runner.
func (l *Load) Prepare(ctx context.Context, progress func(string)) error {
	progress("dialling")
	return ctx.Err()
}

// Step sets another rate from a future instant on.
func (l *Load) Step(at time.Duration, rate float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.steps[len(l.steps)-1] == step{at, rate}:
		return nil
	case l.began.IsZero() || at <= time.Since(l.began):
		return errors.New("the step has passed")
	}
	l.steps = append(l.steps, step{at, rate})
	return nil
}

// Run implements agent.Runner.
func (l *Load) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	if err := agenttest.WaitUntil(ctx, start); err != nil {
		return err
	}
	l.mu.Lock()
	l.began, l.takes = start, l.Redis.taking(start)
	l.mu.Unlock()
	length := l.Plan.Shape.Length()
	for index := int64(0); ; index++ {
		from := time.Duration(index) * l.Plan.Interval
		over := length > 0 && from >= length || l.stepAt(from).rate == 0
		if over && len(l.pending) == 0 {
			return nil
		}
		to := from + l.Plan.Interval
		err := agenttest.WaitUntil(ctx, start.Add(to))
		if err != nil {
			return err
		}
		interval := l.interval(index)
		if !over {
			l.arrive(&interval, from, to)
		}
		l.settle(&interval, to)
		if !over {
			l.probe(&interval, from, to)
			l.check(&interval, from, to)
		}
		sink(&interval)
	}
}

// StartedAt is when the load began.
func (l *Load) StartedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// Server implements agent.Runner.
func (l *Load) Server() *record.Server {
	return &record.Server{
		Name:    "redis",
		Version: "7.0.15",
		Mode:    "standalone",
		Role:    "master",
	}
}

func (l *Load) interval(index int64) record.Interval {
	return record.Interval{
		Index:       index,
		Pods:        1,
		Ops:         make([]record.Op, len(l.Plan.Operations())),
		FirstError:  -1,
		LastError:   -1,
		FirstOK:     -1,
		LastOK:      -1,
		Connections: l.Plan.Client.Connections,
	}
}

// arrive sends the requests that were due in [from, to). Arrival j of a step is due (j + 1/2) / rate after its begin,
// and is pod j modulo pods'.
func (l *Load) arrive(iv *record.Interval, from, to time.Duration) {
	now := l.stepAt(from)
	if now.at == from && now.at > 0 { // a trial begins without the backlog of the previous one
		clear(l.free)
		for i := range l.free {
			l.free[i] = from
		}
	}
	spacing := float64(time.Second) / now.rate
	for j := max(0, int64(math.Ceil(float64(from-now.at)/spacing-0.5))); ; j++ {
		due := now.at + time.Duration((float64(j)+0.5)*spacing)
		if due >= to {
			return
		}
		if j%int64(l.Plan.Pods) == int64(l.Pod) {
			l.send(iv, due)
		}
	}
}

// stepAt is the step that holds at an instant.
func (l *Load) stepAt(at time.Duration) step {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.steps[0]
	for _, s := range l.steps {
		if s.at <= at {
			now = s
		}
	}
	return now
}

// send gives an arrival to the first of the requests in flight that ends.
func (l *Load) send(iv *record.Interval, due time.Duration) {
	slot := 0
	for i := range l.free {
		if l.free[i] < l.free[slot] {
			slot = i
		}
	}
	r := request{op: l.operation(), due: due, sent: max(due, l.free[slot])}
	iv.Ops[r.op].Due++
	if r.sent-due > l.Plan.Client.RequestTimeout {
		iv.Ops[r.op].Dropped++
		return
	}
	iv.Ops[r.op].Sent++
	r.ok = !l.Plan.Target.IsSet() || l.Redis.answered(l.Plan.Target.Addresses[0], l.began.Add(r.sent))
	r.end = r.sent
	if r.ok {
		r.end += l.Plan.Client.AddedLatency + l.takes
	}
	l.free[slot] = r.end
	l.pending = append(l.pending, r)
}

// operation is the next one: in turn, and the ledger's for its share.
func (l *Load) operation() int {
	l.ops++
	mixed := len(l.Plan.Workload.Operations())
	v := l.Plan.Verify
	if v != nil && l.ops%int(1/v.Share) == 0 {
		return mixed
	}
	return l.ops % mixed
}

// Verify reports the acknowledged ledger writes of ended server processes as lost: they have no persistence.
func (l *Load) Verify(ctx context.Context, progress func(string)) (*record.Ledger, error) {
	progress("reading")
	err := agenttest.WaitUntil(ctx, time.Now().Add(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	result := &record.Ledger{Acked: uint64(len(l.acked))}
	kept := l.Redis.keepsSince(l.Plan.Target.Addresses[0]).Sub(l.began)
	for _, at := range l.acked {
		if at >= kept {
			continue
		}
		if result.Lost == 0 {
			result.FirstLost = int64(at)
		}
		result.Lost++
		result.LastLost = int64(at)
	}
	if result.Lost > 0 {
		result.Losses = []record.Loss{{First: result.FirstLost, Last: result.LastLost, Count: result.Lost, Errors: l.failed}}
		result.Errors = l.failed
	}
	return result, nil
}

// check looks for lost writes of the ledger each second, if the server answers.
func (l *Load) check(iv *record.Interval, from, to time.Duration) {
	if l.Plan.Verify == nil || from/time.Second == to/time.Second {
		return
	}
	check := l.Redis.failedCheck()
	switch address := l.Plan.Target.Addresses[0]; {
	case check.Failure != "":
	case !l.Redis.answered(address, l.began.Add(to)):
		check.Failure = address + ": no reply"
	default:
		check.At = int64(to)
		kept, lost := l.Redis.keepsSince(address).Sub(l.began), 0
		for _, at := range l.acked {
			if at < kept {
				lost++
			}
		}
		if lost > l.lost {
			iv.Lost, l.lost = []uint64{uint64(lost - l.lost)}, lost
		}
	}
	iv.LedgerChecks = []record.LedgerCheck{check}
}

// settle records what ended before an instant.
func (l *Load) settle(iv *record.Interval, to time.Duration) {
	later := l.pending[:0]
	for _, r := range l.pending {
		switch op := &iv.Ops[r.op]; {
		case r.end >= to:
			later = append(later, r)
		case !r.ok:
			op.Fail++
			l.failed++
			op.Errors[record.ClassRefused]++
			if iv.FirstError < 0 {
				iv.FirstError = int64(r.end)
			}
			iv.LastError = int64(r.end)
		default:
			l.succeed(iv, op, r)
		}
	}
	l.pending = later
}

func (l *Load) succeed(iv *record.Interval, op *record.Op, r request) {
	op.OK++
	if r.op == len(l.Plan.Workload.Operations()) {
		l.acked = append(l.acked, r.end)
	}
	op.Latency = histogram.Merge(op.Latency, bucket(r.end-r.due))
	op.Service = histogram.Merge(op.Service, bucket(r.end-r.sent))
	if iv.FirstOK < 0 {
		iv.FirstOK = int64(r.end)
	}
	iv.LastOK = int64(r.end)
	iv.Gaps = append(iv.Gaps, gap(l.lastOK, r.end, l.Plan.Shape.Rate/float64(l.Plan.Pods))...)
	l.lastOK = r.end
}

// probe is the thin stream beside the load: the first pod's alone.
func (l *Load) probe(iv *record.Interval, from, to time.Duration) {
	if l.Plan.Probe.Rate == 0 || l.Pod > 0 {
		return
	}
	spacing := float64(time.Second) / l.Plan.Probe.Rate
	for j := max(0, int64(math.Ceil(float64(from)/spacing-0.5))); ; j++ {
		at := time.Duration((float64(j) + 0.5) * spacing)
		if at >= to {
			return
		}
		iv.Probe.Due++
		iv.Probe.Sent++
		if !l.Redis.answered(l.Plan.Target.Addresses[0], l.began.Add(at)) {
			iv.Probe.Fail++
			iv.Probe.Errors[record.ClassRefused]++
			continue
		}
		iv.Probe.OK++
		iv.Probe.Latency = histogram.Merge(iv.Probe.Latency, bucket(0))
		iv.ProbeGaps = append(iv.ProbeGaps, gap(l.probeOK, at, l.Plan.Probe.Rate)...)
		l.probeOK = at
	}
}

// gap is the time between two successes of a stream of the given rate, if it is more than twice the mean.
func gap(last, now time.Duration, rate float64) []record.Gap {
	if last == 0 || float64(now-last) <= 2*float64(time.Second)/rate {
		return nil
	}
	return []record.Gap{{From: int64(last), To: int64(now)}}
}

// buckets of single durations: a Histogram is 68 KiB.
var buckets sync.Map

func bucket(d time.Duration) histogram.Buckets {
	if known, ok := buckets.Load(d); ok {
		return known.(histogram.Buckets)
	}
	var h histogram.Histogram
	h.Record(int64(d))
	made := h.AppendTo(nil)
	buckets.Store(d, made)
	return made
}
