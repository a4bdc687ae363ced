package impact

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
)

// GeneratorStarved is the reason of a Doubt: a load generator waited for a CPU for so long that
// figures which hang on it are uncertain.
const GeneratorStarved = "GeneratorStarved"

// StarvedShare is the share of its time that a load generator must have waited for a CPU for
// figures that hang on it to be in doubt: a tenth of the throughput of a closed loop may be
// missing.
const StarvedShare = 0.1

// starved returns a doubt if a load generator of a closed loop waited for a CPU for a tenth of the
// time before the fault, or from then until the recovery and for as long as that must hold: the
// throughput is as much its own as that of Redis. In an open loop requests are late by it, and none
// is missing.
func (a *analysis) starved() *Doubt {
	c := a.curve
	from := c.At(a.base.first)
	to := min(max(a.until, a.watchedAnyway())+a.options.SustainFor, c.At(c.N))
	if a.inBaseline().isOpenLoop() {
		return nil
	}
	before, after := a.waiting(from, c.At(a.first)), a.waiting(c.At(a.first), to)
	if max(before.Share, after.Share) < StarvedShare {
		return nil
	}
	pod, share, when := before.Pod, before.Share, "before"
	if after.Share > before.Share {
		pod, share, when = after.Pod, after.Share, "after"
	}
	return &Doubt{
		GeneratorStarved,
		fmt.Sprintf(
			"load pod %d waited for a CPU for up to %.0f %% of the time %s the injection (%.0f %% before, %.0f %% after it): "+
				"the throughput, and what depends on it, may be that of the load generator. Give it a CPU of "+
				"its own", pod, 100*share, when, 100*before.Share, 100*after.Share),
	}
}

// waiting is how the load generators waited for a CPU between two instants.
func (a *analysis) waiting(from, to time.Duration) summary.Waiting {
	return summary.WaitingWithin(a.curve.Series, from, to)
}

// isOpenLoop reports whether requests were sent when they were due, so that their latency is not
// the service time.
func (m *sample) isOpenLoop() bool {
	for i := m.first; i < m.end; i++ {
		for k := range m.series.At(i).Ops {
			if len(m.series.At(i).Ops[k].Service) > 0 {
				return true
			}
		}
	}
	return false
}
