package impact

import (
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Analyze computes the impact of a fault from the complete part of the series. It may be called during the run: until Settled, Recovered
// may be false and the other figures are preliminary. Rates are taken over 1 s windows that slide by one interval. Without a recovery, sums
// "until recovery" end at the deadline, or at the end of the record.
//
//   - BaselineRate, BaselineNoise: median and MAD of the rates of adjacent 1 s windows in the BaselineWindow before t0, none before MeasuredFrom.
//   - MinRate, Dip, Degraded, LostRequests, Errors, During: over the intervals from the one that contains t0 to recovery.
//   - Outage, TotalOutage: gaps from the perspective of the clients: from the last success before t0, if that was at most one interval (or two of
//     the baseline's mean times between successes) earlier. Only gaps that begin before recovery count.
//   - Recovery: see recovery.
func Analyze(s *record.Series, f Fault, o Options) Impact {
	a := newAnalysis(s, f, o.withDefaults())
	m := Impact{
		BaselineRate: a.baseline, BaselineNoise: medianDeviation(a.seconds),
		TimeToImpact: -1, ServerOutage: -1, ServerOutageEnd: -1, RecoveryTime: -1,
	}
	recovered, ok := a.recovery()
	m.Recovered = ok
	a.until = a.limit
	if ok {
		a.until = recovered
		m.RecoveryTime = recovered - f.At
	}
	end := a.curve.ceil(a.until)
	if ok && recovered == f.At {
		end = a.first
	}
	m.MinRate, m.Dip = a.dip(end)
	a.outages(&m)
	a.timeToImpact(&m)
	a.losses(&m, end)
	a.latencies(&m, end)
	m.Doubts = a.doubts(ok)
	return m
}

// Settled reports whether the impact is final: the load recovered, or the deadline and the time for which recovery must hold have passed, or
// the record has ended.
func Settled(s *record.Series, f Fault, o Options) bool {
	o = o.withDefaults()
	s = around(s, f, o)
	if s.Ended() || f.Deadline > 0 && s.End() >= f.At+f.Deadline+o.SustainFor+s.Step {
		return true
	}
	_, ok := newAnalysis(s, f, o).recovery()
	return ok
}

// outages sets the figures about gaps: of the load, of each shard, of the probe.
func (a *analysis) outages(m *Impact) {
	gaps := a.gapsOf(a.gaps, a.lead)
	m.Outage, m.OutageEnd = a.longestOutage(gaps)
	for _, g := range gaps {
		m.TotalOutage += g.length()
	}
	s := a.curve.series
	for shard := range s.Shards() {
		// The mean time between successes of one shard is longer by the number of shards.
		lead := max(a.curve.step, a.lead*time.Duration(s.Shards()))
		if longest := longestOf(a.gapsOf(s.ShardGaps(shard), lead)).length(); longest > m.ShardOutage {
			m.ShardOutage, m.ShardDown = longest, shard
		}
	}
	if s.HasProbe() {
		m.ServerOutage, m.ServerOutageEnd = a.longestOutage(a.gapsOf(s.ProbeGaps(), a.probeLead()))
	}
}

// longestOutage returns the length of the longest gap and when it ended, counted from t0; -1 = no gap, or it did not end.
func (a *analysis) longestOutage(gaps []gap) (length, end time.Duration) {
	longest := longestOf(gaps)
	if longest.length() > 0 && !longest.Open {
		return longest.length(), time.Duration(longest.To) - a.fault.At
	}
	return longest.length(), -1
}

// timeToImpact sets ErrorWindow and TimeToImpact from the errors and the first gap.
func (a *analysis) timeToImpact(m *Impact) {
	first, last := a.errorInstants()
	if first >= 0 {
		m.ErrorWindow = last - first
		m.TimeToImpact = first - a.fault.At
	}
	if at, any := a.firstGap(); any && (m.TimeToImpact < 0 || at < m.TimeToImpact) {
		m.TimeToImpact = at
	}
}

// losses sums the requests that were lost or failed from t0 to the interval end.
func (a *analysis) losses(m *Impact, end int) {
	s := a.curve.series
	for i := a.first; i < end; i++ {
		got := float64(a.curve.ok[i+1] - a.curve.ok[i])
		m.LostRequests += max(0, a.baseline*a.curve.step.Seconds()-got)
		for k := range s.At(i).Ops {
			for class, n := range s.At(i).Ops[k].Errors {
				m.ErrorsByClass[class] += n
			}
		}
	}
	if end > a.first {
		m.Errors = a.curve.bad[end] - a.curve.bad[a.first]
	}
}

// latencies sets the latencies before the fault, from t0 to the interval end, and after the recovery.
func (a *analysis) latencies(m *Impact, end int) {
	m.Before = a.curve.latency(a.baseFirst, a.first)
	m.During = a.curve.latency(a.first, end)
	if !m.Recovered {
		return
	}
	after := min(end+a.sustain, a.curve.n)
	m.After = a.curve.latency(end, after)
	if a.baseline > 0 {
		m.RecoveredThroughput = a.curve.rate(end, after) / a.baseline
	}
}

func longestOf(gaps []gap) gap {
	var longest gap
	for _, g := range gaps {
		if g.length() > longest.length() {
			longest = g
		}
	}
	return longest
}
