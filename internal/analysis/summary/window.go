// Package summary is what a load did in a part of its record: counts, rates and latencies, for how
// long its load generators did not run, what its servers and its ledgers said. It is pure: no
// clock, no I/O. The definitions are in docs/measuring.md, the formulas in the functions' comments.
package summary

import (
	"time"

	"github.com/redquake/redquake/internal/record/histogram"
)

// Window is a half-open part of a run, [From, To), counted from the run's start instant.
type Window struct{ From, To time.Duration }

// Latency is figures of a histogram of successful requests.
type Latency struct {
	P50, P90, P99, P999, Max, Mean time.Duration
	Count                          uint64
}

// LatencyOf returns the figures of a histogram; they are 0 for an empty one.
func LatencyOf(d *histogram.Distribution) Latency {
	return Latency{
		P50: d.Quantile(0.50), P90: d.Quantile(0.90), P99: d.Quantile(0.99), P999: d.Quantile(0.999),
		Max: d.Max(), Mean: d.Mean(), Count: d.Count(),
	}
}
