package impact

import (
	"testing"
	"time"
)

// TestWithoutWindowThatPassesThePlannedEnd: a load of 60 s drains for 2 s more. A window that is left out ends with the plan, in the drain or after it: the
// measured time is that before the window.
func TestWithoutWindowThatPassesThePlannedEnd(t *testing.T) {
	const planned = 60 * time.Second
	s := load{rate: 1000, length: planned + 2*time.Second, down: []Window{seconds(60, 62)}}.record(t)
	s.Finish(0)
	for _, to := range []time.Duration{planned, planned + time.Second, planned + 10*time.Second} {
		p := partTo(s, 0, planned, []Window{{40 * time.Second, to}})
		sum := summarize(s, p)
		if sum.Measured != 40*time.Second || !near(sum.Throughput, 1000, 1) || p.measured(s) != sum.Measured {
			t.Errorf("until %v: %.1f/s over %v, stalls in %v", to, sum.Throughput, sum.Measured, p.measured(s))
		}
	}
}
