package compare

import (
	"math"
)

// Change is a change of the level of a figure over the runs of a schedule.
type Change struct {
	Alarm int     // the run at which it was told
	At    int     // the first run of the new level
	Rule  Rule    //
	Shift float64 // of logarithms, from the medians before and after
}

// Rule is how a change was found.
type Rule string

// The rules.
const (
	ByJump  Rule = "Jump"  // two runs far from all before
	ByRanks Rule = "Ranks" // the change-point model of Hawkins and Deng (2010)
)

// Limits of the rules.
const (
	jumpAfter  = 10 // runs before the two that jump
	jumpSpread = 5  // median absolute deviations
	madToSD    = 1.4826
	ranksAfter = 14 // runs of a segment
	window     = 60
)

// thresholds are those of the greatest standardised rank statistic over all splits of 14, 15, ...
// 60 runs: with them the hazard of a false alarm is one in 5,000 runs, whatever the distribution.
// From 200,000 simulated sequences, smoothed from 25 on.
var thresholds = [...]float64{
	3.130, 3.240, 3.334, 3.416, 3.465, 3.468, 3.477, 3.506, 3.560, 3.591, 3.572, 3.597, 3.608, 3.618,
	3.628, 3.637,
	3.645, 3.654, 3.661, 3.669, 3.676, 3.682, 3.689, 3.695, 3.701, 3.706, 3.711, 3.716, 3.721, 3.726,
	3.730, 3.735,
	3.739, 3.743, 3.747, 3.750, 3.754, 3.757, 3.761, 3.764, 3.767, 3.770, 3.773, 3.776, 3.778, 3.781,
	3.784,
}

// Changes are the changes of a figure over the runs of a schedule, one positive value for each, in
// order. Each run is judged by those before it alone, so that a change that was once told never
// moves nor vanishes. margin is relative: smaller changes are none.
func Changes(values []float64, margin float64) []Change {
	var changes []Change
	begin := 0 // the first run since the last change
	for i := range values {
		if c, found := Latest(values[begin:i+1], margin); found {
			c.Alarm, c.At = c.Alarm+begin, c.At+begin
			changes = append(changes, c)
			begin = c.At
		}
	}
	return changes
}

// Latest is the change that the last of some values shows: those of the runs since the last change.
func Latest(values []float64, margin float64) (c Change, found bool) {
	limit := math.Log1p(margin)
	segment := make([]float64, len(values)) // of logarithms
	for i, v := range values {
		segment[i] = math.Log(v)
	}
	at, rule := jump(segment, limit), ByJump
	if at == 0 {
		at, rule = split(segment, limit), ByRanks
	}
	if at == 0 {
		return Change{}, false
	}
	since := 0
	if rule == ByRanks {
		since = max(0, len(segment)-window)
	}
	return Change{
		Alarm: len(values) - 1,
		At:    at,
		Rule:  rule,
		Shift: MedianOf(segment[at:]) - MedianOf(segment[since:at]),
	}, true
}

// jump returns the first of the last two runs if both are far from all before, on the same side; 0
// = they are not.
func jump(segment []float64, limit float64) int {
	at := len(segment) - 2
	if at < jumpAfter {
		return 0
	}
	before := segment[:at]
	level := MedianOf(before)
	var deviations []float64
	for _, v := range before {
		deviations = append(deviations, math.Abs(v-level))
	}
	far := max(jumpSpread*madToSD*MedianOf(deviations), limit)
	a, b := segment[at]-level, segment[at+1]-level
	if a > far && b > far || a < -far && b < -far {
		return at
	}
	return 0
}

// split returns the first run after the split at which the ranks before and after differ most, if
// they do by more than chance allows; 0 = they do not.
func split(segment []float64, limit float64) int {
	since := max(0, len(segment)-window)
	last := segment[since:]
	n := len(last)
	if n < ranksAfter {
		return 0
	}
	doubled, _ := midranks(last, nil)
	at, greatest := 0, 0.0
	for k := 2; k <= n-2; k++ {
		if z := math.Abs(standardised(doubled, k)); z > greatest {
			at, greatest = k, z
		}
	}
	if greatest <= thresholds[n-ranksAfter] ||
		math.Abs(MedianOf(last[at:])-MedianOf(last[:at])) < limit {
		return 0
	}
	return since + at
}

// standardised is the rank sum of the first k values, less its mean, in standard deviations,
// corrected for ties. doubled are twice the ranks of all.
func standardised(doubled []int, k int) float64 {
	n := len(doubled)
	w, squares := 0.0, 0.0
	mean := float64(n + 1)
	for i, r := range doubled {
		if i < k {
			w += float64(r) - mean
		}
		squares += (float64(r) - mean) * (float64(r) - mean)
	}
	// The variance of the sum of k of n numbers drawn without replacement.
	variance := squares / float64(n-1) * float64(k) * float64(n-k) / float64(n)
	if variance == 0 {
		return 0
	}
	return w / math.Sqrt(variance)
}
