package impact

import (
	"cmp"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// BoundedGap is a gap of a record with the bounds of its length.
type BoundedGap struct {
	record.Gap
	Length durations.Bounded
}

// Gaps are the gaps of a record. Their bounds are those of an outage (see Analyze), with the part
// of the record in which the server served as the baseline. The probe's and the load's gaps are
// all; those of reads, writes, operations and shards are only those in which a request waited in
// vain.
type Gaps struct {
	series *merged.Series
	steady *sample
}

// NewGaps returns the gaps of a record. What is usual without an outage is taken from the intervals
// between two instants.
func NewGaps(s *merged.Series, from, to time.Duration) *Gaps {
	first, end := s.Window(from, to)
	return &Gaps{series: s, steady: steadySample(s, first, end)}
}

// Load returns the gaps of the load.
func (g *Gaps) Load() []BoundedGap {
	return g.bounded(g.series.Gaps(), g.usual(nil), false)
}

// Kind returns the gaps of Reads or of Writes; nil for a load that has only one of them.
func (g *Gaps) Kind(kind string) []BoundedGap {
	ops := opsOf(g.series, kind)
	if len(ops) == 0 || len(ops) == len(g.series.Ops) {
		return nil
	}
	return g.bounded(gapsOfKind(g.series, kind), g.usual(ops), true)
}

// Operation returns the gaps of one operation.
func (g *Gaps) Operation(op int) []BoundedGap {
	if len(g.series.Ops) == 1 {
		return g.Load()
	}
	return g.bounded(g.series.OpGaps(op), g.usual([]int{op}), true)
}

// Shard returns the gaps of one shard.
func (g *Gaps) Shard(shard int) []BoundedGap {
	ok := g.steady.sum(func(iv *record.Interval) uint64 { return shardOK(iv, shard) })
	return g.bounded(g.series.ShardGaps(shard), usualWait(g.usual(nil), g.steady.length(), ok), true)
}

// Probe returns the gaps of the probe, with several shards those of each one's; nil without a
// probe.
func (g *Gaps) Probe() []BoundedGap {
	ok := g.steady.sum(func(iv *record.Interval) uint64 { return iv.Probe.OK }) /
		uint64(max(1, g.series.ProbeShards()))
	usual := usualWait(g.steady.serviceOfProbe(0.99), g.steady.length(), ok)
	var list []BoundedGap
	for _, gaps := range probeGaps(g.series) {
		list = append(list, g.bounded(gaps, usual, false)...)
	}
	slices.SortStableFunc(list, func(a, b BoundedGap) int { return cmp.Compare(a.From, b.From) })
	return list
}

func (g *Gaps) usual(ops []int) time.Duration {
	return usualWait(g.steady.service(ops, 0.99), g.steady.length(), g.steady.successes(ops))
}

func (g *Gaps) bounded(gaps []record.Gap, usual time.Duration, proven bool) []BoundedGap {
	p, apart := gapLog{usual: usual}, time.Duration(0)
	if g.series.Pods > 1 {
		apart = 2 * g.series.ClockUncertainty
	}
	var out []BoundedGap
	for _, one := range gaps {
		atLeast := p.atLeast(gap{Gap: one})
		if proven && atLeast == 0 {
			continue
		}
		out = append(out, BoundedGap{
			one,
			durations.Within(gap{Gap: one}.length(), atLeast-apart, time.Duration(one.AtMost())+apart),
		})
	}
	return out
}

// opsOf returns the operations of a kind.
func opsOf(s *merged.Series, kind string) (ops []int) {
	for op := range s.Ops {
		if s.ReadOnly(op) == (kind == Reads) {
			ops = append(ops, op)
		}
	}
	return ops
}

func gapsOfKind(s *merged.Series, kind string) []record.Gap {
	if kind == Reads {
		return s.ReadGaps()
	}
	return s.WriteGaps()
}

// usualWait is how long a request may wait though the server serves: the 99th percentile of the
// service time, and one mean time between the successes of a length of time.
func usualWait(service, length time.Duration, ok uint64) time.Duration {
	if ok == 0 {
		return service
	}
	return service + length/time.Duration(ok)
}

// sample is a part of a record from which it is known what is usual: the intervals [first, end),
// without those of outages.
type sample struct {
	series     *merged.Series
	first, end int
	outage     []bool // of each interval from first on; nil = none
}

// An outage shows in a gap in which a request waited in vain for provenOutage, and for manyTimes
// the median service time.
const (
	provenOutage = 5 * time.Millisecond
	manyTimes    = 10
)

// steadySample returns the intervals of [first, end) that no outage overlaps; all of them, if there
// is no success outside of outages.
func steadySample(s *merged.Series, first, end int) *sample {
	m := &sample{
		series: s,
		first:  first,
		end:    end,
	}
	median := m.service(nil, 0.5)
	outage := make([]bool, end-first)
	mark := func(gaps []record.Gap, median time.Duration) {
		for _, g := range gaps {
			if time.Duration(g.AtLeast(0)) <= max(provenOutage, manyTimes*median) {
				continue
			}
			from := int(time.Duration(g.From)/s.Step) - first
			to := int(time.Duration(g.To)/s.Step) - first
			for i := max(from, 0); i <= min(to, len(outage)-1); i++ {
				outage[i] = true
			}
		}
	}
	mark(s.Gaps(), median)
	for _, kind := range []string{Reads, Writes} {
		ops := opsOf(s, kind)
		if len(ops) > 0 && len(ops) < len(s.Ops) {
			mark(gapsOfKind(s, kind), m.service(ops, 0.5))
		}
	}
	for shard := range s.Shards() {
		mark(s.ShardGaps(shard), median)
	}
	if s.HasProbe() {
		for _, gaps := range probeGaps(s) {
			mark(gaps, m.serviceOfProbe(0.5))
		}
	}
	steady := &sample{
		series: s,
		first:  first,
		end:    end,
		outage: outage,
	}
	if steady.successes(nil) == 0 {
		return m
	}
	return steady
}

// has reports whether an interval is in the sample.
func (m *sample) has(i int) bool {
	return m.outage == nil || !m.outage[i-m.first]
}

// hasHistograms reports whether all intervals are in the sample that the histograms of an interval
// span.
func (m *sample) hasHistograms(i int) bool {
	if m.outage == nil {
		return true
	}
	to := min(i-m.first+max(1, int(m.series.LatencyStep/m.series.Step)), len(m.outage))
	return !slices.Contains(m.outage[i-m.first:to], true)
}

// length is the time in the sample.
func (m *sample) length() time.Duration {
	n := 0
	for i := m.first; i < m.end; i++ {
		if m.has(i) {
			n++
		}
	}
	return time.Duration(n) * m.series.Step
}

// service is a quantile of the service time of operations; nil = of all.
func (m *sample) service(ops []int, q float64) time.Duration {
	var service, latency histogram.Distribution
	for i := m.first; i < m.end; i++ {
		if !m.hasHistograms(i) {
			continue
		}
		iv := m.series.At(i)
		for k := range iv.Ops {
			if ops == nil || slices.Contains(ops, k) {
				service.Add(iv.Ops[k].Service)
				latency.Add(iv.Ops[k].Latency)
			}
		}
	}
	if service.Count() == 0 { // closed loop: the latency is the service time
		return latency.Quantile(q)
	}
	return service.Quantile(q)
}

func (m *sample) serviceOfProbe(q float64) time.Duration {
	var service histogram.Distribution
	for i := m.first; i < m.end; i++ {
		if m.hasHistograms(i) {
			service.Add(m.series.At(i).Probe.Service)
		}
	}
	return service.Quantile(q)
}

// sum adds a count over the sample.
func (m *sample) sum(of func(*record.Interval) uint64) uint64 {
	var sum uint64
	for i := m.first; i < m.end; i++ {
		if m.has(i) {
			sum += of(m.series.At(i))
		}
	}
	return sum
}

// successes are those of operations; nil = of all.
func (m *sample) successes(ops []int) uint64 {
	return m.sum(func(iv *record.Interval) (ok uint64) {
		for k := range iv.Ops {
			if ops == nil || slices.Contains(ops, k) {
				ok += iv.Ops[k].OK
			}
		}
		return ok
	})
}
