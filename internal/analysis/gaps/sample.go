package gaps

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
	"github.com/redquake/redquake/internal/record/merged"
)

// LeastWait is what a request may always wait though the server serves: one that continues works
// off what has gathered before.
const LeastWait = time.Millisecond

// Proven is for how long a request waited in vain in a gap, less what it may have waited though
// the server served. 0 if that is less than LeastWait, or a tenth of what is usual from the send:
// one request in a hundred waits a little longer.
func Proven(g record.Gap, usual, service time.Duration) time.Duration {
	proven := time.Duration(g.AtLeast(int64(max(usual, LeastWait))))
	if proven < max(LeastWait, service/10) {
		return 0
	}
	return proven
}

// UsualWait is how long a request may wait though the server serves: the 99th percentile of the
// service time, and one mean time between the successes of a length of time.
func UsualWait(service, length time.Duration, ok uint64) time.Duration {
	if ok == 0 {
		return service
	}
	return service + length/time.Duration(ok)
}

// Sample is a part of a record from which it is known what is usual: the intervals [first, end),
// without those of outages.
type Sample struct {
	series     *merged.Series
	first, end int
	outage     []bool // of each interval from first on; nil = none
}

// An outage shows in a gap in which a request waited in vain for provenOutage, and for ManyTimes
// the median service time.
const (
	provenOutage = 5 * time.Millisecond
	ManyTimes    = 10
)

// SampleOf returns the intervals [first, end).
func SampleOf(s *merged.Series, first, end int) *Sample {
	return &Sample{
		series: s,
		first:  first,
		end:    end,
	}
}

// Steady returns the intervals of [first, end) that no outage overlaps; all of them, if there
// is no success outside of outages.
func Steady(s *merged.Series, first, end int) *Sample {
	m := SampleOf(s, first, end)
	median := m.Service(nil, 0.5)
	outage := make([]bool, end-first)
	mark := func(gaps []record.Gap, median time.Duration) {
		for _, g := range gaps {
			if time.Duration(g.AtLeast(0)) <= max(provenOutage, ManyTimes*median) {
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
		ops := Operations(s, kind)
		if len(ops) > 0 && len(ops) < len(s.Ops) {
			mark(OfKind(s, kind), m.Service(ops, 0.5))
		}
	}
	for shard := range s.Shards() {
		mark(s.ShardGaps(shard), median)
	}
	if s.HasProbe() {
		for _, gaps := range OfProbes(s) {
			mark(gaps, m.ServiceOfProbe(0.5))
		}
	}
	steady := &Sample{
		series: s,
		first:  first,
		end:    end,
		outage: outage,
	}
	if steady.Successes(nil) == 0 {
		return m
	}
	return steady
}

// has reports whether an interval is in the sample.
func (m *Sample) has(i int) bool {
	return m.outage == nil || !m.outage[i-m.first]
}

// hasHistograms reports whether all intervals are in the sample that the histograms of an interval
// span.
func (m *Sample) hasHistograms(i int) bool {
	if m.outage == nil {
		return true
	}
	to := min(i-m.first+max(1, int(m.series.LatencyStep/m.series.Step)), len(m.outage))
	return !slices.Contains(m.outage[i-m.first:to], true)
}

// length is the time in the sample.
func (m *Sample) length() time.Duration {
	n := 0
	for i := m.first; i < m.end; i++ {
		if m.has(i) {
			n++
		}
	}
	return time.Duration(n) * m.series.Step
}

// Service is a quantile of the service time of operations; nil = of all.
func (m *Sample) Service(ops []int, q float64) time.Duration {
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

// ServiceOfProbe is a quantile of the service time of the probe.
func (m *Sample) ServiceOfProbe(q float64) time.Duration {
	var service histogram.Distribution
	for i := m.first; i < m.end; i++ {
		if m.hasHistograms(i) {
			service.Add(m.series.At(i).Probe.Service)
		}
	}
	return service.Quantile(q)
}

// sum adds a count over the sample.
func (m *Sample) sum(of func(*record.Interval) uint64) uint64 {
	var sum uint64
	for i := m.first; i < m.end; i++ {
		if m.has(i) {
			sum += of(m.series.At(i))
		}
	}
	return sum
}

// Successes are those of operations; nil = of all.
func (m *Sample) Successes(ops []int) uint64 {
	return m.sum(func(iv *record.Interval) (ok uint64) {
		for k := range iv.Ops {
			if ops == nil || slices.Contains(ops, k) {
				ok += iv.Ops[k].OK
			}
		}
		return ok
	})
}

// AtShard is the number of successes at a shard.
func (m *Sample) AtShard(shard int) uint64 {
	return m.sum(func(iv *record.Interval) uint64 {
		if shard >= len(iv.Shards) {
			return 0
		}
		return iv.Shards[shard].OK
	})
}

// OfProbe is the number of successes of the probe at each shard: all are probed alike.
func (m *Sample) OfProbe() uint64 {
	ok := m.sum(func(iv *record.Interval) uint64 { return iv.Probe.OK })
	return ok / uint64(max(1, m.series.ProbeShards()))
}

// IsOpenLoop reports whether requests were sent when they were due, so that their latency is not
// the service time.
func (m *Sample) IsOpenLoop() bool {
	for i := m.first; i < m.end; i++ {
		for k := range m.series.At(i).Ops {
			if len(m.series.At(i).Ops[k].Service) > 0 {
				return true
			}
		}
	}
	return false
}
