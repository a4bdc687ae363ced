package impact

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/throughput"
	"github.com/redquake/redquake/internal/record/merged"
)

// Analyze computes the impact of a fault from the complete part of the series. It may be called
// during the run: until Settled, Recovered may be false and the other figures are preliminary.
// Rates are taken over 1 s windows that slide by one interval. Without a recovery, sums "until
// recovery" end at the deadline, or at the end of the record.
//
//   - BaselineRate, BaselineNoise: median and MAD of the rates of adjacent 1 s windows in the
//     BaselineWindow before t0, none before MeasuredFrom.
//   - MinRate, Dip, Degraded, LostRequests, Errors, During: over the intervals from the one that
//     contains t0 to recovery.
//   - Where the plan of the load changes and the throughput follows it, every rate is compared with
//     the baseline times the planned level, which is
//     1 at t0. BaselineRate and MinRate are for that level. See Planned.
//   - Outage, TotalOutage: gaps from the perspective of the clients: from the last success before
//     t0, if that was at most one interval (or two of
//     the baseline's mean times between successes) earlier. Only gaps that begin before recovery
//     count. Outage is the longest of the load's,
//     the reads', the writes', any shard's and the probe's; see Outages.Longest.
//   - WhileActive: over the intervals completely within Fault.Active.
//   - Recovery: see recovery.
func Analyze(s *merged.Series, f Fault, o Options) Impact {
	a := newAnalysis(s, f, o.WithDefaults())
	m := Impact{
		BaselineRate:   a.base.rate,
		BaselineNoise:  throughput.MedianDeviation(a.base.seconds),
		TimeToImpact:   durations.None,
		OutageEnd:      durations.None,
		ProbeOutageEnd: durations.None,
		RecoveryTime:   durations.None,
		Injection:      durations.Milestone{Sooner: f.Uncertainty, Later: f.Took + f.Uncertainty},
	}
	recovered, ok := a.recovery()
	sooner := a.soonerRecovery(recovered, ok)
	m.Recovered = ok
	a.until, a.soonest = a.limit, a.limit
	if ok {
		a.until, a.soonest = recovered.at, recovered.at
		m.RecoveryTime = a.recoveryTime(recovered, sooner)
	}
	if sooner != nil {
		a.soonest = sooner.at
	}
	if sooner != nil && !ok {
		m.RecoveryTime.AtLeast = a.sinceInjection(sooner.at, sooner.earliest, sooner.latest).AtLeast
		m.Doubts = append(m.Doubts, a.unknownRecovery(sooner, *sooner == recovered))
	}
	end := a.curve.Ceil(a.until)
	if ok && recovered.at == f.At {
		end = a.first
	}
	m.MinRate, m.Dips.All = a.dip(a.curve, a.base.rate, end)
	a.outages(&m)
	a.timeToImpact(&m)
	a.losses(&m, end)
	a.latencies(&m, end)
	m.WhileActive = a.whileActive(m.Before)
	m.Operations = a.operations(end)
	a.kindEffects(&m, end)
	if starved := a.starved(); starved != nil {
		m.Doubts = append(m.Doubts, *starved)
	}
	m.Doubts = append(a.doubts(ok), m.Doubts...)
	return m
}

// Settled reports whether the impact is final: the load recovered and new clients are served, or
// the deadline and the time for which recovery must hold have passed, or the record has ended.
func Settled(s *merged.Series, f Fault, o Options) bool {
	o = o.WithDefaults()
	s = around(s, f, o)
	if s.Ended() || f.Deadline > 0 && s.End() >= f.At+f.Deadline+o.SustainFor+s.Step {
		return true
	}
	a := newAnalysis(s, f, o)
	recovered, ok := a.recovery()
	a.until = recovered.at
	return ok && !a.probeDown()
}

// probeDown reports whether new clients have not been served since soon after t0.
func (a *analysis) probeDown() bool {
	if !a.curve.Series.HasProbe() {
		return false
	}
	return slices.ContainsFunc(a.probes(), func(p gapLog) bool {
		own := a.gapsOf(&p)
		return len(own) > 0 && own[len(own)-1].Open
	})
}

// timeToImpact sets ErrorWindow and TimeToImpact from the errors and the first gap.
func (a *analysis) timeToImpact(m *Impact) {
	first, last := a.errorInstants(a.curve)
	if first >= 0 {
		m.ErrorWindow = last - first
		m.TimeToImpact = a.sinceInjection(first, first, first)
	}
	for _, list := range [][]gapLog{{a.load}, a.kinds, a.shards} {
		for i := range list {
			for _, g := range a.gapsOf(&list[i]) {
				if !g.earlier && list[i].atLeast(g) > 0 {
					m.TimeToImpact = earlier(m.TimeToImpact, a.began(&list[i], g))
				}
			}
		}
	}
}

// began is when the outage of a gap began: after the last success, and before a request that waited
// in vain was due for its reply.
func (a *analysis) began(p *gapLog, g gap) durations.Bounded {
	from := time.Duration(g.From)
	return a.sinceInjection(from, from-time.Duration(g.MaybeBefore),
		from+time.Duration(g.UnprovenHead)+p.usual)
}

// earlier is the earlier of two instants, of which either need not be known.
func earlier(a, b durations.Bounded) durations.Bounded {
	if !a.Known() {
		return b
	}
	return a.Min(b)
}

// losses sums the requests that were lost or failed from t0 to the interval end.
func (a *analysis) losses(m *Impact, end int) {
	s := a.curve.Series
	m.LostRequests = a.lost(end)
	for i := a.first; i < end; i++ {
		for k := range s.At(i).Ops {
			for class, n := range s.At(i).Ops[k].Errors {
				m.ErrorsByClass[class] += n
			}
		}
	}
	if end > a.first {
		m.Errors = a.curve.Bad[end] - a.curve.Bad[a.first]
	}
}

// lost sums the times from t0 to the interval end in which successes were missing: the rises of
// what is missing since t0, those that are more than what the counts of intervals vary without a
// fault: by a request for each load pod, or 3 standard deviations. What is served late does not
// make up for it.
func (a *analysis) lost(end int) (sum float64) {
	usual := max(float64(a.curve.Series.Pods), 3*a.intervalDeviation())
	stalls := a.stalledTime()
	missing, low, high, rises := 0.0, 0.0, 0.0, false
	for i := a.first; i < end; i++ {
		expected := a.expectedRate(i, i+1) * a.curve.Step.Seconds()
		if stalls != nil { // nobody asked for it
			expected *= max(0, 1-float64(stalls[i+1]-stalls[i])/float64(a.curve.Step))
		}
		missing += expected - float64(a.curve.OK[i+1]-a.curve.OK[i])
		switch {
		case rises && missing > high:
			high = missing
		case rises && missing < high-usual:
			sum, low, rises = sum+high-low, missing, false
		case !rises && missing < low:
			low = missing
		case !rises && missing > low+usual:
			high, rises = missing, true
		}
	}
	if rises {
		sum += high - low
	}
	return sum
}

// latencies sets the latencies before the fault, from t0 to the interval end, and after the
// recovery.
func (a *analysis) latencies(m *Impact, end int) {
	m.Before = a.curve.Latency(a.base.first, a.first)
	m.During = a.curve.Latency(a.first, end)
	if !m.Recovered {
		return
	}
	after := min(end+a.sustain, a.curve.N)
	m.After = a.curve.Latency(end, after)
	if expected := a.expectedRate(end, after); expected > 0 {
		m.RecoveredThroughput = a.curve.Rate(end, after) / expected
	}
}
