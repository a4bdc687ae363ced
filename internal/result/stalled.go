package result

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
)

// Stalled is the time in which a load generator did not run, and the bounds of figures of requests that may only have been late, or not sent, because of it.
type Stalled struct {
	Pod        int        `json:"pod"`            // the one that stalled for longest
	Length     Seconds    `json:"lengthSeconds"`  // of its stalls together
	Count      int        `json:"count"`          // of its stalls
	Longest    Seconds    `json:"longestSeconds"` // of its stalls
	Latency    *Quantiles `json:"latencyAtLeastSeconds,omitempty"`
	Throughput float64    `json:"throughputAtMostPerSecond"`
	ErrorRate  float64    `json:"errorRateAtLeast"`
}

// String says who did not run, and for how long.
func (s *Stalled) String() string {
	return fmt.Sprintf("load pod %d did not run for %s of the measured time (%d times, at most %s)",
		s.Pod, format.Duration(time.Duration(s.Length)), s.Count, format.Duration(time.Duration(s.Longest)))
}

// setStalls sets the bounds of the figures that stalls make uncertain.
func (r *Load) setStalls(p *plan.Plan, series *record.Series, in LoadInput) {
	from, end := p.Shape.MeasuredFrom(), time.Duration(r.Elapsed)
	stalls := impact.StallsTo(series, from, end, nil)
	if in.Search != nil {
		if first, last, ok := in.Search.window(p); ok {
			stalls = impact.StallsWithin(series, first, last)
		}
	}
	r.Total.setStalled(stalls, p.Shape.OpenLoop())
	if r.OutsideFaults != nil {
		r.OutsideFaults.setStalled(impact.StallsTo(series, from, end, in.Faults), p.Shape.OpenLoop())
	}
}

func (o *Operation) setStalled(s *impact.Stalls, openLoop bool) {
	if s == nil {
		return
	}
	o.Stalled = &Stalled{
		Pod: s.Pod, Length: Seconds(s.Length), Count: s.Count, Longest: Seconds(s.Longest), Latency: quantilesOf(s.Latency),
		Throughput: o.Throughput / max(1-s.Share, leastRunning), ErrorRate: o.ErrorRate,
	}
	if openLoop && o.OK > o.Drained { // all that was due is among the requests
		o.Stalled.Throughput = min(o.Stalled.Throughput, o.Throughput*float64(o.Requests)/float64(o.OK-o.Drained))
	}
	if o.Requests > 0 {
		excused := min(float64(o.Dropped+o.Unknown), s.Share*float64(o.Requests))
		o.Stalled.ErrorRate = max(0, o.ErrorRate-excused/float64(o.Requests))
	}
}

// leastRunning is the share of the time that a load generator ran at least, for the bound of a throughput.
const leastRunning = 0.01
