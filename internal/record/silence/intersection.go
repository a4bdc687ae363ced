package silence

import (
	"slices"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

// Merging is what the gap logs of all pods have in common, up to an instant. It is computed all
// along, so that of each pod only the gaps are kept that can still intersect with others: what pods
// log together without a common gap takes no memory.
// The zero value has merged nothing yet. It is not safe for concurrent use.
type Merging struct {
	Gaps  []record.Gap // the common gaps that end at until or before, ascending
	until int64
}

// Common returns the intersection of the pods' lists, with what was merged before. Each list
// contains all gaps of its pod that end after until.
func (m *Merging) Common(lists [][]record.Gap) []record.Gap {
	if len(lists) == 0 {
		return m.Gaps
	}
	common := lists[0]
	for _, list := range lists[1:] {
		common = record.Overlap(common, list)
	}
	later := slices.DeleteFunc(slices.Clone(common), func(g record.Gap) bool {
		return g.To <= m.until
	})
	return append(m.Gaps[:len(m.Gaps):len(m.Gaps)], later...)
}

// Fold merges the pods' lists up to an instant to which all of them are known, and removes from the
// streams what is merged.
func (m *Merging) Fold(lists [][]record.Gap, streams []*Stream, until int64) {
	if until <= m.until {
		return
	}
	before := len(m.Gaps)
	for _, g := range m.Common(lists)[before:] {
		if g.To <= until && g.AtMost() > MinGap {
			m.Gaps = append(m.Gaps, g)
		}
	}
	m.until = until
	for _, t := range streams {
		var pending []record.Gap
		for _, g := range t.Gaps {
			if g.To > until || g.Open {
				pending = append(pending, g)
			}
		}
		t.Gaps = pending // another slice: a copy of the series may share the old one
	}
}

// Append writes the common gaps.
func (m *Merging) Append(dst []byte) []byte {
	return record.AppendGaps(codec.AppendInt(dst, m.until), m.Gaps)
}

// Read reads the output of Append.
func (m *Merging) Read(r *codec.Reader) {
	m.until = r.Int()
	m.Gaps = record.ReadGaps(r)
}
