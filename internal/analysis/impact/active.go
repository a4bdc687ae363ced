package impact

import "math"

// whileActive returns the load over the intervals completely within the time in which the fault was active; nil if there is none. What is
// drained after the planned end of the load is not counted. before is the latency of the baseline.
func (a *analysis) whileActive(before Latency) *WhileActive {
	c := a.curve
	first := c.ceil(a.fault.Active.From)
	end := min(a.options.Planned.end(c), int(max(a.fault.Active.To, 0)/c.step))
	if end <= first {
		return nil
	}
	w := &WhileActive{Length: c.at(end - first), Throughput: c.rate(first, end), ErrorRate: c.errorRate(first, end), Latency: c.latency(first, end)}
	w.Change = change(w.Throughput, a.expectedRate(first, end))
	w.ErrorRateChange = w.ErrorRate - a.baseError
	w.LatencyP50Change, w.LatencyP99Change = math.NaN(), math.NaN()
	inTurn := a.options.Planned.InTurn && len(a.sent(end)) > 1 // the latencies are those of different operations
	if w.Latency.Count > 0 && !inTurn {
		w.LatencyP50Change, w.LatencyP99Change = change(float64(w.Latency.P50), float64(before.P50)), change(float64(w.Latency.P99), float64(before.P99))
	}
	return w
}

// change is the difference of a figure as a share of what it was before; NaN if that is 0.
func change(now, before float64) float64 {
	if before == 0 {
		return math.NaN()
	}
	return now/before - 1
}
