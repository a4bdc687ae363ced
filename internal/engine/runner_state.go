// Package engine is the load itself: it sends a plan's requests to Redis and records, interval by interval, what became of each.
//
// # How the engine hangs together
//
// A Plan says what to send, how much and for how long; New checks it and lays out one pod's share. Prepare makes ready: it finds out how the
// deployment looks, dials, tries each command once, pre-fills, and establishes the connections. Run waits for T, lets the load run, and hands over one record.Interval after the other.
//
//   - A loop serves an equal part of the connections, and of the users or arrivals, from one goroutine over epoll (poller). Its demand
//     (closedLoop, openLoop) says what is due; the workload's source makes it a request; routes says to which pool of connections it goes; a conn
//     writes as many requests at once as may be in flight, follows the replies (resp.Scanner) and settles each request as ok, fail or
//     unknown. It allocates nothing per request and takes no lock but its own recorder's, once per wake-up.
//   - closedLoop keeps virtual users in a heap by next due time; their activity follows the schedule (ramp-up, stages).
//   - openLoop takes arrivals from a pure pacer, which fixes every arrival's due time in advance.
//   - connect (dialer) brings a broken connection back: at once, with a short backoff, with hedged attempts while others hang.
//   - recorder holds counts and histograms of the open interval and the next; gapLog notes each stretch without a success to the instant.
//   - prober is the thin open-loop stream beside the load, on connections of its own; observer reads INFO.
//   - Run's own goroutine closes intervals shortly after their end and calls the sink.
//
// All instants are nanoseconds since T on the monotonic clock.
package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Runner generates one pod's part of a load. Prepare must be called once, then Run once.
type Runner struct {
	run      *runState
	loops    []*loop
	callers  *callers  // replaces loops for workloads that perform whole operations
	probes   []*prober // one per shard; empty if the plan has no probe
	observer *observer // nil if INFO is not read
	server   atomic.Pointer[record.Server]
	layout   atomic.Pointer[topology.Map] // as discovered by Prepare
	started  atomic.Pointer[time.Time]
	launched atomic.Bool // all loops are running
	sampling sampling
	stepping sync.Mutex // one Step at a time
}

// sampling is the state that Run's goroutine keeps between intervals.
type sampling struct {
	pace *successPace
}

// Server returns the reading of INFO that Prepare made, with At = 0; nil before, or if the server rejects INFO. It is safe for use during Prepare
// and Run.
func (r *Runner) Server() *record.Server {
	return r.server.Load()
}

// Layout returns the topology that Prepare discovered; nil before, and for a standalone server. It is safe for use during Prepare and Run.
func (r *Runner) Layout() *topology.Map { return r.layout.Load() }

// StartedAt returns when the load actually began, the zero time before. It is safe for use during Run.
func (r *Runner) StartedAt() time.Time {
	if t := r.started.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// close closes the remaining connections.
func (r *Runner) close() {
	for _, l := range r.loops {
		l.close()
	}
	for _, p := range r.probes {
		p.close()
	}
	if c := r.callers; c != nil && c.close != nil {
		_ = c.close()
	}
	if r.run.audit == nil { // otherwise Verify still needs the primaries
		r.stopFollowing()
	}
}

// stopFollowing stops following the topology of the deployment.
func (r *Runner) stopFollowing() {
	if t := r.run.routes.tracker; t != nil {
		t.Close()
	}
}

// abort makes the loops stop sending and end.
func (r *Runner) abort() {
	r.run.aborted.Store(true)
	for _, l := range r.loops {
		l.nudge()
	}
}
