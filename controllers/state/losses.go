package state

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// LostWrites returns the number of lost writes with its bounds; nil if it is unknown.
func LostWrites(v *v1alpha1.Verification) *result.Count {
	switch {
	case v.LostWrites != nil:
		return &result.Count{AtLeast: uint64(*v.LostWrites), AtMost: uint64(*v.LostWrites)}
	case v.LostWritesAtLeast != nil && v.LostWritesAtMost != nil:
		return &result.Count{AtLeast: uint64(*v.LostWritesAtLeast), AtMost: uint64(*v.LostWritesAtMost)}
	}
	return nil
}

// LostWritesFields returns the values of lostWrites, lostWritesAtLeast and lostWritesAtMost: the number, or its bounds if they differ.
func LostWritesFields(lost result.Count) (exactly, atLeast, atMost *int64) {
	if n, exact := lost.Exact(); exact {
		return new(int64(n)), nil, nil
	}
	return nil, new(int64(lost.AtLeast)), new(int64(lost.AtMost))
}
