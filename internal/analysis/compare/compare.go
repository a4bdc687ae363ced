package compare

import "math"

// Verdict is what a comparison says.
type Verdict string

// The verdicts.
const (
	Better       Verdict = "Better"
	Worse        Verdict = "Worse"
	Same         Verdict = "Same"
	Inconclusive Verdict = "Inconclusive"
)

// Reason is why.
type Reason string

// The reasons.
const (
	Difference          Reason = "Difference"          // Better, Worse
	WithinMargin        Reason = "WithinMargin"        // Same
	IntervalTooWide     Reason = "IntervalTooWide"     // Inconclusive, as the following
	TooFewRepeats       Reason = "TooFewRepeats"       // no test could tell with so few
	TooManyInconclusive Reason = "TooManyInconclusive" // more than a third of the runs of a side
	NoneSeen            Reason = "NoneSeen"            // nothing was counted on either side
	// the load generators waited for a CPU: the difference, or that there is none, may be their own
	GeneratorWaited Reason = "GeneratorWaited"
)

// Method is how a comparison was made.
type Method string

// The methods.
const (
	Ranks Method = "Ranks" // exact: Mann-Whitney, Hodges-Lehmann
	Model Method = "Model" // cell + round + noise, by least squares
)

// Interval is where a difference lies: of logarithms, so that 0 is none, or of counts. Its limits
// may be infinite.
type Interval struct{ Low, High float64 }

// within reports whether all of it is nearer to 0 than limit.
func (i Interval) within(limit float64) bool {
	return i.Low > -limit && i.High < limit
}

// with is the smallest interval that has both.
func (i Interval) with(o Interval) Interval {
	return Interval{min(i.Low, o.Low), max(i.High, o.High)}
}

// half is half of its width.
func (i Interval) half() float64 {
	return (i.High - i.Low) / 2
}

// sameLevel is the level of each of the two one-sided tests that say Same (Schuirmann 1987): the
// interval of 90 % lies within the margin.
const sameLevel = 0.05

// Comparison is a cell against its baseline in one figure.
type Comparison struct {
	Verdict Verdict
	Reason  Reason

	Repeats, BaselineRepeats int // conclusive runs
	Dropped, BaselineDropped int // inconclusive ones
	With, BaselineWith       int // of a counted figure: runs in which it is not 0
	Median, BaselineMedian   float64
	MedianAtLeast            bool    // too many runs were not over by the deadline to know more
	BaselineMedianAtLeast    bool    // the same of the baseline
	Margin                   float64 // relative to the baseline
	MarginIsAbsolute         bool    // it is the absolute margin of the figure

	Method   Method   // "" = neither could tell anything
	P        float64  // two-sided
	Shift    float64  // the difference: of logarithms, or of counts; NaN = nothing is known of it
	AtLeast  bool     // the difference is Shift or more: runs were not over by the deadline
	AtMost   bool     // the same of the baseline's runs
	Interval Interval // simultaneous over all comparisons
	Same     Interval // of 90 %, for the margin
	Alpha    float64  // 1 - alpha is the level of Interval

	Needs int // repeats that would tell; 0 = that cannot be said

	// NoneSeen: the share of runs that may have some nevertheless, at 95 %
	Upper, BaselineUpper float64

	DF           int     // of the model
	Variance, SE float64 // of the model: pooled, and of the difference

	// GeneratorWaited: the shares of the requests that may be late for it, means of the runs
	Late, BaselineLate float64

	// the cell is, in more pairs than not: a median of differences may be 0 although most losses are
	// on one side
	greater bool
}

// Change is the relative difference, such as -0.05 for 5 % less.
func (r Comparison) Change() float64 {
	return math.Expm1(r.Shift)
}

// Compare compares a cell with its baseline.
func (e *Experiment) Compare(name, baseline string) Comparison {
	c, b := e.cellOf(name), e.cellOf(baseline)
	r := between(c, b, e.figure, e.design)
	if r.Reason != "" {
		return r
	}
	r.Method = e.method(c.n(), b.n())
	switch r.Method {
	case Ranks:
		offsets := e.offsets(name, baseline)
		r.rank(c.without(offsets), b.without(offsets))
	case Model:
		r.fit(e.model.difference(name, baseline), e.model.variance)
	default:
		r.Reason, r.Needs = TooFewRepeats, e.design.repeatsNeeded(e.model == nil)
		return r
	}
	r.judge(e.figure.HigherIsBetter)
	return r
}

// between begins a comparison, and ends it where no figure is compared as a ratio.
func between(c, b *cell, f Figure, d Design) Comparison {
	r := Comparison{
		Verdict:         Inconclusive,
		Repeats:         c.n(),
		BaselineRepeats: b.n(),
		Dropped:         c.dropped,
		BaselineDropped: b.dropped,
		Alpha:           d.level(),
	}
	r.Median, r.MedianAtLeast = c.median()
	r.BaselineMedian, r.BaselineMedianAtLeast = b.median()
	switch {
	case c.tooManyDropped() || b.tooManyDropped():
		r.Reason = TooManyInconclusive
	case f.Counted:
		r.count(c.without(nil), b.without(nil), f, d)
	default:
		r.Margin, r.MarginIsAbsolute = f.Margin.of(max(r.BaselineMedian, f.Floor))
	}
	return r
}

