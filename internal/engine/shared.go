package engine

import (
	"sync"

	"github.com/redquake/redquake/internal/engine/clock"
)

// sharedGaps are the gap logs of requests that are sent by a goroutine each: those of probes and of callers.
type sharedGaps struct {
	mu       sync.Mutex
	logs     gapLogs
	inFlight []int // by part of the load
}

func newSharedGaps(t *thresholds, sharded bool) *sharedGaps {
	return &sharedGaps{logs: newGapLogs(t, sharded), inFlight: make([]int, len(t.parts))}
}

// source makes the logs a source of a merge. What a goroutine reads is reported at once.
func (g *sharedGaps) source() gapSource {
	return gapSource{lock: &g.mu, logs: &g.logs, settled: func() int64 { return clock.Never }}
}

// begin notes that a request of these parts was sent.
func (g *sharedGaps) begin(parts uint64, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, 1)
	g.wait(at)
}

// end notes the outcome of a request that was sent at an instant, and the instant at which it was read.
func (g *sharedGaps) end(parts uint64, r receipt, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.add([]receipt{r})
	g.wait(read)
}

// broken notes that the connection of a request broke, which was in flight at the instant until.
func (g *sharedGaps) broken(parts uint64, shard int, until, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.lost(shard, until)
	g.logs.refused(shard, until)
	g.wait(read)
}

func (g *sharedGaps) count(parts uint64, by int) {
	for i := range g.inFlight {
		g.inFlight[i] += by * int(parts>>i&1)
	}
}

func (g *sharedGaps) wait(at int64) {
	var parts uint64
	for i, n := range g.inFlight {
		if n > 0 {
			parts |= 1 << i
		}
	}
	g.logs.waiting(at, parts)
}
