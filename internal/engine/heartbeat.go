package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// heartbeat tells when the process last ran for certain: what is read now arrived after the heartbeat before the latest.
type heartbeat struct{ latest, before atomic.Int64 }

// heartbeatEvery is the time between heartbeats.
const heartbeatEvery = 2 * time.Millisecond

// run beats until ctx ends. late is called with the stalls that it notices.
func (h *heartbeat) run(ctx context.Context, now func() int64, late func(record.Stall)) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			last, at := h.latest.Load(), now()
			h.before.Store(last)
			h.latest.Store(at)
			if last > 0 && at-last > int64(heartbeatEvery)+lateWake {
				late(record.Stall{From: last, To: at})
			}
		}
	}
}

// since is the instant after which what is read now arrived.
func (h *heartbeat) since() int64 { return h.before.Load() }
