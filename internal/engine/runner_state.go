package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/callers"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/ledger"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/loop"
	"github.com/redquake/redquake/internal/engine/observer"
	"github.com/redquake/redquake/internal/engine/probe"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Runner generates one pod's part of a load. Prepare must be called once, then Run once.
type Runner struct {
	run     *load.State
	loops   []*loop.Loop
	callers *callers.Callers // replaces loops for workloads that perform whole operations
	probing
	ledgerReaders
	gaps     gaps.Merge         // of the load
	laidOut  bool               // the layout is given: see WithLayout
	observer *observer.Observer // nil if INFO is not read
	server   atomic.Pointer[record.Server]
	// idleRoundTrip is the shortest round trip before the load, nanoseconds; 0 = not measured. Prepare
	// sets it.
	idleRoundTrip int64
	layout        atomic.Pointer[topology.Map] // as discovered by Prepare
	launching
	thresholds *gaps.Follower // of the gap logs
	stepping   sync.Mutex     // one Step at a time
	patience   time.Duration
	waiting    atomic.Pointer[plan.Error] // what Prepare waits for
	tried      int                        // operations that Prepare has run once
	unanswered unanswered                 // of the next one
	findings   findings
}

// probing is what measures outages beside the load.
type probing struct {
	probes []*probe.Prober // one per shard; empty if the plan has no probe
	prober *probe.Loop     // serves them; nil before launch
}

// launching tells whether the load has begun.
type launching struct {
	started    atomic.Pointer[time.Time]
	launched   atomic.Bool // all loops are running
	processors int         // GOMAXPROCS as it was before launch
}

// ledgerReaders read the ledger, if one is kept.
type ledgerReaders struct {
	books   []*ledger.Book  // of this pod
	audit   *ledger.Audit   // nil if no ledger is kept
	sampler *ledger.Sampler // nil if nothing is sampled during the load
	checker *ledger.Checker // nil if no ledger is kept
}

// Server returns the reading of INFO that Prepare made, with At = 0; nil before, or if the server
// rejects INFO. It is safe for use during Prepare and Run.
func (r *Runner) Server() *record.Server {
	return r.server.Load()
}

// Layout returns the topology that Prepare discovered; nil before, and for a standalone server. It
// is safe for use during Prepare and Run.
func (r *Runner) Layout() *topology.Map {
	return r.layout.Load()
}

// Named says which sentinels name which server as the primary now; "" before Prepare has found
// them, and without sentinels. It is safe for use after Prepare.
func (r *Runner) Named() string {
	return r.run.Routes.Current().Named
}

// StartedAt returns when the load actually began, the zero time before. It is safe for use during
// Run.
func (r *Runner) StartedAt() time.Time {
	if t := r.started.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// close closes the remaining connections.
func (r *Runner) close() {
	for _, l := range r.loops {
		l.Close()
	}
	for _, p := range r.probes {
		p.Close()
	}
	if r.prober != nil {
		r.prober.Close()
	}
	if r.callers != nil {
		r.callers.Close()
	}
	if r.audit == nil && !r.cleansUp() { // otherwise Verify or CleanUp still needs the primaries
		r.stopFollowing()
	}
}

// stopFollowing stops following the topology of the deployment.
func (r *Runner) stopFollowing() {
	if t := r.run.Routes.Tracker; t != nil {
		t.Close()
	}
}

// abort makes the loops stop sending and end.
func (r *Runner) abort() {
	r.run.Aborted.Store(true)
	for _, l := range r.loops {
		l.Nudge()
	}
}

// ErrorSamples returns the first error message of the servers for each class; without one, for
// instance of a timeout, it is empty. It is safe for use during Run.
func (r *Runner) ErrorSamples() [record.NumClasses]string {
	return r.run.Samples.List()
}

// Self reads the load generator's own resource use: CPU, limits, memory. It is called once per
// interval.
type Self func() record.AgentUse

// Watch returns a sink for Run that completes each interval with a reading of the load generator
// itself, and then calls sink.
func (r *Runner) Watch(self Self, sink func(*record.Interval)) func(*record.Interval) {
	return func(iv *record.Interval) {
		use := self()
		use.At, use.Pod, use.BusyThreads = r.run.Now(), r.run.Pod, r.busyThreads()
		use.IdleRoundTrip = r.idleRoundTrip
		if r.observer != nil {
			use.RoundTrip = r.observer.TakeRoundTrip()
		}
		iv.Agents = append(iv.Agents[:0], use)
		sink(iv)
	}
}

// idlePings is how many PINGs measure the round trip before the load: the shortest is that of a
// network and a server that were idle.
const idlePings = 10

// measureIdle measures the round trip before the load; 0 if the user may not run PING.
func measureIdle(ctx context.Context, c *redis.Conn) (shortest int64) {
	for range idlePings {
		sent := time.Now()
		if _, err := c.Do(ctx, "PING"); err != nil {
			return shortest
		}
		took := max(int64(time.Since(sent)), 1)
		if shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest
}

// busyThreads is how many threads can send load at the same time: one per event loop, or all of
// GOMAXPROCS.
func (r *Runner) busyThreads() int {
	if r.callers != nil || r.run.Portable { // each connection has its own goroutines
		return r.processors
	}
	return max(1, len(r.loops))
}

// stepMargin is the minimum time between a call of Step and the instant it sets: the loops must
// apply the step before it begins.
const stepMargin = 10 * time.Millisecond

// Step sets the rate over all pods from at on, counted from the start of the run: the trials of a
// search are decided while it runs. Rate 0 ends the load at at. Repeating the last step has no
// effect, nor has any step after the end. It is safe for use during Run. The error states why a
// step is too late or invalid.
func (r *Runner) Step(at time.Duration, rate float64) error {
	n := r.run
	r.stepping.Lock()
	defer r.stepping.Unlock()
	p := n.Pacer.Load()
	switch {
	case n.Plan.Shape.Search == nil || p == nil:
		return errors.New("the load has a fixed rate: it does not search for one")
	case !(rate >= 0) || rate > n.Plan.Shape.Search.To:
		return fmt.Errorf("the rate %v is not between 0 and %v", rate, n.Plan.Shape.Search.To)
	case p.Stepped == at && p.StepRate == rate && at > 0, n.Ended.Load():
		return nil
	case !r.launched.Load():
		return errors.New("the load has not started")
	case at < p.Stepped:
		return fmt.Errorf("the step at %v is before the previous step at %v", at, p.Stepped)
	case int64(at-stepMargin) < n.Now():
		return fmt.Errorf("the step at %v is in the past", at)
	case n.Length > 0 && int64(at) >= n.Length:
		return fmt.Errorf("the step at %v is after the end of the load", at)
	}
	n.Pacer.Store(p.Step(at, time.Duration(n.Length), rate))
	n.Ended.Store(rate == 0)
	for _, l := range r.loops {
		l.Nudge()
	}
	return nil
}
