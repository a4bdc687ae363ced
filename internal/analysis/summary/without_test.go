package summary_test

import (
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/testing/recorded"
)

// TestWithoutWindowThatPassesThePlannedEnd: a load of 60 s drains for 2 s more. A window that is left out ends with the
// plan, in the drain or after it: the measured time is that before the window.
func TestWithoutWindowThatPassesThePlannedEnd(t *testing.T) {
	const planned = 60 * time.Second
	s := recorded.Load{
		Rate:   1000,
		Length: planned + 2*time.Second,
		Down:   []summary.Window{{From: planned, To: planned + 2*time.Second}},
	}.Record(t)
	s.Finish(0)
	for _, to := range []time.Duration{planned, planned + time.Second, planned + 10*time.Second} {
		sum := summary.SummarizeWithout(s, 0, planned, []summary.Window{{From: 40 * time.Second, To: to}})
		if sum.Measured != 40*time.Second || math.Abs(sum.Throughput-1000) > 1 {
			t.Errorf("until %v: %.1f/s over %v", to, sum.Throughput, sum.Measured)
		}
	}
}
