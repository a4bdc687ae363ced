package merged

import (
	"math"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

// merging is what the gap logs of all pods have in common, up to an instant. It is computed all along, so that of each pod only the gaps are kept
// that can still intersect with others: what pods log together without a common gap takes no memory.
type merging struct {
	gaps  []record.Gap // the common gaps that end at until or before, ascending
	until int64
}

// common returns the intersection of the pods' lists, with what was merged before. Each list contains all gaps of its pod that end after until.
func (m *merging) common(lists [][]record.Gap) []record.Gap {
	if len(lists) == 0 {
		return m.gaps
	}
	common := lists[0]
	for _, list := range lists[1:] {
		common = record.Overlap(common, list)
	}
	later := slices.DeleteFunc(slices.Clone(common), func(g record.Gap) bool { return g.To <= m.until })
	return append(m.gaps[:len(m.gaps):len(m.gaps)], later...)
}

// fold merges the pods' lists up to an instant to which all of them are known, and removes from the streams what is merged.
func (m *merging) fold(lists [][]record.Gap, streams []*stream, until int64) {
	if until <= m.until {
		return
	}
	before := len(m.gaps)
	for _, g := range m.common(lists)[before:] {
		if g.To <= until && g.AtMost() > minGap {
			m.gaps = append(m.gaps, g)
		}
	}
	m.until = until
	for _, t := range streams {
		var pending []record.Gap
		for _, g := range t.gaps {
			if g.To > until || g.Open {
				pending = append(pending, g)
			}
		}
		t.gaps = pending // another slice: a copy of the series may share the old one
	}
}

const (
	// longSilence is how long a pod must have had no success to be considered in a gap: one that it will log.
	longSilence = int64(time.Minute)
	// leastFold is the number of gaps of pods from which they are merged.
	leastFold = 4096
)

// settle notes that the pod has delivered all gaps that ended before the end of iv, its latest interval: those that it will deliver begin with the last
// success before it, or later. If it has had a later success by then, it did not run for a while, and when the last one before was is unknown.
func (p *podRecord) settle(iv *record.Interval, end int64) {
	if iv.Unsettled || p.load.last > end {
		return
	}
	p.settled = end
	p.load.known, p.probe.known = p.load.last, p.probe.last
	for i := range p.probes {
		p.probes[i].known = p.probes[i].last
	}
	for _, list := range [][]partStream{p.shards, p.parts} {
		for i := range list {
			list[i].known = list[i].last
		}
	}
}

// merged is the instant up to which the gaps of a pod can be merged whose latest settled interval ended at settled: it will deliver none that begins
// before it, except for the one in which it has been for long.
func (t *stream) merged(settled int64, step time.Duration) int64 {
	if t.known == t.last && settled-t.last > max(longSilence, t.threshold()) {
		return settled - 1
	}
	return t.known - int64(step) // an instant may be only known to be within its interval
}

// foldGaps merges the gaps of all pods as far as they are known.
func (s *Series) foldGaps() {
	s.foldStreams(&s.loadGaps, func(p *podRecord) *stream { return &p.load })
	s.foldStreams(&s.probeGaps, s.probing())
	for len(s.probeShardGaps) < s.ProbeShards() {
		s.probeShardGaps = append(s.probeShardGaps, merging{})
	}
	for k := range s.probeShardGaps {
		s.foldStreams(&s.probeShardGaps[k], probeOf(k))
	}
	for len(s.shardGaps) < s.Shards() {
		s.shardGaps = append(s.shardGaps, merging{})
	}
	for k := range s.shardGaps {
		s.foldStreams(&s.shardGaps[k], func(p *podRecord) *stream { return triedAt(p.shards, k) })
	}
	if len(s.Ops) > 1 && s.partGaps == nil {
		s.partGaps = make([]merging, record.OpPart(len(s.Ops)))
	}
	for k := range s.partGaps {
		s.foldStreams(&s.partGaps[k], func(p *podRecord) *stream { return triedAt(p.parts, k) })
	}
	s.pending = 0
	for _, t := range s.streams() {
		s.pending += len(t.gaps)
	}
	s.foldAt = max(leastFold, 2*s.pending)
}

// triedAt is the stream of a shard or a part; nil if the pod has sent no request to it.
func triedAt(list []partStream, i int) *stream {
	if t := at(list, i); t != nil && t.tried >= 0 {
		return &t.stream
	}
	return nil
}

// foldStreams merges the gaps of one stream of each pod. A pod without it does not affect the gaps before it has one.
func (s *Series) foldStreams(m *merging, of func(*podRecord) *stream) {
	end := int64(s.End())
	until := end
	streams := make([]*stream, 0, len(s.pods))
	for i := range s.pods {
		p := &s.pods[i]
		delivered := p.delivered(s.PodStep)
		known := delivered
		if t := of(p); t != nil {
			streams = append(streams, t)
			known = t.merged(p.settled, s.PodStep)
		}
		if (p.lost || p.finished) && delivered < end {
			known = math.MaxInt64
		}
		until = min(until, known)
	}
	m.fold(s.silences(of, math.MaxInt64), streams, until) // none of those that have not ended
}

// silences lists the periods without a success of each pod that has such a stream.
func (s *Series) silences(of func(*podRecord) *stream, end int64) [][]record.Gap {
	var lists [][]record.Gap
	for i := range s.pods {
		if t := of(&s.pods[i]); t != nil {
			lists = append(lists, t.silence(s.pods[i].delivered(s.PodStep), end, s.PodStep, s.pods[i].finished))
		}
	}
	return lists
}

// mergings lists those of the load, of the probe, of the probe of every shard, of every shard and of every part.
func (s *Series) mergings() []*merging {
	list := []*merging{&s.loadGaps, &s.probeGaps}
	for k := range s.probeShardGaps {
		list = append(list, &s.probeShardGaps[k])
	}
	for k := range s.shardGaps {
		list = append(list, &s.shardGaps[k])
	}
	for k := range s.partGaps {
		list = append(list, &s.partGaps[k])
	}
	return list
}

func appendMergings(b []byte, s *Series) []byte {
	b = codec.AppendUint(b, uint64(len(s.probeShardGaps)))
	b = codec.AppendUint(b, uint64(len(s.shardGaps)))
	b = codec.AppendUint(b, uint64(len(s.partGaps)))
	for _, m := range s.mergings() {
		b = codec.AppendInt(b, m.until)
		b = record.AppendGaps(b, m.gaps)
	}
	return b
}

func readMergings(r *codec.Reader, s *Series) {
	s.probeShardGaps = make([]merging, min(r.Count(2), record.MaxShards))
	if shards := r.Count(2); shards > 0 {
		s.shardGaps = make([]merging, min(shards, record.MaxShards))
	}
	if parts := r.Count(2); parts > 0 {
		s.partGaps = make([]merging, min(parts, record.MaxParts))
	}
	for _, m := range s.mergings() {
		m.until, m.gaps = r.Int(), record.ReadGaps(r)
	}
}
