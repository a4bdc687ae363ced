package compare

import "math"

// MaxRepeats is the greatest number of repeats that an experiment may have.
const MaxRepeats = 50

// repeatsNeeded is the smallest number of repeats with which a comparison can be made, if no run is
// dropped; 0 if there is none.
func (d Design) repeatsNeeded(ranksOnly bool) int {
	for n := 1; n <= MaxRepeats; n++ {
		df := n*d.RunsPerRound - d.Cells - n + 1
		if d.method(n, n*max(d.Baseline, 1), df, ranksOnly) != "" {
			return n
		}
	}
	return 0
}

// RepeatsNeeded is how many repeats of each cell a verdict on a figure needs at least, before
// anything ran; 0 = more than MaxRepeats. censored: a run of it may not be over by its deadline, so
// that only ranks can be compared.
func (d Design) RepeatsNeeded(f Figure, censored bool) int {
	return d.repeatsNeeded(f.Counted || censored)
}

// repeatsForMargin is about how many repeats would tell a cell that equals its baseline the same
// within the margin, three times in four: n is how many there were, half half the width of their
// interval, limit the margin, both of logarithms. 0 if the interval is infinite.
func repeatsForMargin(n int, half, limit float64) int {
	if math.IsInf(half, 0) || math.IsNaN(half) || limit <= 0 {
		return 0
	}
	ratio := half / limit
	return int(max(float64(n+1), min(math.Ceil(2.5*float64(n)*ratio*ratio), 1e6)))
}
