package engine

import (
	"context"
	"runtime"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
)

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
		if took := max(int64(time.Since(sent)), 1); shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest
}

// busyThreads is how many threads can send load at the same time: one per event loop, or all of
// GOMAXPROCS.
func (r *Runner) busyThreads() int {
	if r.callers != nil || r.run.Portable { // each connection has its own goroutines
		return runtime.GOMAXPROCS(0)
	}
	return max(1, len(r.loops))
}
