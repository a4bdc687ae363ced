package clock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Heartbeat tells when the process last ran for certain: what is read now arrived after the
// heartbeat before the latest.
type Heartbeat struct{ latest, before atomic.Int64 }

// heartbeatEvery is the time between heartbeats.
const heartbeatEvery = 2 * time.Millisecond

// Run beats until ctx ends. late is called with the stalls that it notices.
func (h *Heartbeat) Run(ctx context.Context, now func() int64, late func(record.Stall)) {
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
			if last > 0 && at-last > int64(heartbeatEvery)+LateWake {
				late(record.Stall{From: last, To: at})
			}
		}
	}
}

// Since is the instant after which what is read now arrived.
func (h *Heartbeat) Since() int64 {
	return h.before.Load()
}
