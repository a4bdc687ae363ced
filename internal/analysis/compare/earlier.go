package compare

import (
	"math"
)

// Against compares a cell with itself in an earlier experiment. Two days differ by more than the
// repeats of one show: only a difference of which the whole interval lies beyond the margin is
// claimed. comparisons is how many there are: cells x primary figures.
func (e *Experiment) Against(earlier *Experiment, name string, comparisons int) Comparison {
	d := e.design
	d.Comparisons = comparisons
	c, b := e.cellOf(name), earlier.cellOf(name)
	r := between(c, b, e.figure, d)
	if r.Reason != "" {
		return r
	}
	ranksOnly, df := e.model == nil || earlier.model == nil, 0
	if !ranksOnly {
		df = min(e.model.df, earlier.model.df)
	}
	switch r.Method = d.method(c.n(), b.n(), df, ranksOnly); r.Method {
	case Ranks:
		r.rank(c.without(e.centred(name)), b.without(earlier.centred(name)))
	case Model:
		se := math.Sqrt(e.model.part(name) + earlier.model.part(name))
		r.fit(student{e.model.effects[name] - earlier.model.effects[name], se, df}, math.NaN())
	default:
		r.Reason, r.Needs = TooFewRepeats, d.repeatsNeeded(ranksOnly)
		return r
	}
	r.judgeEarlier(e.figure.HigherIsBetter)
	return r
}

// centred are the offsets of the rounds from their mean: they say nothing of the experiment's
// level.
func (e *Experiment) centred(except string) map[int]float64 {
	all := e.offsets(except)
	rounds := map[int]bool{}
	for _, c := range e.cells {
		for _, r := range c.runs {
			rounds[r.round] = true
		}
	}
	mean := 0.0
	for round := range rounds {
		mean += all[round] / float64(len(rounds))
	}
	for round := range rounds {
		all[round] -= mean
	}
	return all
}

func (r *Comparison) judgeEarlier(higherIsBetter bool) {
	limit := math.Log1p(r.Margin)
	switch {
	case r.Same.within(limit):
		r.Verdict, r.Reason = Same, WithinMargin
	case r.Interval.Low > limit, r.Interval.High < -limit:
		r.Verdict, r.Reason = r.direction(higherIsBetter), Difference
	default:
		r.Reason, r.Needs = IntervalTooWide, repeatsForMargin(min(r.Repeats, r.BaselineRepeats),
			r.Same.half(), limit)
	}
}

// Relative is how a cell's ratio to its baseline in the same round has changed since an earlier
// experiment: what differs between the days cancels out. It is shown, and claims nothing. ok: both
// have rounds with the cell and its baseline.
func (e *Experiment) Relative(
	earlier *Experiment, name, baseline string,
) (shifted float64, of Interval, ok bool) {
	x, y := e.ratios(name, baseline), earlier.ratios(name, baseline)
	if len(x) == 0 || len(y) == 0 {
		return 0, Interval{}, false
	}
	s := shift(x, y)
	return (s.least + s.most) / 2, shiftInterval(x, y, 0.05), true
}

// ratios are the logarithms of a cell's values over the mean of its baseline's, by round. Censored
// values are left out.
func (e *Experiment) ratios(name, baseline string) []span {
	sums, counts := map[int]float64{}, map[int]int{}
	for _, r := range e.cellOf(baseline).runs {
		if r.log.least == r.log.most {
			sums[r.round] += r.log.least
			counts[r.round]++
		}
	}
	var all []span
	for _, r := range e.cellOf(name).runs {
		n := counts[r.round]
		if n > 0 && r.log.least == r.log.most {
			all = append(all, exactly(r.log.least-sums[r.round]/float64(n)))
		}
	}
	return all
}

// OfAll is the median shift of several cells: what they all have in common, such as another machine
// or version. Those that the load generators may have shifted do not count. NaN without any.
func OfAll(comparisons []Comparison) float64 {
	var shifts []float64
	for _, c := range comparisons {
		if c.Method != "" && c.Reason != GeneratorWaited && !math.IsNaN(c.Shift) {
			shifts = append(shifts, c.Shift)
		}
	}
	return MedianOf(shifts)
}
