package engine

import (
	"context"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
)

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
	for _, l := range r.loops {
		if err := l.open(); err != nil {
			endProbe()
			return nil, err
		}
	}
	for _, l := range r.loops {
		load.Go(func() { l.serve(ctx) })
	}
	if r.callers != nil {
		if err := r.callers.start(ctx, &load); err != nil {
			endProbe()
			return nil, err
		}
	}
	r.launched.Store(true)
	stop := context.AfterFunc(ctx, r.abort)
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
func (r *runState) lastsUntilEnd(ctx context.Context) bool {
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

// withMonotonic is t with a monotonic reading, so that a step of the wall clock during the run does not move it.
func withMonotonic(t time.Time) time.Time {
	now := time.Now()
	return now.Add(t.Sub(now))
}
