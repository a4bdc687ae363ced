package result

import (
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record/merged"
)

// switches reports whether the throughput changes with each turn of the plan: in a closed loop it
// is what each operation allows.
func switches(p *plan.Plan) bool {
	return p.Turns() != nil && !p.Shape.OpenLoop()
}

// setTurns lets the throughput of operations that were sent one after the other count the time in
// which each was sent within [from, end).
func (r *Load) setTurns(p *plan.Plan, series *merged.Series, from, end time.Duration) {
	turns := p.Turns()
	if turns == nil {
		return
	}
	for k, sent := range lengths(turns, series, from, end, r.costs(p)) {
		o := &r.Operations[k]
		o.Sent = new(Seconds(sent))
		if o.Throughput = 0; sent > 0 {
			o.Throughput = float64(o.OK-o.Drained) / sent.Seconds()
		}
	}
}

// costs is how long a request of each operation keeps its place in the loop: in a closed loop its
// mean latency and the think time, in an open loop the same time for all.
func (r *Load) costs(p *plan.Plan) []time.Duration {
	costs := make([]time.Duration, len(r.Operations))
	for k := range costs {
		costs[k] = time.Nanosecond
		if mean := r.Operations[k].Latency; mean != nil && !p.Shape.OpenLoop() {
			costs[k] = max(time.Nanosecond, time.Duration(mean.Mean)+p.Shape.ThinkTime)
		}
	}
	return costs
}

// lengths is the length of each turn. Turns that are parts of the requests divide an interval in
// which one follows the other by the time that their requests took.
func lengths(
	turns *plan.Turns, series *merged.Series, from, end time.Duration, costs []time.Duration,
) []time.Duration {
	lengths := make([]time.Duration, turns.Count)
	if turns.Each > 0 {
		for k := range lengths {
			begin, to := turns.Window(k, end)
			lengths[k] = max(0, to-max(begin, from))
		}
		return lengths
	}
	current := 0
	first, last := series.Window(from, end)
	for i := first; i < last; i++ {
		at := time.Duration(i) * series.Step
		took := min(series.Step, end-at)
		busy, all := make([]float64, turns.Count), 0.0
		for k := range busy {
			c := &series.At(i).Ops[k].Counts
			busy[k] = float64(c.OK+c.Fail+c.Unknown+c.Dropped) * costs[k].Seconds()
			if all += busy[k]; busy[k] > 0 {
				current = k
			}
		}
		if all == 0 { // nothing was answered: the turn goes on
			lengths[current] += took
			continue
		}
		for k := range busy {
			lengths[k] += time.Duration(float64(took) * busy[k] / all)
		}
	}
	return lengths
}
