package engine

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/engine/clock"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/probe"
	"github.com/redquake/redquake/internal/record"
)

// watchingPods is how many pods watch what the servers evict: one may be lost.
const watchingPods = 2

// Run waits until start, generates the load, and calls sink from the goroutine of its caller with
// every finished interval, from index 0 without holes, including empty ones. It returns after the
// last interval. If ctx ends it stops sending, waits at most 100 ms for requests in flight (whose
// outcome then is unknown), delivers the open interval and returns ctx's cause.
// Requests in flight at the end of the run are awaited and recorded in the last interval, successes
// as drained.
func (r *Runner) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	n := r.run
	n.Clock = clock.StartingAt(start)
	defer r.close()
	wake, err := n.NewWaiter()
	if err != nil {
		return err
	}
	defer wake.Close()
	stop := context.AfterFunc(ctx, wake.Interrupt)
	wake.Wait(time.Until(n.Start))
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
	go r.endWithClient(everything, cancel)
	r.record(done, sink)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.callers != nil {
		return r.callers.Err()
	}
	return nil
}

// endWithClient ends the load if the client fails that performs its operations.
func (r *Runner) endWithClient(ctx context.Context, end context.CancelFunc) {
	if r.callers == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-r.callers.Failed():
		end()
	}
}

// launch starts loops, callers, probes and samplers. The returned channel is closed when all of
// them have ended.
func (r *Runner) launch(ctx context.Context) (<-chan struct{}, error) {
	n := r.run
	if n.Length > 0 {
		n.Recorder.SetEnd(n.Length)
	}
	r.openGapLogs()
	var load, all sync.WaitGroup
	if err := r.open(); err != nil {
		return nil, err
	}
	r.spareProcessor()
	probing, endProbe := context.WithCancel(ctx)
	var observing sync.WaitGroup
	r.observe(probing, &observing)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		if r.sampler != nil {
			_ = r.sampler.Run(probing) // fails only if a shard has no key, and the books found one in each
		}
	}()
	for _, l := range r.loops {
		load.Go(func() { l.Serve(ctx) })
	}
	if r.callers != nil {
		if err := r.callers.Start(ctx, &load); err != nil {
			endProbe()
			return nil, err
		}
		r.gaps = gaps.Merge{r.callers.Source()}
	}
	all.Go(func() { r.prober.Run(ctx, probing) })
	r.launched.Store(true)
	stop := context.AfterFunc(ctx, r.abort)
	done := make(chan struct{})
	go func() {
		load.Wait()
		if !r.lastsUntilEnd(ctx) {
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

// open makes the pollers that loops and probes wait with.
func (r *Runner) open() error {
	r.prober = probe.NewLoop(r.run, r.probes)
	if err := r.prober.Open(); err != nil {
		return err
	}
	for _, l := range r.loops {
		if err := l.Open(); err != nil {
			return err
		}
	}
	return nil
}

// observe starts what reads from the servers beside the load.
func (r *Runner) observe(ctx context.Context, observing *sync.WaitGroup) {
	n := r.run
	if r.observer != nil {
		observing.Go(func() { r.observer.Run(ctx) })
	}
	if r.audit != nil && n.Pod < watchingPods {
		observing.Go(func() { r.audit.Watch(ctx, r.knownLayout) })
	}
	if r.checker != nil {
		observing.Go(func() { r.checker.Run(ctx) })
	}
}

// spareProcessor raises GOMAXPROCS above the number of event loops, that of the probes included, to
// one thread more than can run at a time: then other goroutines need not wait until a loop gives up
// its processor, and the runtime's monitor, which polls every 20 us as long as it finds all
// processors in use and some in a system call, lets the loops keep theirs in epoll_wait.
func (r *Runner) spareProcessor() {
	r.processors = runtime.GOMAXPROCS(0)
	if r.run.Portable {
		return
	}
	if loops := len(r.loops) + min(1, len(r.probes)); r.processors <= loops {
		runtime.GOMAXPROCS(loops + 1) // of the whole process, which runs one load
	}
}

// openGapLogs merges the gap logs of the loops, once it is known whether there are several shards.
func (r *Runner) openGapLogs() {
	n := r.run
	for _, l := range r.loops {
		r.gaps = append(r.gaps, l.GapSource(n.Sharded))
	}
}

// lastsUntilEnd waits for the end of a run of fixed length, as its last request may be much
// earlier. It returns false if the run ends before: all requests are done, or ctx has ended.
func (r *Runner) lastsUntilEnd(ctx context.Context) bool {
	requests, pacer := r.run.Plan.Shape.Requests, r.run.Pacer.Load()
	mine := int64(pace.Share(requests, uint64(r.run.Plan.Pods), uint64(r.run.Pod)))
	switch {
	case r.run.Length == 0 || r.run.Ended.Load(),
		requests > 0 && pacer == nil && r.run.Budget.Left.Load() == 0,
		requests > 0 && pacer != nil && pacer.EndsByRequests(mine):
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(r.run.Length - r.run.Now())):
		return true
	}
}
