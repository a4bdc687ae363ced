package merged

import (
	"slices"

	"github.com/redquake/redquake/internal/record"
)

// ReadGaps is like ShardGaps, for the operations that only read; nil without such an operation. See SetReadOnly.
func (s *Series) ReadGaps() []record.Gap { return s.kindGaps(record.Reads, true) }

// WriteGaps is like ReadGaps, for the other operations.
func (s *Series) WriteGaps() []record.Gap { return s.kindGaps(record.Writes, false) }

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
	return s.partial(s.partGaps, int(part), func(p *podRecord) *partStream { return at(p.parts, int(part)) })
}

// SetReadOnly tells which operations only read, in the order of Ops; without it, all count as writes. It panics after the first Add.
func (s *Series) SetReadOnly(readOnly []bool) {
	if len(s.intervals) > 0 || len(readOnly) != len(s.Ops) {
		panic("kinds of operations set after the first interval, or not for each")
	}
	s.readOnly = slices.Clone(readOnly)
}

// ReadOnly reports whether operation op only reads.
func (s *Series) ReadOnly(op int) bool { return s.readOnly[op] }

// addParts adds a pod's figures of reads, writes and operations of the interval [begin, end). A load with one operation has no parts.
func (p *podRecord) addParts(s *Series, iv *record.Interval, begin, end int64) {
	if len(s.Ops) == 1 {
		return
	}
	for len(p.parts) < int(record.OpPart(len(s.Ops))) {
		p.parts = append(p.parts, newPartStream())
	}
	var ok, errors [2]uint64
	for k := range iv.Ops {
		c := &iv.Ops[k].Counts
		p.parts[record.OpPart(k)].count(c.OK, c.Fail+c.Unknown, begin, end)
		kind := s.kind(k)
		ok[kind] += c.OK
		errors[kind] += c.Fail + c.Unknown
	}
	for kind := range ok {
		p.parts[kind].count(ok[kind], errors[kind], begin, end)
	}
	for _, g := range iv.PartGaps {
		t := &p.parts[g.Part]
		t.gaps = append(t.gaps, g.Gap)
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

// count adds the outcomes of an interval. Intervals do not contain the instants of parts.
func (t *partStream) count(ok, errors uint64, begin, end int64) {
	if ok+errors > 0 && t.tried < 0 {
		if t.tried = begin; begin > 0 { // until then this pod does not affect the gaps of the others
			t.gaps = append(t.gaps, record.Unproven(0, begin))
		}
	}
	if errors > 0 {
		t.failed = end
	}
	if ok > 0 {
		t.add(nil, ok, begin, end)
	}
}

// at returns entry i of the list; nil if there is none.
func at(list []partStream, i int) *partStream {
	if i < 0 || i >= len(list) {
		return nil
	}
	return &list[i]
}

// partial intersects the gaps of the pods that sent requests to a part, with those that were merged before.
func (s *Series) partial(merged []merging, part int, of func(*podRecord) *partStream) []record.Gap {
	end := int64(s.End())
	born, failed, over := int64(-1), int64(-1), true
	var lists [][]record.Gap
	for i := range s.pods {
		p := &s.pods[i]
		t := of(p)
		if t == nil || t.tried < 0 {
			continue
		}
		born, failed, over = record.Earlier(born, t.tried), max(failed, t.failed), over && p.isOver(t)
		lists = append(lists, t.silence(p.delivered(s.PodStep), end, s.PodStep, p.finished))
	}
	if lists == nil {
		return nil
	}
	var m merging
	if part < len(merged) {
		m = merged[part]
	}
	var gaps []record.Gap
	for _, g := range cut(m.common(lists), end) {
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

// isOver reports whether a pod's requests to a part have come to their end, as those of an operation whose turn is over or of a shard that is removed: while
// others succeeded, the part was silent for many of the mean times between its successes. With random arrivals one pause in e^20 is longer.
func (p *podRecord) isOver(t *partStream) bool {
	const many = 20
	if t.ok < 2 {
		return true
	}
	silent := p.load.last - t.last
	for _, g := range p.load.gaps { // in which nobody succeeded
		silent -= max(0, min(g.To, p.load.last)-max(g.From, t.last))
	}
	return silent > many*(t.last-t.first)/int64(t.ok-1)
}
