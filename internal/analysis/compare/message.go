package compare

import (
	"fmt"
	"math"

	"github.com/redquake/redquake/internal/format"
)

// Message is the comparison in a sentence. against names the baseline, such as appendfsync=no.
func (r Comparison) Message(f Figure, against string) string {
	//exhaustive:enforce
	switch r.Reason {
	case IntervalTooWide:
	case Difference:
		return fmt.Sprintf("%s %s (%s)", f.Name, r.claim(f, against), r.evidence(f))
	case WithinMargin:
		return fmt.Sprintf("%s same within %s (90%%: %s)", f.Name, r.margin(f), changes(r.Same))
	case TooFewRepeats:
		return fmt.Sprintf("inconclusive with %s; %s", repeats(min(r.Repeats, r.BaselineRepeats)), r.needs(f))
	case TooManyInconclusive:
		return fmt.Sprintf("too many inconclusive runs: %d of %s, and %d of %d of %s", r.Dropped,
			format.Plural(r.Dropped+r.Repeats, "run"), r.BaselineDropped, r.BaselineDropped+r.BaselineRepeats, against)
	case GeneratorWaited:
		return fmt.Sprintf(
			"inconclusive: %s (90%%: %s), as the load generators did not run for %s of the time, those of %s for %s: give each a CPU of its own",
			r.shown(), changes(r.Same), format.Share(r.Late), against, format.Share(r.BaselineLate))
	case NoneSeen:
		return fmt.Sprintf("none in %d and %s; up to %s and %s of such runs may have some (95%%)",
			r.Repeats, repeats(r.BaselineRepeats), format.Share(r.Upper), format.Share(r.BaselineUpper))
	}
	if f.Counted {
		return fmt.Sprintf("inconclusive: some in %s, against %d of %d of %s", r.with(), r.BaselineWith,
			r.BaselineRepeats, against)
	}
	return fmt.Sprintf("inconclusive: %s (90%%: %s) with %s; %s", r.shown(), changes(r.Same),
		repeats(min(r.Repeats, r.BaselineRepeats)), r.needs(f))
}

// with is the share of the runs in which a counted figure is not 0.
func (r Comparison) with() string {
	return fmt.Sprintf("%d of %s", r.With, repeats(r.Repeats))
}

// claim is the difference in words. Of a baseline at the floor, nothing can be told as a ratio.
func (r Comparison) claim(f Figure, against string) string {
	if f.Counted {
		return fmt.Sprintf("in %s, against %d of %d of %s", r.with(), r.BaselineWith, r.BaselineRepeats,
			against)
	}
	if r.BaselineMedian <= f.Floor {
		return fmt.Sprintf("%s instead of %s of %s", f.Text(r.Median), f.Text(r.BaselineMedian), against)
	}
	ratio := math.Exp(r.Shift)
	bound := ""
	switch {
	case r.AtLeast:
		bound = "at least "
	case r.AtMost:
		bound = "at most "
	}
	if ratio >= 2 {
		return fmt.Sprintf("%s%s times that of %s", bound, times(ratio), against)
	}
	return fmt.Sprintf("%s%s %s than %s", bound, format.Share(math.Abs(r.Change())),
		lower(r.greater, "higher", "lower"), against)
}

// evidence is the interval, and how many repeats it is from.
func (r Comparison) evidence(f Figure) string {
	of := changes(r.Interval)
	switch {
	case f.Counted:
		return fmt.Sprintf("%s more or fewer, %s", countInterval(r.Interval), format.Share(1-r.Alpha))
	case r.BaselineMedian <= f.Floor:
		return fmt.Sprintf("%s against %d", repeats(r.Repeats), r.BaselineRepeats)
	case math.Exp(r.Shift) >= 2:
		of = fmt.Sprintf("%s to %s times", times(math.Exp(r.Interval.Low)),
			times(math.Exp(r.Interval.High)))
	}
	return fmt.Sprintf("%s: %s; %s against %d", format.Share(1-r.Alpha), of, repeats(r.Repeats),
		r.BaselineRepeats)
}

func (r Comparison) needs(f Figure) string {
	switch {
	case r.Needs == 0:
		return "no number of repeats is known to be enough"
	case r.Needs > MaxRepeats:
		return fmt.Sprintf("more than %d would be needed: too noisy for a margin of %s", MaxRepeats,
			r.margin(f))
	// the variation is estimated from the runs of all cells
	case r.Reason == TooFewRepeats && r.Needs <= min(r.Repeats, r.BaselineRepeats):
		return "they would be enough if fewer runs of the other cells were inconclusive"
	case r.Reason == TooFewRepeats:
		return fmt.Sprintf("needs at least %d of each", r.Needs)
	}
	return fmt.Sprintf("about %d would show equal ones to be the same within %s", r.Needs, r.margin(f))
}

// margin is up to which difference both are the same.
func (r Comparison) margin(f Figure) string {
	switch {
	case !r.MarginIsAbsolute:
		return format.Share(r.Margin)
	case f.Name == ErrorRate.Name:
		return fmt.Sprintf("%.3g percentage points", 100*f.Margin.Absolute)
	}
	return f.Text(f.Margin.Absolute)
}

// shown is the difference as a signed change.
func (r Comparison) shown() string {
	if math.IsNaN(r.Shift) {
		return "unknown"
	}
	return signed(r.Shift)
}

func repeats(n int) string {
	return format.Plural(n, "repeat")
}

func lower(greater bool, more, less string) string {
	if greater {
		return more
	}
	return less
}

// Shifted is a difference of logarithms in words, with its interval of 95%.
func Shifted(by float64, of Interval) string {
	return fmt.Sprintf("%s (95%%: %s)", signed(by), changes(of))
}

// Signed is a difference of logarithms in words.
func Signed(by float64) string {
	return signed(by)
}

// changes is an interval of logarithms as signed changes.
func changes(i Interval) string {
	return signed(i.Low) + " to " + signed(i.High)
}

// signed is the logarithm of a ratio as a signed change.
func signed(log float64) string {
	switch change := math.Expm1(log); {
	case math.IsInf(log, -1):
		return "-100%"
	case math.IsInf(log, 1):
		return "any"
	case math.Abs(change) < 5e-5: // 0.0% of either sign
		return "0%"
	case change < 0:
		return "-" + format.Share(-change)
	case change >= 9.995:
		return fmt.Sprintf("%.3g times", 1+change)
	default:
		return "+" + format.Share(change)
	}
}

func countInterval(i Interval) string {
	of := func(v float64) string {
		if math.IsInf(v, 0) {
			return "any"
		}
		if v > 0 {
			return "+" + count(v)
		}
		return count(v)
	}
	return of(i.Low) + " to " + of(i.High)
}

func count(v float64) string {
	return fmt.Sprintf("%.0f", v)
}

func times(ratio float64) string {
	switch {
	case math.IsInf(ratio, 1):
		return "any number of"
	case ratio >= 100:
		return fmt.Sprintf("%.0f", ratio)
	}
	return fmt.Sprintf("%.1f", ratio)
}
