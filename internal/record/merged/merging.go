package merged

import (
	"math"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
	"github.com/redquake/redquake/internal/record/silence"
)

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