// cellOf is a cell, which may have no runs yet.
func (e *Experiment) cellOf(name string) *cell {
	if c := e.cells[name]; c != nil {
		return c
	}
	return &cell{}
}

// method is fixed by the number of runs and of comparisons, never by how near the values are.
func (e *Experiment) method(n, baseline int) Method {
	df := 0
	if e.model != nil {
		df = e.model.df
	}
	return e.design.method(n, baseline, df, e.model == nil)
}

// method of n against baseline runs. df is that of the model.
func (d Design) method(n, baseline, df int, ranksOnly bool) Method {
	least, few := smallestP(n, baseline), min(n, baseline)
	switch {
	case least <= d.level()/10:
		return Ranks
	case !ranksOnly && (few >= 3 && df >= 3 || few == 2 && df >= 10):
		return Model
	case least <= d.level():
		return Ranks
	}
	return ""
}

// Within is the comparison of latencies that load generators with too little of a CPU have made
// greater by an unknown part: low is that with the least that those of the cell can have been, high
// that with the least that those of the baseline can have been. It says what all three say.
func (r Comparison) Within(low, high Comparison) Comparison {
	if r.Method == "" {
		return r
	}
	if r.Verdict != Inconclusive && (low.Verdict != r.Verdict || high.Verdict != r.Verdict) {
		r.Verdict, r.Reason, r.Needs = Inconclusive, GeneratorWaited, 0
	}
	for _, o := range [...]Comparison{low, high} {
		if o.Method == "" { // with so many at the floor nothing can be told
			o.Interval = Interval{math.Inf(-1), math.Inf(1)}
			o.Same = Interval{math.Inf(-1), math.Inf(1)}
		}
		r.Interval, r.Same = r.Interval.with(o.Interval), r.Same.with(o.Same)
	}
	return r
}

func (r *Comparison) rank(x, y []span) {
	var u float64
	u, r.P = mannWhitney(ranksOf(x), ranksOf(y))
	r.greater = 2*u > float64(len(x)*len(y))
	r.estimate(shift(x, y))
	r.Interval = shiftInterval(x, y, r.Alpha)
	r.Same = shiftInterval(x, y, 2*sameLevel)
}

// estimate sets the difference. Where censored runs leave only a bound known, that is it.
func (r *Comparison) estimate(s span) {
	switch noLeast, noMost := math.IsInf(s.least, -1), math.IsInf(s.most, 1); {
	case noLeast && noMost:
		r.Shift = math.NaN()
	case noLeast:
		r.Shift, r.AtMost = s.most, true
	case noMost:
		r.Shift, r.AtLeast = s.least, true
	default:
		r.Shift = (s.least + s.most) / 2
	}
}

func (r *Comparison) fit(s student, variance float64) {
	r.P = s.p()
	r.Shift = s.estimate
	r.Interval = s.interval(r.Alpha)
	r.Same = s.interval(2 * sameLevel)
	r.greater = s.estimate > 0
	r.DF, r.SE, r.Variance = s.df, s.se, variance
}

// judge says Same before Better or Worse: a difference that is real and inside the margin is none.
func (r *Comparison) judge(higherIsBetter bool) {
	limit := math.Log1p(r.Margin)
	switch {
	case r.Same.within(limit):
		r.Verdict, r.Reason = Same, WithinMargin
	case r.P <= r.Alpha:
		r.Verdict, r.Reason = r.direction(higherIsBetter), Difference
	default:
		r.Reason, r.Needs = IntervalTooWide, repeatsForMargin(min(r.Repeats, r.BaselineRepeats),
			r.Same.half(), limit)
	}
}

func (r *Comparison) direction(higherIsBetter bool) Verdict {
	if r.greater == higherIsBetter {
		return Better
	}
	return Worse
}

// count compares rare events. Losses come in bursts, so that the run is the unit, and not the
// event.
func (r *Comparison) count(x, y []span, f Figure, d Design) {
	r.With, r.BaselineWith = some(x), some(y)
	switch {
	case r.With == 0 && r.BaselineWith == 0:
		r.Reason = NoneSeen
		r.Upper = UpperOfNone(len(x))
		r.BaselineUpper = UpperOfNone(len(y))
		return
	case smallestP(len(x), len(y)) > r.Alpha:
		r.Reason, r.Needs = TooFewRepeats, d.repeatsNeeded(true)
		return
	}
	r.Method, r.Reason = Ranks, IntervalTooWide
	r.rank(x, y)
	if r.P <= r.Alpha {
		r.Verdict, r.Reason = r.direction(f.HigherIsBetter), Difference
	}
}

// some is how many values are not 0.
func some(values []span) (n int) {
	for _, v := range values {
		if v.most != 0 {
			n++
		}
	}
	return n
}

// UpperOfNone is the greatest share of runs with an event, at a confidence of 95 %, of which n runs
// had none (Hanley, Lippman-Hand 1983).
func UpperOfNone(n int) float64 {
	return 1 - math.Pow(0.05, 1/float64(n))
}
