package impact

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// gapLog is a part of the load (reads, writes, an operation, a shard), or the probe: its gaps, and what is usual for it without a fault.
type gapLog struct {
	gaps []record.Gap
	lead time.Duration // the longest time from the last success to t0 in a gap of this fault
	// usual is how long a request may wait though the server serves: the 99th percentile of the service time in the baseline, and one mean time between
	// successes.
	usual time.Duration
}

// logOf returns a part with the successes ok in the baseline.
func (a *analysis) logOf(gaps []record.Gap, ok uint64, service time.Duration) gapLog {
	p := gapLog{gaps: gaps, lead: a.curve.step, usual: service}
	if ok > 0 {
		mean := a.curve.at(a.first-a.baseFirst) / time.Duration(ok)
		p.lead, p.usual = max(p.lead, 2*mean), service+mean
	}
	return p
}

// outage is the longest gap of this fault, with the greatest of the gaps' bounds. length is not negative.
type outage struct {
	length  Bounded
	longest gap // the value's gap
	usual   time.Duration
}

// outageOf returns the outage of a part. proven leaves out the gaps in which no request waited in vain: a part with few requests is silent for most
// of the time.
func (a *analysis) outageOf(p gapLog, proven bool) outage {
	o := outage{usual: p.usual}
	var atLeast, atMost time.Duration
	for _, g := range a.gapsOf(p.gaps, p.lead) {
		least := time.Duration(g.AtLeast(int64(p.usual)))
		if proven && least == 0 {
			continue
		}
		atLeast, atMost = max(atLeast, least), max(atMost, time.Duration(g.AtMost()))
		if g.length() > o.longest.length() {
			o.longest = g
		}
	}
	if o.longest.length() > 0 {
		apart := a.apart()
		o.length = within(o.longest.length(), atLeast-apart, atMost+apart)
	}
	return o
}

// apart is by how much instants of different pods can be wrong.
func (a *analysis) apart() time.Duration {
	if a.curve.series.Pods == 1 {
		return 0
	}
	return 2 * a.fault.Uncertainty
}

// end is when the outage ended, counted from t0; -1 = there was none, or it did not end.
func (o *outage) end(t0 time.Duration) time.Duration {
	if o.longest.length() == 0 || o.longest.Open {
		return -1
	}
	return time.Duration(o.longest.To) - t0
}

// Kinds of requests.
const (
	Reads  = "Reads"
	Writes = "Writes"
)

// outages sets the figures about gaps: of the load, of each shard, of the probe.
func (a *analysis) outages(m *Impact) {
	s := a.curve.series
	load := a.logOf(a.gaps, a.curve.ok[a.first]-a.curve.ok[a.baseFirst], a.service(nil))
	load.lead = a.lead
	worst := a.outageOf(load, false)
	for _, g := range a.gapsOf(a.gaps, a.lead) {
		m.TotalOutage += g.length()
	}
	a.kinds(m, &worst)
	m.Outage, m.OutageEnd = worst.length, worst.end(a.fault.At)
	if stalled := a.stalled(&worst); stalled != nil {
		m.Doubts = append(m.Doubts, *stalled)
	}
	for shard := range s.Shards() {
		one := a.outageOf(a.logOf(s.ShardGaps(shard), a.sum(func(iv *record.Interval) uint64 { return shardOK(iv, shard) }), load.usual), true)
		if one.length.Value > m.ShardOutage.Value {
			m.ShardOutage, m.ShardDown = one.length, shard
		}
	}
	if !s.HasProbe() {
		return
	}
	probed := a.outageOf(a.logOf(s.ProbeGaps(), a.sum(func(iv *record.Interval) uint64 { return iv.Probe.OK }), a.serviceOfProbe()), false)
	m.ServerOutage, m.ServerOutageEnd = probed.length, probed.end(a.fault.At)
}

