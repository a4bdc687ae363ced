package result

import (
	"github.com/redquake/redquake/internal/analysis/summary"
)

// Quantiles of a latency.
type Quantiles struct {
	P50  Seconds `json:"p50"`
	P90  Seconds `json:"p90"`
	P99  Seconds `json:"p99"`
	P999 Seconds `json:"p999"`
	Max  Seconds `json:"max"`
	Mean Seconds `json:"mean"`
}

// each sets each figure to what change makes of it and of the same one of others.
func (q *Quantiles) each(others *Quantiles, change func(own, other Seconds) Seconds) {
	for _, p := range [...][2]*Seconds{
		{&q.P50, &others.P50},
		{&q.P90, &others.P90},
		{&q.P99, &others.P99},
		{&q.P999, &others.P999},
		{&q.Max, &others.Max},
		{&q.Mean, &others.Mean},
	} {
		*p[0] = change(*p[0], *p[1])
	}
}

func quantilesOf(l summary.Latency) *Quantiles {
	if l.Count == 0 {
		return nil
	}
	return &Quantiles{
		P50:  Seconds(l.P50),
		P90:  Seconds(l.P90),
		P99:  Seconds(l.P99),
		P999: Seconds(l.P999),
		Max:  Seconds(l.Max),
		Mean: Seconds(l.Mean),
	}
}
