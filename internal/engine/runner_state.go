package engine

import (
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
	"github.com/redquake/redquake/internal/redis/topology"
)

// Runner generates one pod's part of a load. Prepare must be called once, then Run once.
type Runner struct {
	run     *load.State
	loops   []*loop.Loop
	callers *callers.Callers // replaces loops for workloads that perform whole operations
	probes  []*probe.Prober  // one per shard; empty if the plan has no probe
	ledgerReaders
	gaps     gaps.Merge         // of the load
	laidOut  bool               // the layout is given: see WithLayout
	observer *observer.Observer // nil if INFO is not read
	server   atomic.Pointer[record.Server]
	// idleRoundTrip is the shortest round trip before the load, nanoseconds; 0 = not measured. Prepare
	// sets it.
	idleRoundTrip int64
	layout        atomic.Pointer[topology.Map] // as discovered by Prepare
	started       atomic.Pointer[time.Time]
	launched      atomic.Bool    // all loops are running
	thresholds    *gaps.Follower // of the gap logs
	stepping      sync.Mutex     // one Step at a time
	patience      time.Duration
	waiting       atomic.Pointer[plan.Error] // what Prepare waits for
	tried         int                        // operations that Prepare has run once
	unanswered    unanswered                 // of the next one
}

// ledgerReaders read the ledger, if one is kept.
type ledgerReaders struct {
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
	if r.callers != nil {
		r.callers.Close()
	}
	if r.audit == nil { // otherwise Verify still needs the primaries
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
