package merged

import (
	"slices"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/silence"
)

// ReadGaps is like ShardGaps, for the operations that only read; nil without such an operation. See
// SetReadOnly.
func (s *Series) ReadGaps() []record.Gap {
	return s.kindGaps(record.Reads, true)
}

// WriteGaps is like ReadGaps, for the other operations.
func (s *Series) WriteGaps() []record.Gap {
	return s.kindGaps(record.Writes, false)
}

// OpGaps is like ShardGaps, for one operation.
func (s *Series) OpGaps(op int) []record.Gap {
	if len(s.Ops) == 1 {
		return s.Gaps()
	}
	return s.gapsOfPart(record.OpPart(op))
}

func (s *Series) kindGaps(part record.Part, readOnly bool) []record.Gap {
	switch {
	case !slices.Contains(s.readOnly, readOnly):
		return nil
	case !slices.Contains(s.readOnly, !readOnly): // there is no other kind
		return s.Gaps()
	}
	return s.gapsOfPart(part)
}

func (s *Series) gapsOfPart(part record.Part) []record.Gap {
	return s.partial(s.common.parts, int(part), func(p *podRecord) *silence.PartStream {
		return at(p.parts, int(part))
	})
}

// SetReadOnly tells which operations only read, in the order of Ops; without it, all count as
// writes. It panics after the first Add.
func (s *Series) SetReadOnly(readOnly []bool) {
	if len(s.intervals) > 0 || len(readOnly) != len(s.Ops) {
		panic("kinds of operations set after the first interval, or not for each")
	}
	s.readOnly = slices.Clone(readOnly)
}

// ReadOnly reports whether operation op only reads.
func (s *Series) ReadOnly(op int) bool {
	return s.readOnly[op]
}

// addParts adds a pod's figures of reads, writes and operations of the interval [begin, end). A
// load with one operation has no parts.
func (p *podRecord) addParts(s *Series, iv *record.Interval, begin, end int64) {
	if len(s.Ops) == 1 {
		return
	}
	for len(p.parts) < int(record.OpPart(len(s.Ops))) {
		p.parts = append(p.parts, silence.NewPartStream())
	}
	var ok, errors [2]uint64
	for k := range iv.Ops {
		c := &iv.Ops[k].Counts
		p.parts[record.OpPart(k)].Count(c.OK, c.Fail+c.Unknown, begin, end)
		kind := s.kind(k)
		ok[kind] += c.OK
		errors[kind] += c.Fail + c.Unknown
	}
	for kind := range ok {
		p.parts[kind].Count(ok[kind], errors[kind], begin, end)
	}
	for _, g := range iv.PartGaps {
		t := &p.parts[g.Part]
		t.Gaps = append(t.Gaps, g.Gap)
	}
}

// hasPart reports whether the load has a part. One with a single operation has none.
func (s *Series) hasPart(part record.Part) bool {
	return len(s.Ops) > 1 && part >= 0 && part < record.OpPart(len(s.Ops))
}

func (s *Series) kind(op int) record.Part {
	if s.readOnly[op] {
		return record.Reads
	}
	return record.Writes
}

// at returns entry i of the list; nil if there is none.
func at(list []silence.PartStream, i int) *silence.PartStream {
	if i < 0 || i >= len(list) {
		return nil
	}
	return &list[i]
}

// partial intersects the gaps of the pods that sent requests to a part, with those that were merged
// before.
func (s *Series) partial(
	merged []silence.Merging, part int, of func(*podRecord) *silence.PartStream,
) []record.Gap {
	end := int64(s.End())
	born, failed, over := int64(-1), int64(-1), true
	var lists [][]record.Gap
	for i := range s.pods {
		p := &s.pods[i]
		t := of(p)
		if t == nil || t.Tried < 0 {
			continue
		}
		born = record.Earlier(born, t.Tried)
		failed = max(failed, t.Failed)
		over = over && p.isOver(t)
		lists = append(lists, t.Silence(p.delivered(s.PodStep), end, s.PodStep, p.finished))
	}
	if lists == nil {
		return nil
	}
	var m silence.Merging
	if part < len(merged) {
		m = merged[part]
	}
	var gaps []record.Gap
	for _, g := range silence.Cut(m.Common(lists), end) {
		if g.From <= born {
			g.UnprovenHead, g.From = max(0, g.UnprovenHead-(born-g.From)), born
			if g.To <= born+int64(s.PodStep) {
				continue
			}
		}
		if g.Open && failed <= g.From && over && g.AtLeast(0) == 0 {
			continue
		}
		gaps = append(gaps, g)
	}
	return gaps
}

// isOver reports whether a pod's requests to a part have come to their end, as those of an
// operation whose turn is over or of a shard that is removed: while others succeeded, the part was
// silent for many of the mean times between its successes. With random arrivals one pause in e^20
// is longer.
func (p *podRecord) isOver(t *silence.PartStream) bool {
	const many = 20
	if t.OK < 2 {
		return true
	}
	silent := p.load.Last - t.Last
	for _, g := range p.load.Gaps { // in which nobody succeeded
		silent -= max(0, min(g.To, p.load.Last)-max(g.From, t.Last))
	}
	return silent > many*(t.Last-t.First)/int64(t.OK-1)
}

// addShards adds a pod's shard figures of the interval [begin, end).
func (p *podRecord) addShards(iv *record.Interval, begin, end int64) {
	n := len(iv.Shards)
	for i := range iv.ShardGaps {
		n = max(n, iv.ShardGaps[i].Shard+1)
	}
	for len(p.shards) < n {
		p.shards = append(p.shards, silence.NewPartStream())
	}
	for k := range iv.Shards {
		p.shards[k].Count(iv.Shards[k].OK, iv.Shards[k].Errors, begin, end)
	}
	for _, g := range iv.ShardGaps {
		t := &p.shards[g.Shard]
		t.Gaps = append(t.Gaps, g.Gap)
	}
}

func beyond(g record.ShardGap) bool {
	return g.Shard < 0 || g.Shard >= record.MaxShards
}

// addProbes adds what the probe of each of several shards did in the interval [begin, end).
func (p *podRecord) addProbes(iv *record.Interval, begin, end int64) {
	n := len(iv.ProbeShards)
	for i := range iv.ProbeShardGaps {
		n = max(n, iv.ProbeShardGaps[i].Shard+1)
	}
	for len(p.probes) < n {
		p.probes = append(p.probes, silence.NewStream())
	}
	for k, c := range iv.ProbeShards {
		if c.OK > 0 {
			p.probes[k].Add(nil, c.OK, begin, end)
		}
	}
	for _, g := range iv.ProbeShardGaps {
		t := &p.probes[g.Shard]
		t.Gaps = append(t.Gaps, g.Gap)
	}
}

// Shards is the number of shards that have received requests so far; 0 for a target with one shard.
func (s *Series) Shards() int {
	n := 0
	for i := range s.pods {
		n = max(n, len(s.pods[i].shards))
	}
	return n
}

// ShardGaps is like Gaps, for one shard, over the pods that sent requests to it. A shard has no gap
// before its first request, nor if its first success is in the same interval as that request. If
// the last success is not followed by another, the gap is assumed to begin at the end of its
// interval, and it counts only if a later interval has an error of that shard: otherwise no more
// requests were sent to it.
func (s *Series) ShardGaps(shard int) []record.Gap {
	return s.partial(s.common.shards, shard, func(p *podRecord) *silence.PartStream {
		return at(p.shards, shard)
	})
}
