package engine

import (
	"context"
	"sync"
	"time"
)

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

// forgetDeployment ends the following of the deployment.
func (r *Runner) forgetDeployment() {
	if t := r.run.routes.tracker; t != nil {
		t.Close()
	}
}
