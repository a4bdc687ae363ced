package gaps

import (
	"sync"

	"github.com/redquake/redquake/internal/engine/clock"
)

// Shared are the gap logs of requests that are sent by a goroutine each: those of probes and of
// callers.
type Shared struct {
	mu       sync.Mutex
	logs     Logs
	inFlight []int // by part of the load
}

// NewShared returns the gap logs of one client whose requests are sent by a goroutine each.
func NewShared(t *Thresholds, sharded bool) *Shared {
	return &Shared{logs: NewLogs(t, sharded), inFlight: make([]int, len(t.parts))}
}

// Source makes the logs a source of a merge. What a goroutine reads is reported at once.
func (g *Shared) Source() Source {
	return Source{
		Lock:    &g.mu,
		Logs:    &g.logs,
		Settled: func() int64 { return clock.Never },
	}
}

// Begin notes that a request of these parts was sent.
func (g *Shared) Begin(parts uint64, at int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, 1)
	g.wait(at)
}

// End notes the outcome of a request that was sent at an instant, and the instant at which it was
// read.
func (g *Shared) End(parts uint64, r Receipt, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.Add([]Receipt{r})
	g.wait(read)
}

// Broken notes that the connection of a request broke, which was in flight at the instant until.
func (g *Shared) Broken(parts uint64, shard int, until, read int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count(parts, -1)
	g.logs.Lost(shard, until)
	g.logs.Refused(shard, until)
	g.wait(read)
}

func (g *Shared) count(parts uint64, by int) {
	for i := range g.inFlight {
		g.inFlight[i] += by * int(parts>>i&1)
	}
}

func (g *Shared) wait(at int64) {
	var parts uint64
	for i, n := range g.inFlight {
		if n > 0 {
			parts |= 1 << i
		}
	}
	g.logs.Waiting(at, parts)
}
