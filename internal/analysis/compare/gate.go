package compare

import "math"

// Require is what comparisons must say for an experiment to pass.
type Require string

// The requirements.
const (
	RequireNone     Require = "None"
	RequireNotWorse Require = "NotWorse" // no figure is worse, and none may be by more than the margin
	RequireSame     Require = "Same"     // all figures are the same within the margin
)

// Met is whether a comparison meets a requirement; known is false where it cannot tell. Counted
// figures are the same where neither side has any.
func (r Comparison) Met(require Require, f Figure) (met, known bool) {
	switch require {
	case RequireNotWorse:
		if r.Verdict == Worse {
			return false, true
		}
		return true, r.Reason == NoneSeen || r.notWorse(f)
	case RequireSame:
		return r.Verdict == Same || r.Reason == NoneSeen, r.Verdict != CannotTell || r.Reason == NoneSeen
	}
	return true, true
}

// notWorse reports whether the bad end of the interval of 90 % lies within the margin:
// non-inferiority, one of the two tests of Same.
func (r Comparison) notWorse(f Figure) bool {
	if r.Verdict == Better || r.Verdict == Same {
		return true
	}
	if r.Method == "" || f.Counted {
		return false
	}
	limit := math.Log1p(r.Margin)
	if f.HigherIsBetter {
		return r.Same.Low > -limit
	}
	return r.Same.High < limit
}
