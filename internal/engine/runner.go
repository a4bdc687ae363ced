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
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Runner is one pod's part of a run. Prepare is called once, then Run once.
type Runner struct {
	run      *run
	probes   []*prober // one for each shard; none where the plan has none
	observer *observer // nil = none
	server   atomic.Pointer[record.Server]
	layout   atomic.Pointer[topology.Map] // as Prepare found it
	started  atomic.Pointer[time.Time]
	launched atomic.Bool // all loops run
	sampling sampling
	stepping sync.Mutex // one Step at a time
}

// sampling is what Run's own goroutine keeps between intervals.
type sampling struct {
	pace *successPace
}

// Option changes how a Runner works.
type Option func(*Runner)

// WithPassword gives the password itself, instead of the file in the plan: for a run from the command line.
func WithPassword(password string) Option {
	return func(r *Runner) { r.run.dialer.password = &password }
}

// WithoutRecording counts only how many requests ended, in the last interval: to measure what recording costs. Every outcome counts as ok.
func WithoutRecording() Option { return func(r *Runner) { r.run.mute = true } }

// WithDialer makes every connection of the run with dial, which gets addresses as the plan has them, for transports without file descriptors. The loops then wait on
// channels and Go's timers instead of epoll: slower, and less precise than a real load should be, but able to run in virtual time. A deployment that is followed
// (Target.Topology) is still asked over TCP, and the driver GoRedis does not do TLS over it.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(r *Runner) { r.run.dialer.tcp, r.run.portable = dial, true }
}

// New checks the plan and lays out pod's share of it, 0 <= pod < p.Pods. Errors are *plan.Error with PlanInvalid.
func New(p *plan.Plan, pod int, options ...Option) (*Runner, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if pod < 0 || pod >= p.Pods {
		return nil, &plan.Error{Reason: plan.PlanInvalid, Message: fmt.Sprintf("spec.pods.count: there is no pod %d of %d", pod, p.Pods)}
	}
	n := &run{
		plan: p, pod: pod, length: int64(p.Shape.Length()), timeout: int64(p.Client.RequestTimeout),
		users: plan.NewSchedule(p.Shape),
		gaps:  newGapLog(2 * unknownPace),
		dialer: &dialer{
			target: p.Target, timeout: p.Client.DialTimeout, protocol: p.Client.Protocol,
			tcp:    newResolver().tcp,
			hedges: make(chan struct{}, p.Client.Connections+256),
		},
	}
	if err := n.chooseWorkload(); err != nil {
		return nil, err
	}
	n.scanEvery = min(max(n.timeout/20, scanShortest), scanLongest)
	r := &Runner{run: n, sampling: sampling{newSuccessPace(int64(p.Interval))}}
	if p.Shape.OpenLoop() {
		n.pacer.Store(newPacer(p, pod))
	}
	n.layOut()
	n.budget.left.Store(math.MaxInt64)
	if p.Shape.Requests > 0 {
		n.budget.left.Store(int64(share(p.Shape.Requests, uint64(p.Pods), uint64(pod))))
	}
	if p.Probe.Rate > 0 {
		first, err := newProber(n, 0, "")
		if err != nil {
			return nil, &plan.Error{Reason: plan.PlanInvalid, Message: "spec.probe: " + err.Error(), Err: err}
		}
		r.probes = []*prober{first}
	}
	if p.Info > 0 && pod == 0 {
		r.observer = &observer{run: n, every: p.Info}
	}
	for _, o := range options {
		o(r)
	}
	return r, nil
}

// Server is the reading of INFO that Prepare made, At = 0; nil before it was made, or where the server refuses INFO. It may be called while Prepare and Run go on.
func (r *Runner) Server() *record.Server {
	return r.server.Load()
}

// Layout is how the deployment looked when Prepare found it out; nil before, and where there is nothing to find out: one server at an address.
// It may be called while Prepare and Run go on.
func (r *Runner) Layout() *topology.Map { return r.layout.Load() }

// StartedAt is when the load really began, the zero time before. It may be called while Run goes on.
func (r *Runner) StartedAt() time.Time {
	if t := r.started.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Run waits for start, runs the load, and calls sink from its own goroutine with every finished interval, from index 0 without holes, also
// where nothing happened. It returns when no further interval will come. If ctx ends it stops sending, waits for at most 100 ms for what is
// in flight (which then counts as unknown), delivers the interval that was open and returns ctx's cause.
// Requests in flight at the run's end are waited for; they are recorded in the last interval.
func (r *Runner) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	n := r.run
	n.start = withMonotonic(start)
	defer r.close()
	wake, err := n.newWaiter()
	if err != nil {
		return err
	}
	defer wake.close()
	stop := context.AfterFunc(ctx, wake.interrupt)
	wake.wait(time.Until(n.start))
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	began := time.Now()
	r.started.Store(&began)

	everything, cancel := context.WithCancel(ctx)
	defer cancel()
	done, err := r.launch(everything)
	if err != nil {
		return err
	}
	r.record(done, sink)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// withMonotonic is t with a monotonic reading, so that a step of the wall clock during the run does not move it.
func withMonotonic(t time.Time) time.Time {
	now := time.Now()
	return now.Add(t.Sub(now))
}
