package merged

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/internal/record"
)

// Add merges an interval of a pod, exactly. Each pod's intervals must be added in order and without
// holes: otherwise the error wraps ErrDuplicate or ErrHole; after Lose or Finish it wraps ErrEnded,
// and ErrShape if the interval does not belong to this run. An error leaves the series unchanged.
// iv is only read and not retained.
func (s *Series) Add(pod int, iv *record.Interval) error {
	if err := s.check(pod, iv); err != nil {
		return err
	}
	p := &s.pods[pod]
	iv = iv.MovedBack(p.ahead)
	s.mergeFigures(p, iv)
	p.connections = iv.Connections
	p.next++
	begin, end := max(0, iv.Index*int64(s.PodStep)-p.ahead), p.delivered(s.PodStep)
	p.load.Add(iv.Gaps, sumOK(iv.Ops), iv.FirstOK, iv.LastOK)
	first, last := int64(-1), int64(-1)
	if iv.Probe.OK > 0 {
		first, last = begin, end // intervals do not contain the probe's instants
	}
	p.probe.Add(iv.ProbeGaps, iv.Probe.OK, first, last)
	p.addProbes(iv, begin, end)
	p.addShards(iv, begin, end)
	p.addParts(s, iv, begin, end)
	s.addStalls(pod, iv, end)
	for _, check := range iv.LedgerChecks {
		check.At = max(0, check.At-p.ahead)
		p.ledger.Follow(check)
	}
	p.settle(iv, end)
	if s.common.pending += len(iv.Gaps) + len(iv.ProbeGaps) + len(iv.ShardGaps) +
		len(iv.ProbeShardGaps) + len(iv.PartGaps); s.common.pending > s.common.foldAt {
		s.foldGaps()
	}
	s.servers.Add(iv.Servers)
	s.servers.AddUnobserved(iv.Unobserved)
	s.agents.Add(pod, iv.Agents)
	if s.fine != nil && p.next%s.blockLen() == 0 {
		s.seal()
	}
	return nil
}

// check returns why an interval of a pod cannot be added.
func (s *Series) check(pod int, iv *record.Interval) error {
	if pod < 0 || pod >= s.Pods {
		return fmt.Errorf("%w: pod %d of %d", ErrShape, pod, s.Pods)
	}
	p := &s.pods[pod]
	switch {
	case len(iv.Ops) != len(s.Ops):
		return fmt.Errorf("%w: pod %d delivered %d operations, the run has %d", ErrShape, pod,
			len(iv.Ops), len(s.Ops))
	case len(iv.Tallies) > 0 && len(iv.Tallies) != len(s.Tallies):
		return fmt.Errorf("%w: pod %d delivered %d tallies, the run has %d", ErrShape, pod,
			len(iv.Tallies), len(s.Tallies))
	case max(len(iv.Shards), len(iv.ProbeShards), len(iv.Lost)) > record.MaxShards ||
		slices.ContainsFunc(iv.ShardGaps, beyond) || slices.ContainsFunc(iv.ProbeShardGaps, beyond):
		return fmt.Errorf("%w: pod %d delivered a shard beyond %d", ErrShape, pod, record.MaxShards)
	case slices.ContainsFunc(iv.PartGaps, func(g record.PartGap) bool { return !s.hasPart(g.Part) }):
		return fmt.Errorf("%w: pod %d delivered a part that %d operations do not have", ErrShape, pod,
			len(s.Ops))
	case iv.Index < p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrDuplicate, pod, iv.Index, p.next)
	case p.lost || p.finished:
		return fmt.Errorf("%w: pod %d delivered %d", ErrEnded, pod, iv.Index)
	case iv.Index > p.next:
		return fmt.Errorf("%w: pod %d delivered %d, expected is %d", ErrHole, pod, iv.Index, p.next)
	}
	return nil
}

// mergeFigures adds all figures but the lists.
func (s *Series) mergeFigures(p *podRecord, iv *record.Interval) {
	sum, at, begins := s.place(iv.Index)
	for k := range iv.Ops {
		c := &iv.Ops[k].Counts
		sum.Ops[k].Counts.Add(c)
		s.requests += c.OK + c.Fail + c.Unknown + c.Dropped
		at.Ops[k].MergeHistograms(&iv.Ops[k])
	}
	sum.Probe.Counts.Add(&iv.Probe.Counts)
	at.Probe.MergeHistograms(&iv.Probe)
	s.mergeInstants(sum, p, iv)
	sum.MergeTallies(iv)
	if begins {
		sum.Pods++
		sum.Connections += iv.Connections
	} else {
		sum.Connections += iv.Connections - p.connections
	}
}

// place returns the interval to which a pod's interval is added, the one that holds its histograms,
// and whether the pod's is the first in it.
func (s *Series) place(index int64) (sum, at *record.Interval, begins bool) {
	if s.fine != nil {
		b := s.blockOf(index)
		i := index % s.blockLen()
		first := i - i%s.fine.group
		// its histograms are already in the coarse record
		if sealed := b.number*s.blockLen() + first; sealed < s.fine.sealed {
			return &b.intervals[i], s.holder(sealed / s.share()), true
		}
		return &b.intervals[i], &b.intervals[first], true
	}
	share := s.share()
	i := index / share
	if i == int64(len(s.intervals)) {
		s.intervals = append(s.intervals, s.newInterval(i))
	}
	return &s.intervals[i], s.holder(i), index%share == 0
}

// holder returns the interval that holds the histograms of interval i.
func (s *Series) holder(i int64) *record.Interval {
	return &s.intervals[i-i%int64(s.LatencyStep/s.Step)]
}

func sumOK(ops []record.Op) uint64 {
	var n uint64
	for i := range ops {
		n += ops[i].OK
	}
	return n
}

// LedgerCheck returns the latest checks of a pod's ledger: the zero value if there was none.
func (s *Series) LedgerCheck(pod int) record.LedgerCheck {
	return s.pods[pod].ledger
}
