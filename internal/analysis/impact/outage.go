package impact

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
)

// outage is the longest gap of this fault in which a request waited in vain, with the greatest of
// the gaps' bounds. length is not negative.
type outage struct {
	length  durations.Bounded
	longest gap // the value's gap
	widest  gap // the gap of the upper bound
	usual   time.Duration
	// unasked is the longest that it can have been, had the server been down wherever no request
	// asked, and silent the gap of that.
	unasked time.Duration
	silent  gap
}

// outageOf returns the outage of a part.
func (a *analysis) outageOf(p *gapLog) outage {
	o := outage{usual: p.usual}
	var atLeast, atMost time.Duration
	for _, g := range a.gapsOf(p) {
		most := time.Duration(g.AtMost()) + a.apart()
		if most > o.unasked {
			o.unasked, o.silent = most, g
		}
		proven := p.atLeast(g)
		if proven == 0 {
			continue
		}
		if g.earlier || time.Duration(g.From) >= a.surelyWatched() {
			proven = 0
		}
		atLeast, atMost = max(atLeast, proven), max(atMost, time.Duration(g.AtMost()))
		if g.length() > o.longest.length() {
			o.longest = g
		}
		if g.AtMost() > o.widest.AtMost() {
			o.widest = g
		}
	}
	if o.longest.length() > 0 {
		apart := a.apart()
		o.length = durations.Within(o.longest.length(), atLeast-apart, atMost+apart)
	}
	return o
}

// bounded is the length of the outage of a part: nothing is known of the times in which no request
// asked.
func (o *outage) bounded(p *gapLog) durations.Bounded {
	return o.length.OrUnseen(max(p.unseen, o.unasked))
}

// apart is by how much instants of different pods can be wrong.
func (a *analysis) apart() time.Duration {
	if a.curve.Series.Pods == 1 {
		return 0
	}
	return 2 * a.fault.Uncertainty
}

// end is when the outage ended, counted from t0, without t0's own uncertainty; none = there was
// none, or it did not end.
func (o *outage) end(t0 time.Duration) durations.Bounded {
	if o.longest.length() == 0 || o.longest.Open {
		return durations.None
	}
	at := time.Duration(o.longest.To) - t0
	return durations.Within(at, at-time.Duration(o.longest.MaybeSooner), at)
}

// outages sets the figures about gaps: of the load, its reads and its writes, of each shard, of the
// probe.
func (a *analysis) outages(m *Impact) {
	worst := a.outageOf(&a.load)
	m.Outages = Outages{
		Load:   worst.bounded(&a.load),
		Reads:  durations.None,
		Writes: durations.None,
		Shard:  ShardOutage{Bounded: durations.None},
		Probe:  durations.None,
	}
	for _, g := range a.gapsOf(&a.load) {
		m.TotalOutage.AtMost += time.Duration(g.AtMost()) + a.apart()
		if proven := a.load.atLeast(g); proven > 0 {
			m.TotalOutage.Value += g.length()
			m.TotalOutage.AtLeast += max(0, proven-a.apart())
		}
	}
	a.kindOutages(&m.Outages, &worst)
	m.OutageEnd = worst.end(a.fault.At)
	if stalled := a.stalled(&worst); stalled != nil {
		m.Doubts = append(m.Doubts, *stalled)
	}
	stalled := a.stalledDip()
	if stalled != nil && len(m.Doubts) == 0 {
		m.Doubts = append(m.Doubts, *stalled)
	}
	for shard := range a.shards {
		o := a.outageOf(&a.shards[shard])
		one := o.bounded(&a.shards[shard])
		if one.Value > m.Outages.Shard.Value {
			m.Outages.Shard.Shard = shard
		}
		m.Outages.Shard.Bounded = m.Outages.Shard.Max(one)
	}
	a.probeOutage(m)
	m.Outage = m.Outages.Longest()
	if doubt := a.shardDoubt(m); doubt != nil {
		m.Doubts = append(m.Doubts, *doubt)
	}
	// of a baseline without a success NoLoad tells it
	if g := a.downBefore(); g != nil && (a.base.rate > 0 || len(a.base.seconds) == 0) {
		m.Doubts = append(m.Doubts, Doubt{
			DownBefore,
			fmt.Sprintf(
				"an outage of %s had begun %s before the fault: whether what came after the injection is the fault's is not known",
				brief(g.length()), brief(a.fault.At-time.Duration(g.From))),
		})
	}
}

// probeOutage sets the longest outage of the probe, at any shard.
func (a *analysis) probeOutage(m *Impact) {
	if !a.curve.Series.HasProbe() {
		return
	}
	m.Outages.Probe = durations.Bounded{}
	open := time.Duration(0)
	for _, p := range a.probes() {
		one := a.outageOf(&p)
		if one.length.Value > m.Outages.Probe.Value {
			m.ProbeOutageEnd = one.end(a.fault.At)
		}
		m.Outages.Probe = m.Outages.Probe.Max(one.bounded(&p))
		if one.longest.Open {
			open = max(open, one.longest.length())
		}
	}
	if m.Recovered && open > 0 {
		m.Doubts = append(m.Doubts, Doubt{
			OutageNotOver,
			fmt.Sprintf(
				"the probe, which opens new connections, had no success for %s, until the end of the record: "+
					"how long the outage was for new clients is not known", brief(open)),
		})
	}
}

