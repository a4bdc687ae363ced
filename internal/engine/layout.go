package engine

import (
	"math"
	"runtime"

	"github.com/redquake/redquake/internal/engine/interval"
	"github.com/redquake/redquake/internal/engine/loop"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/plan"
)

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
	if p.Shape.OpenLoop() {
		inFlight := count * int64(most)
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
	for i := range loops {
		r.loops = append(r.loops, loop.New(n, i, loops, pace.Share(count, loops, i), depth))
	}
}
