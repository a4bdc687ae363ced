package engine

import (
	"runtime"

	"github.com/redquake/redquake/internal/record"
)

// Self reads the load generator's own resource use: CPU, limits, memory. It is called once per interval.
type Self func() record.AgentUse

// Watch returns a sink for Run that completes each interval with a reading of the load generator itself, and then calls sink.
func (r *Runner) Watch(self Self, sink func(*record.Interval)) func(*record.Interval) {
	return func(iv *record.Interval) {
		use := self()
		use.At, use.Pod, use.BusyThreads = r.run.now(), r.run.pod, r.busyThreads()
		if r.observer != nil {
			use.RoundTrip = r.observer.takeRoundTrip()
		}
		iv.Agents = append(iv.Agents[:0], use)
		sink(iv)
	}
}

// busyThreads is how many threads can send load at the same time: one per event loop, or all of GOMAXPROCS.
func (r *Runner) busyThreads() int {
	if r.callers != nil || r.run.plan.Target.TLS != nil { // with TLS each connection has its own goroutines
		return runtime.GOMAXPROCS(0)
	}
	return max(1, len(r.loops))
}
