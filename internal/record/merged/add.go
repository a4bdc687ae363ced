package merged

import (
	"fmt"
	"math"
	"slices"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/silence"
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
	s.observed.add(pod, iv)
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
		sealed := b.number*s.blockLen() + first
		if sealed < s.fine.sealed {
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

const (
	// leastFold is the number of gaps of pods from which they are merged.
	leastFold = 4096
)

// settle notes that the pod has delivered all gaps that ended before the end of iv, its latest
// interval: those that it will deliver begin with the last success before it, or later. If it has
// had a later success by then, it did not run for a while, and when the last one before was is
// unknown.
func (p *podRecord) settle(iv *record.Interval, end int64) {
	if iv.Unsettled || p.load.Last > end {
		return
	}
	p.settled = end
	p.load.Known, p.probe.Known = p.load.Last, p.probe.Last
	for i := range p.probes {
		p.probes[i].Known = p.probes[i].Last
	}
	for _, list := range [][]silence.PartStream{p.shards, p.parts} {
		for i := range list {
			list[i].Known = list[i].Last
		}
	}
}

// foldGaps merges the gaps of all pods as far as they are known.
func (s *Series) foldGaps() {
	s.foldStreams(&s.common.load, func(p *podRecord) *silence.Stream { return &p.load })
	s.foldStreams(&s.common.probe, s.probing())
	for len(s.common.probeShards) < s.ProbeShards() {
		s.common.probeShards = append(s.common.probeShards, silence.Merging{})
	}
	for k := range s.common.probeShards {
		s.foldStreams(&s.common.probeShards[k], probeOf(k))
	}
	for len(s.common.shards) < s.Shards() {
		s.common.shards = append(s.common.shards, silence.Merging{})
	}
	for k := range s.common.shards {
		s.foldStreams(&s.common.shards[k], func(p *podRecord) *silence.Stream {
			return triedAt(p.shards,
				k)
		})
	}
	if len(s.Ops) > 1 && s.common.parts == nil {
		s.common.parts = make([]silence.Merging, record.OpPart(len(s.Ops)))
	}
	for k := range s.common.parts {
		s.foldStreams(&s.common.parts[k], func(p *podRecord) *silence.Stream {
			return triedAt(p.parts,
				k)
		})
	}
	s.common.pending = 0
	for _, t := range s.streams() {
		s.common.pending += len(t.Gaps)
	}
	s.common.foldAt = max(leastFold, 2*s.common.pending)
}

// triedAt is the stream of a shard or a part; nil if the pod has sent no request to it.
func triedAt(list []silence.PartStream, i int) *silence.Stream {
	if t := at(list, i); t != nil && t.Tried >= 0 {
		return &t.Stream
	}
	return nil
}

// foldStreams merges the gaps of one stream of each pod. A pod without it does not affect the gaps
// before it has one.
func (s *Series) foldStreams(m *silence.Merging, of func(*podRecord) *silence.Stream) {
	end := int64(s.End())
	until := end
	streams := make([]*silence.Stream, 0, len(s.pods))
	for i := range s.pods {
		p := &s.pods[i]
		delivered := p.delivered(s.PodStep)
		known := delivered
		if t := of(p); t != nil {
			streams = append(streams, t)
			known = t.Merged(p.settled, s.PodStep)
		}
		if (p.lost || p.finished) && delivered < end {
			known = math.MaxInt64
		}
		until = min(until, known)
	}
	m.Fold(s.silences(of, math.MaxInt64), streams, until) // none of those that have not ended
}

// silences lists the periods without a success of each pod that has such a stream.
func (s *Series) silences(of func(*podRecord) *silence.Stream, end int64) [][]record.Gap {
	var lists [][]record.Gap
	for i := range s.pods {
		if t := of(&s.pods[i]); t != nil {
			lists = append(lists, t.Silence(s.pods[i].delivered(s.PodStep), end, s.PodStep,
				s.pods[i].finished))
		}
	}
	return lists
}

// mergings lists those of the load, of the probe, of the probe of every shard, of every shard and
// of every part.
func (s *Series) mergings() []*silence.Merging {
	list := []*silence.Merging{&s.common.load, &s.common.probe}
	for k := range s.common.probeShards {
		list = append(list, &s.common.probeShards[k])
	}
	for k := range s.common.shards {
		list = append(list, &s.common.shards[k])
	}
	for k := range s.common.parts {
		list = append(list, &s.common.parts[k])
	}
	return list
}

func appendMergings(b []byte, s *Series) []byte {
	b = codec.AppendUint(b, uint64(len(s.common.probeShards)))
	b = codec.AppendUint(b, uint64(len(s.common.shards)))
	b = codec.AppendUint(b, uint64(len(s.common.parts)))
	for _, m := range s.mergings() {
		b = m.Append(b)
	}
	return b
}

func readMergings(r *codec.Reader, s *Series) {
	s.common.probeShards = make([]silence.Merging, min(r.Count(2), record.MaxShards))
	if shards := r.Count(2); shards > 0 {
		s.common.shards = make([]silence.Merging, min(shards, record.MaxShards))
	}
	if parts := r.Count(2); parts > 0 {
		s.common.parts = make([]silence.Merging, min(parts, record.MaxParts))
	}
	for _, m := range s.mergings() {
		m.Read(r)
	}
}
