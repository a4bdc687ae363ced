package engine

import (
	"math"
	"runtime"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/loop"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// closeAfter is the delay between the end of an interval and closing it: requests that ended within
// the interval are recorded by then.
const closeAfter = 20 * time.Millisecond

// record closes the intervals in order and passes them to sink, until done is closed.
func (r *Runner) record(done <-chan struct{}, sink func(*record.Interval)) {
	n := r.run
	step := n.Recorder.Step
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := int64(0); ; i++ {
		r.shorten(i)
		var ripe <-chan time.Time
		if i < n.Recorder.Last { // the last interval is closed when the load ends
			timer.Reset(time.Duration((i+1)*step-n.Now()) + closeAfter)
			ripe = timer.C
		}
		select {
		case <-ripe:
			n.WokenUp()
			sink(r.interval(i, (i+1)*step, false))
			continue
		case <-done:
		}
		end := n.Now()
		if n.Length > 0 && end >= n.Length {
			end = n.Length
		}
		if at := r.shorten(i); at > i*step {
			end = min(end, at)
		}
		last := min(end/step, n.Recorder.Last)
		if last >= i {
			n.Recorder.SetLast(last)
		}
		for ; i <= last; i++ {
			sink(r.interval(i, min((i+1)*step, end), i == last))
		}
		return
	}
}

// shorten ends the record at the instant at which a step ended the load, and returns that instant;
// 0 = no step did. i is the open interval.
func (r *Runner) shorten(i int64) int64 {
	n := r.run
	if !n.Ended.Load() {
		return 0
	}
	at := int64(n.Pacer.Load().Stepped)
	last := max(i, (at-1)/n.Recorder.Step)
	if last < n.Recorder.Last {
		n.Recorder.SetLast(last)
	}
	return at
}

// interval closes interval i, which ends at end, and adds gaps, probe results and server readings.
func (r *Runner) interval(i, end int64, last bool) *record.Interval {
	n := r.run
	iv := n.Recorder.Close(i)
	iv.Connections = int(n.Connections.Load())
	n.CountDue(iv, i*n.Recorder.Step, end)
	r.gaps.Take(iv, n.Parts.Count, end, last)
	r.thresholds.Follow(iv, n.PlannedPace(end))
	for _, p := range r.probes {
		p.Complete(iv, i*n.Recorder.Step, end, last)
	}
	if r.observer != nil {
		iv.Servers, iv.Unobserved = r.observer.Take()
	}
	if r.checker != nil {
		before := end
		if last {
			before = clock.Never
		}
		iv.Lost, iv.LedgerChecks = r.checker.Take(before)
	}
	return iv
}

// Numbers of connections per event loop, and the bound of the loops: one loop saturates a core with
// some hundred thousand requests per second, or some ten thousand with TLS, and each needs at least
// 136 KiB per operation for its histograms.
const (
	connsPerLoop    = 64
	securedsPerLoop = 16
	maxLoops        = 8
)

// sharedDepth is the number of requests that may be in flight on a connection in mode Multiplexed.
const sharedDepth = 1024

// layOut creates the loops, with connections to the target's addresses: as many as the plan sets,
// or fewer if fewer can be busy at a time.
func (r *Runner) layOut() {
	n := r.run
	p := n.Plan
	pods, pod := int64(p.Pods), int64(n.Pod)
	count := int64(p.Client.Connections)
	most := p.Client.Pipeline
	if p.Client.Mode == plan.Multiplexed {
		most = sharedDepth
	}
	depth := func(int64) int { return most }
	inFlight := count * int64(most)
	if p.Shape.OpenLoop() {
		if p.Shape.Users > 0 {
			inFlight = min(inFlight, max(1, pace.Share(int64(p.Shape.Users), pods, pod)))
		}
		count = min(count, inFlight)
		conns := count
		depth = func(i int64) int { return int(pace.Share(inFlight, conns, i)) }
	} else {
		users := pace.Share(int64(math.Ceil(plan.NewSchedule(p.Shape).Peak())), pods, pod)
		count = min(count, users)
	}
	perLoop := int64(connsPerLoop)
	if p.Target.TLS != nil {
		perLoop = securedsPerLoop
	}
	loops := min(int64(runtime.GOMAXPROCS(0)), maxLoops, (count+perLoop-1)/perLoop)
	n.Recorder = interval.New(int64(p.Interval), len(n.Operations), len(p.Tallies()),
		max(1, int(loops)))
	if r.callers != nil {
		r.callers.Count = count
		return
	}
	if pacer := n.Pacer.Load(); pacer != nil {
		n.Pacer.Store(pacer.OnGrid(loops, inFlight))
	}
	for i := range loops {
		r.loops = append(r.loops, loop.New(n, i, loops, pace.Share(count, loops, i), depth))
	}
}
