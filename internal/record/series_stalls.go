package record

import (
	"cmp"
	"slices"
)

// MaxStalls bounds the stalls that are kept per pod: the longest ones.
const MaxStalls = 100

// addStalls adds the stalls of a pod's load generator.
func (p *podRecord) addStalls(stalls []Stall) {
	p.stalls = append(p.stalls, stalls...)
	if len(p.stalls) <= MaxStalls {
		return
	}
	slices.SortFunc(p.stalls, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(b.To-b.From, a.To-a.From), cmp.Compare(b.From, a.From))
	})
	p.stalls = p.stalls[:MaxStalls]
	slices.SortFunc(p.stalls, func(a, b Stall) int { return cmp.Compare(a.From, b.From) })
}

// Stalls returns the stalls of a pod's load generator, by time: of many, the longest hundred.
func (s *Series) Stalls(pod int) []Stall { return slices.Clone(s.pods[pod].stalls) }
