package result

import "github.com/redquake/redquake/internal/analysis/impact"

// Quantiles of a latency.
type Quantiles struct {
	P50  Seconds `json:"p50"`
	P90  Seconds `json:"p90"`
	P99  Seconds `json:"p99"`
	P999 Seconds `json:"p999"`
	Max  Seconds `json:"max"`
	Mean Seconds `json:"mean"`
}

func quantilesOf(l impact.Latency) *Quantiles {
	if l.Count == 0 {
		return nil
	}
	return &Quantiles{P50: Seconds(l.P50), P90: Seconds(l.P90), P99: Seconds(l.P99), P999: Seconds(l.P999), Max: Seconds(l.Max), Mean: Seconds(l.Mean)}
}
