package record

import (
	"cmp"
	"slices"
	"time"
)

const (
	// MaxStalls bounds the stalls that are kept per pod: the longest ones.
	MaxStalls = 100
	// maxSpared bounds those that are kept beside them, as a fault may need them: within a part to be kept, see Keep, and in the last sparedFor.
	maxSpared = 400
	sparedFor = 3 * time.Minute
)

// addStalls adds the stalls of a pod's load generator in an interval that ends at the instant end.
func (s *Series) addStalls(p *podRecord, stalls []Stall, end int64) {
	p.stalls = append(p.stalls, stalls...)
	if len(stalls) == 0 || len(p.stalls) <= MaxStalls {
		return
	}
	var spared, others []Stall
	for _, one := range p.stalls {
		if one.To > end-int64(sparedFor) || slices.ContainsFunc(s.windows, func(w window) bool { return one.From < w.to && one.To > w.from }) {
			spared = append(spared, one)
		} else {
			others = append(others, one)
		}
	}
	p.stalls = append(longest(others, MaxStalls), longest(spared, maxSpared)...)
	slices.SortFunc(p.stalls, func(a, b Stall) int { return cmp.Compare(a.From, b.From) })
}

// longest returns the n longest stalls; of equal ones the later.
func longest(stalls []Stall, n int) []Stall {
	if len(stalls) <= n {
		return stalls
	}
	slices.SortFunc(stalls, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(b.To-b.From, a.To-a.From), cmp.Compare(b.From, a.From))
	})
	return stalls[:n]
}

// Stalls returns the stalls of a pod's load generator, by time: at least the longest hundred, and those around faults.
func (s *Series) Stalls(pod int) []Stall { return slices.Clone(s.pods[pod].stalls) }