// downBefore returns a gap in which requests waited in vain already before the fault, too early to
// be of it, and still did then; nil if there is none.
func (a *analysis) downBefore() *gap {
	logs := slices.Concat([]gapLog{a.load}, a.kinds, a.shards)
	if a.curve.Series.HasProbe() {
		logs = append(logs, a.probes()...)
	}
	for i := range logs {
		p := &logs[i]
		for _, g := range p.gaps {
			one := (gap{Gap: g})
			if a.before(p, one) && time.Duration(g.To) > a.fault.At &&
				one.length() > p.noise && p.atLeast(one) > 0 {
				return &one
			}
		}
	}
	return nil
}

// kindOutages sets the outages of reads and of writes, and makes the worst that of one of them, if
// it is provably longer than that of the load: the success of one hides the failure of the other.
// Each of them has fewer successes than the load, so that its gap around the same outage is a
// little longer.
func (a *analysis) kindOutages(m *Outages, worst *outage) {
	load := worst.length
	for _, kind := range []string{Writes, Reads} {
		log := a.kindLog(kind)
		if log == nil {
			continue
		}
		one := a.outageOf(log)
		*m.kind(kind) = one.bounded(log)
		if longer(one.length, load, worst.length) {
			worst.length = worst.length.Max(one.length)
			worst.longest, worst.widest, worst.usual = one.longest, one.widest, one.usual
		}
	}
}

// Limits of GeneratorStalled.
const (
	stalledShare = 0.05 // of the outage
	stalledDip   = 0.1  // of a window
)

// stalled returns a doubt if stalls of the load generator make the outage uncertain.
func (a *analysis) stalled(o *outage) *Doubt {
	if doubt := a.bunched(o); doubt != nil {
		return doubt
	}
	length := o.length.OrUnseen(o.unasked)
	wide := length.AtMost - length.AtLeast - o.usual - a.apart()
	if wide <= max(summary.StalledFor, time.Duration(stalledShare*float64(length.Value))) {
		return nil
	}
	for _, g := range []gap{o.longest, o.widest, o.silent} {
		if doubt := a.stalledIn(g, length); doubt != nil {
			return doubt
		}
	}
	return nil
}

// bunched returns the doubt if a load generator did not run for longer than the outage, until
// shortly before it: what was due meanwhile came at once.
func (a *analysis) bunched(o *outage) *Doubt {
	g := &o.longest
	if g.length() == 0 {
		return nil
	}
	for pod := range a.curve.Series.Pods {
		for _, s := range summary.United(a.curve.Series.Stalls(pod)) {
			stalled := time.Duration(s.To - s.From)
			since := time.Duration(g.From - s.To)
			if g.length() > stalled || since < -summary.StalledFor || since > stalled {
				continue
			}
			return &Doubt{
				GeneratorStalled,
				fmt.Sprintf(
					"load pod %d did not run for %s, until shortly before the outage of %s: what was due meanwhile was sent at once, and requests waited "+
						"for one another. Use a second load pod on another node, or raise the pod's CPU limit", pod,
					brief(stalled), brief(g.length())),
			}
		}
	}
	return nil
}

// stalledDip returns a doubt if load generators did not run for a tenth of a window of which the
// rate may be the lowest: what is missing there is theirs, and what they send afterwards hides what
// Redis did not serve.
func (a *analysis) stalledDip() *Doubt {
	stalls, c := a.stalledTime(), a.curve
	if stalls == nil {
		return nil
	}
	longest := time.Duration(0)
	for i := max(a.first, c.Wide); i < max(c.Ceil(a.until), a.first+1) && i+c.Wide <= c.N; i++ {
		longest = max(longest, stalls[i+c.Wide]-stalls[i-c.Wide])
	}
	if float64(longest) < stalledDip*float64(c.Width()) {
		return nil
	}
	return &Doubt{
		GeneratorStalled,
		fmt.Sprintf(
			"the load generators did not run for %s of 2 s after the injection, on average: the dip and the lost requests are theirs, too. "+
				"Use a second load pod on another node, or raise the pod's CPU limit", brief(longest)),
	}
}

// stalledIn returns the doubt if a load generator did not run around a gap.
func (a *analysis) stalledIn(g gap, length durations.Bounded) *Doubt {
	near := record.Stall{
		From: g.From - g.MaybeBefore - int64(summary.StalledFor),
		To:   g.To + int64(summary.StalledFor),
	}
	for pod := range a.curve.Series.Pods {
		var sum, longest time.Duration
		count := 0
		for _, s := range summary.United(a.curve.Series.Stalls(pod)) {
			if s.To <= near.From || s.From >= near.To {
				continue
			}
			count++
			sum += time.Duration(s.To - s.From)
			longest = max(longest, time.Duration(s.To-s.From))
		}
		if sum > summary.StalledFor {
			return &Doubt{
				GeneratorStalled,
				fmt.Sprintf(
					"load pod %d did not run for %s around the outage (%d times, at most %s): no request was on its way then. "+
						"The outage was between %s and %s. Use a second load pod on another node, or raise the pod's "+
						"CPU limit", pod, brief(sum), count, brief(longest),
					brief(length.AtLeast), brief(length.AtMost)),
			}
		}
	}
	return nil
}
