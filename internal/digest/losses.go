package digest

import (
	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/result"
)

// LostWrites returns the number of lost writes of a verification with its bounds; nil if it is
// unknown.
func LostWrites(v *v1alpha1.Verification) *result.Count {
	return lostWrites(v.LostWrites, v.LostWritesAtLeast, v.LostWritesAtMost)
}

// LostWritesOf is LostWrites of a fault.
func LostWritesOf(i *v1alpha1.Impact) *result.Count {
	return lostWrites(i.LostWrites, i.LostWritesAtLeast, i.LostWritesAtMost)
}

func lostWrites(exactly, atLeast, atMost *int64) *result.Count {
	switch {
	case exactly != nil:
		return &result.Count{AtLeast: uint64(*exactly), AtMost: uint64(*exactly)}
	case atLeast != nil && atMost != nil:
		return &result.Count{AtLeast: uint64(*atLeast), AtMost: uint64(*atMost)}
	}
	return nil
}

// LostWritesFields returns the values of lostWrites, lostWritesAtLeast and lostWritesAtMost: the
// number, or its bounds if they differ.
func LostWritesFields(lost result.Count) (exactly, atLeast, atMost *int64) {
	if n, exact := lost.Exact(); exact {
		return new(int64(n)), nil, nil
	}
	return nil, new(int64(lost.AtLeast)), new(int64(lost.AtMost))
}
