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
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
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
		return nil, &plan.Error{Reason: plan.PlanInvalid, Message: fmt.Sprintf("pods: there is no pod %d of %d", pod, p.Pods)}
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
			return nil, &plan.Error{Reason: plan.PlanInvalid, Message: "probe.words: " + err.Error(), Err: err}
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

// perLoop is how many connections one loop serves before another one is worth its thread, and loopsMost bounds the loops: one fills a core
// with some hundred thousand requests per second, and each costs 136 KiB and more per operation for its records.
const (
	perLoop   = 64
	loopsMost = 8
)

// sharedDepth is how many requests may be in flight on a connection that users share.
const sharedDepth = 1024

// layOut makes the loops, and for a target that is used as it is their connections: as many as the plan says, or fewer where fewer can ever be busy.
func (r *run) layOut() {
	p := r.plan
	pods, pod := int64(p.Pods), int64(r.pod)
	count := int64(p.Client.Connections)
	most := p.Client.Pipeline
	if p.Client.Mode == plan.Multiplexed {
		most = sharedDepth
	}
	depth := func(int64) int { return most }
	if p.Shape.OpenLoop() {
		flying := count * int64(most)
		if p.Shape.Users > 0 {
			flying = min(flying, max(1, share(int64(p.Shape.Users), pods, pod)))
		}
		count = min(count, flying)
		conns := count
		depth = func(i int64) int { return int(share(flying, conns, i)) }
	} else {
		users := share(int64(math.Ceil(plan.NewSchedule(p.Shape).Peak())), pods, pod)
		count = min(count, users)
	}
	loops := min(int64(runtime.GOMAXPROCS(0)), loopsMost, (count+perLoop-1)/perLoop)
	r.rec = newRecorder(int64(p.Interval), len(r.operations), len(p.Tallies()), max(1, int(loops)))
	if r.callers != nil {
		r.callers.most = count
		return
	}
	for i := range loops {
		l := r.newLoop(i, loops)
		l.connsPerPool, l.depth = share(count, loops, i), depth
		l.reach(0)
		r.loops = append(r.loops, l)
	}
}

// newLoop is loop number i of loops.
func (r *run) newLoop(i, loops int64) *loop {
	p := r.plan
	l := &loop{
		run: r, shard: r.rec.shards[i], in: make([]byte, readBuffer), layout: one, first: i, stride: loops,
		source: r.redis.Source(int64(r.pod)*loops+i, int64(p.Pods)*loops, false),
	}
	l.follower, _ = l.source.(workload.Follower)
	l.shares, l.maxAge, l.added = p.Client.Mode == plan.Multiplexed, int64(p.Client.MaxAge), int64(p.Client.AddedLatency)
	if r.pacer.Load() != nil {
		l.demand = newOpenLoop(l, i, loops)
	} else {
		l.demand = newClosedLoop(l, i, loops)
	}
	return l
}

// newPool makes the loop's connections to a place; they are dialled at once where the loop runs already.
func (l *loop) newPool(to place, conns int64) *pool {
	p := &pool{place: to}
	for i := range conns {
		number := l.first + i*l.stride
		c := &conn{loop: l, pool: p, number: number, index: int32(len(l.conns)), depth: l.depth(number)}
		p.conns, l.conns = append(p.conns, c), append(l.conns, c)
		if l.dialing != nil {
			c.connect(l.dialing)
		}
	}
	l.pools = append(l.pools, p)
	return p
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

// launch starts all that runs beside the recording, and returns what is closed when load and probe are through.
func (r *Runner) launch(ctx context.Context) (<-chan struct{}, error) {
	n := r.run
	if n.length > 0 {
		n.rec.setLast((n.length - 1) / n.rec.step)
	}
	var load, all sync.WaitGroup
	probing, endProbe := context.WithCancel(ctx)
	for _, p := range r.probes {
		if err := p.prepare(); err != nil {
			endProbe()
			return nil, err
		}
		all.Go(func() { p.loop(ctx, probing) })
	}
	var observing sync.WaitGroup
	if r.observer != nil {
		observing.Go(func() { r.observer.loop(probing) })
	}
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		if n.sampler != nil {
			_ = n.sampler.Run(probing) // the books found keys in every shard, so it does, too
		}
	}()
	for _, l := range n.loops {
		if err := l.open(); err != nil {
			endProbe()
			return nil, err
		}
	}
	for _, l := range n.loops {
		load.Go(func() { l.serve(ctx) })
	}
	if n.callers != nil {
		if err := n.callers.start(ctx, &load); err != nil {
			endProbe()
			return nil, err
		}
	}
	r.launched.Store(true)
	stop := context.AfterFunc(ctx, n.abort)
	done := make(chan struct{})
	go func() {
		load.Wait()
		if !n.lastsUntilEnd(ctx) {
			endProbe() // the probe ends with the load
		}
		all.Wait()
		endProbe()
		observing.Wait()
		<-sampled
		stop()
		close(done)
	}()
	return done, nil
}

// lastsUntilEnd waits for the run's end when its length says so, as the last request may be long before it. It returns false when the run is over
// before: the requests are done, or ctx has ended.
func (r *run) lastsUntilEnd(ctx context.Context) bool {
	requests, pacer := r.plan.Shape.Requests, r.pacer.Load()
	mine := int64(share(requests, uint64(r.plan.Pods), uint64(r.pod)))
	switch {
	case r.length == 0 || r.ended.Load(),
		requests > 0 && pacer == nil && r.budget.left.Load() == 0,
		requests > 0 && pacer != nil && pacer.total == mine:
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(r.length - r.now())):
		return true
	}
}

// abort makes the loops send nothing more, and end.
func (r *run) abort() {
	r.aborted.Store(true)
	for _, l := range r.loops {
		l.nudge()
	}
}

// forgetDeployment ends the following of the deployment.
func (r *Runner) forgetDeployment() {
	if t := r.run.routes.tracker; t != nil {
		t.Close()
	}
}

// close ends what is left of the runner's connections.
func (r *Runner) close() {
	for _, l := range r.run.loops {
		l.close()
	}
	for _, p := range r.probes {
		p.close()
	}
	if c := r.run.callers; c != nil && c.close != nil {
		_ = c.close()
	}
	if r.run.audit == nil { // else Verify still asks who is primary
		r.forgetDeployment()
	}
}
