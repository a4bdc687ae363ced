package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	leading = define(Definition{
		Name: "redquake_manager_leading",
		Kind: Gauge,
		Help: "Whether this manager leads (1) or waits for the leadership (0): only the one that " +
			"leads acts, and exports what describes objects.",
		Example: `sum(redquake_manager_leading)`,
	})
	stalled = define(Definition{
		Name: "redquake_manager_stalled_seconds",
		Kind: Gauge,
		Unit: "seconds",
		Help: "For how long the manager that leads has not reconciled: the age of the oldest request " +
			"that is due or worked on, or of its cache's copy of its own Lease, whichever is older. " +
			"Seconds are normal. /readyz fails after a minute, /healthz after two. 0 where it does not lead.",
		Example: `max(redquake_manager_stalled_seconds)`,
	})
	sessions = define(Definition{
		Name:    "redquake_manager_sessions",
		Kind:    Gauge,
		Help:    "Load tests whose load pods this manager collects from.",
		Example: `sum(redquake_manager_sessions)`,
	})
	recordBytes = define(Definition{
		Name:    "redquake_manager_record_bytes",
		Kind:    Gauge,
		Unit:    "bytes",
		Help:    "Memory of the records of running load tests, as of the last checkpoint of each.",
		Example: `sum(redquake_manager_record_bytes)`,
	})
	recordLimit = define(Definition{
		Name:    "redquake_manager_record_limit_bytes",
		Kind:    Gauge,
		Unit:    "bytes",
		Help:    "Memory that the records of all load tests may take together: beyond it, they are kept with less resolution.",
		Example: `sum(redquake_manager_record_bytes) / sum(redquake_manager_record_limit_bytes)`,
	})
	loopLag = define(Definition{
		Name: "redquake_manager_loop_lag_seconds_total",
		Kind: Counter,
		Unit: "seconds",
		Help: "Time by which a loop that is due every 250 ms began late, in total. Its rate is the " +
			"share of time in which the manager was held up: without CPU time, memory, or by its collector of garbage.",
		Example: `rate(redquake_manager_loop_lag_seconds_total[5m])`,
	})
)

// lagEvery is the time between two runs of the loop whose lag is measured.
const lagEvery = 250 * time.Millisecond

// FollowLag measures how late a loop begins until ctx ends.
func (m *Metrics) FollowLag(ctx context.Context) {
	if m == nil {
		return
	}
	ticker := time.NewTicker(lagEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			now := time.Now()
			m.lag.Add(lateness(last, now).Seconds())
			last = now
		}
	}
}

// lateness is by how much a run of the loop is late, from the instants of the one before and of its
// own.
func lateness(last, now time.Time) time.Duration {
	return max(0, now.Sub(last)-lagEvery)
}

func (m *Metrics) collectManager(out chan<- prometheus.Metric) {
	m.lag.Collect(out)
	leads, age := 0.0, time.Duration(0)
	if l := m.leader.Load(); l != nil {
		leads = 1
		if l.Stalled != nil {
			age = l.Stalled()
		}
	}
	leading.set(out, leads)
	stalled.set(out, age.Seconds())
	now := m.sessions()
	sessions.set(out, float64(now.Count))
	recordBytes.set(out, float64(now.RecordBytes))
	recordLimit.set(out, float64(now.RecordLimit))
}
