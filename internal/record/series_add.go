package record

import (
	"fmt"
	"slices"
)

// Add merges an interval of a pod, exactly. Each pod's intervals must be added in order and without holes: otherwise the error wraps ErrDuplicate or
// ErrHole; after Lose or Finish it wraps ErrEnded, and ErrShape if the interval does not belong to this run. An error leaves the series unchanged.
// iv is only read and not retained.
func (s *Series) Add(pod int, iv *Interval) error {
	if err := s.check(pod, iv); err != nil {
		return err
	}
	p := &s.pods[pod]
	iv = p.corrected(iv)
	share := s.share()
	i := iv.Index / share
	if i == int64(len(s.intervals)) {
		s.intervals = append(s.intervals, s.newInterval(i))
	}
	sum := &s.intervals[i]
	s.mergeFigures(i, p, iv)
	if iv.Index%share == 0 {
		sum.Pods++
		sum.Connections += iv.Connections
	} else {
		sum.Connections += iv.Connections - p.connections
	}
	p.connections = iv.Connections
	p.next++
	begin, end := max(0, iv.Index*int64(s.PodStep)-p.ahead), p.delivered(s.PodStep)
	p.load.add(iv.Gaps, sumOK(iv.Ops), iv.FirstOK, iv.LastOK)
	first, last := int64(-1), int64(-1)
	if iv.Probe.OK > 0 {
		first, last = begin, end // intervals do not contain the probe's instants
	}
	p.probe.add(iv.ProbeGaps, iv.Probe.OK, first, last)
	p.addShards(iv, begin, end)
	if s.pending += len(iv.Gaps) + len(iv.ProbeGaps) + len(iv.ShardGaps); s.pending > s.foldAt {
		s.foldGaps()
	}
	s.addServers(iv.Servers)
	s.addAgents(pod, iv.Agents)
	return nil
}

// check returns why an interval of a pod cannot be added.
func (s *Series) check(pod int, iv *Interval) error {
	if pod < 0 || pod >= s.Pods {
		return fmt.Errorf("%w: pod %d of %d", ErrShape, pod, s.Pods)
	}
	p := &s.pods[pod]
	switch {
	case len(iv.Ops) != len(s.Ops):
		return fmt.Errorf("%w: pod %d delivered %d operations, the run has %d", ErrShape, pod, len(iv.Ops), len(s.Ops))
	case len(iv.Tallies) > 0 && len(iv.Tallies) != len(s.Tallies):
		return fmt.Errorf("%w: pod %d delivered %d tallies, the run has %d", ErrShape, pod, len(iv.Tallies), len(s.Tallies))
	case len(iv.Shards) > MaxShards || slices.ContainsFunc(iv.ShardGaps, func(g ShardGap) bool { return g.Shard < 0 || g.Shard >= MaxShards }):
		return fmt.Errorf("%w: pod %d delivered a shard beyond %d", ErrShape, pod, MaxShards)
	case iv.Index < p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrDuplicate, pod, iv.Index, p.next)
	case p.lost || p.finished:
		return fmt.Errorf("%w: pod %d delivered %d", ErrEnded, pod, iv.Index)
	case iv.Index > p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrHole, pod, iv.Index, p.next)
	}
	return nil
}

// mergeFigures adds all additive figures: all but Pods, Connections and the lists.
func (s *Series) mergeFigures(i int64, p *podRecord, iv *Interval) {
	sum := &s.intervals[i]
	at := &s.intervals[i-i%int64(s.LatencyStep/s.Step)] // the interval that holds the histograms
	for k := range iv.Ops {
		c := &iv.Ops[k].Counts
		sum.Ops[k].Counts.add(c)
		s.requests += c.OK + c.Fail + c.Unknown + c.Dropped
		at.Ops[k].merge(&iv.Ops[k])
	}
	sum.Probe.Counts.add(&iv.Probe.Counts)
	at.Probe.merge(&iv.Probe)
	s.mergeInstants(sum, p, iv)
	sum.mergeTallies(iv)
}