// kinds makes the outage that of reads or of writes, if it is provably longer than that of the load: the success of one hides the failure of the other.
// Each of them has fewer successes than the load, so that its gap around the same outage is a little longer.
func (a *analysis) kinds(m *Impact, worst *outage) {
	s := a.curve.series
	gaps := map[string][]record.Gap{Reads: s.ReadGaps(), Writes: s.WriteGaps()}
	ops := map[string][]int{}
	for op := range s.Ops {
		kind := Writes
		if s.ReadOnly(op) {
			kind = Reads
		}
		ops[kind] = append(ops[kind], op)
	}
	if len(ops) < 2 {
		return
	}
	length := worst.length
	for _, kind := range []string{Writes, Reads} {
		one := a.outageOf(a.logOf(gaps[kind], a.sumOps(ops[kind]), a.service(ops[kind])), true)
		if one.length.AtLeast > length.Value {
			length = length.Max(one.length)
			worst.longest, worst.usual, m.OutageOf = one.longest, one.usual, kind
		}
	}
	worst.length = length
}

// service is the 99th percentile of the service time of operations in the baseline; nil = of all.
func (a *analysis) service(ops []int) time.Duration {
	var service, latency record.Distribution
	for i := a.baseFirst; i < a.first; i++ {
		iv := a.curve.series.At(i)
		if ops == nil {
			for k := range iv.Ops {
				service.Add(iv.Ops[k].Service)
				latency.Add(iv.Ops[k].Latency)
			}
		}
		for _, k := range ops {
			service.Add(iv.Ops[k].Service)
			latency.Add(iv.Ops[k].Latency)
		}
	}
	if service.Count() == 0 { // closed loop: the latency is the service time
		return latency.Quantile(0.99)
	}
	return service.Quantile(0.99)
}

func (a *analysis) serviceOfProbe() time.Duration {
	var service record.Distribution
	for i := a.baseFirst; i < a.first; i++ {
		service.Add(a.curve.series.At(i).Probe.Service)
	}
	return service.Quantile(0.99)
}

// sum adds a count over the baseline.
func (a *analysis) sum(of func(*record.Interval) uint64) uint64 {
	var sum uint64
	for i := a.baseFirst; i < a.first; i++ {
		sum += of(a.curve.series.At(i))
	}
	return sum
}

func (a *analysis) sumOps(ops []int) uint64 {
	return a.sum(func(iv *record.Interval) (ok uint64) {
		for _, k := range ops {
			ok += iv.Ops[k].OK
		}
		return ok
	})
}

func shardOK(iv *record.Interval, shard int) uint64 {
	if shard >= len(iv.Shards) {
		return 0
	}
	return iv.Shards[shard].OK
}

// Limits of GeneratorStalled.
const (
	stalledFor   = 5 * time.Millisecond
	stalledShare = 0.05 // of the outage
)

// stalled returns a doubt if stalls of the load generator make the outage uncertain.
func (a *analysis) stalled(o *outage) *Doubt {
	wide := o.length.AtMost - o.length.AtLeast - o.usual - a.apart()
	if wide <= max(stalledFor, time.Duration(stalledShare*float64(o.length.Value))) {
		return nil
	}
	near := record.Stall{From: o.longest.From - o.longest.MaybeBefore - int64(stalledFor), To: o.longest.To + int64(stalledFor)}
	for pod := range a.curve.series.Pods {
		var sum, longest time.Duration
		count := 0
		for _, s := range a.curve.series.Stalls(pod) {
			if s.To <= near.From || s.From >= near.To {
				continue
			}
			count++
			sum += time.Duration(s.To - s.From)
			longest = max(longest, time.Duration(s.To-s.From))
		}
		if sum > stalledFor {
			return &Doubt{GeneratorStalled, fmt.Sprintf("load pod %d did not run for %s around the outage (%d times, at most %s): no request was on its way then. "+
				"The outage was between %s and %s. Use a second load pod on another node, or raise the pod's CPU limit", pod, brief(sum), count, brief(longest),
				brief(o.length.AtLeast), brief(o.length.AtMost))}
		}
	}
	return nil
}
