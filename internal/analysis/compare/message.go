package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/redquake/redquake/internal/format"
)

// Message is the comparison in a sentence. against names the baseline, such as appendfsync=no.
func (r Comparison) Message(f Figure, against string) string {
	switch r.Reason {
	case Difference:
		return fmt.Sprintf("%s %s (%s)", f.Name, r.claim(f, against), r.evidence(f))
	case WithinMargin:
		return fmt.Sprintf("%s same within %s (90%%: %s)", f.Name, percent(r.Margin), changes(r.Same))
	case TooFewRepeats:
		return fmt.Sprintf("%d repeats cannot tell; %s", r.Repeats, r.needs())
	case TooManyInconclusive:
		return fmt.Sprintf("cannot tell: %d of %d runs were inconclusive", r.Dropped, r.Dropped+r.Repeats+r.BaselineRepeats)
	case NoneSeen:
		return fmt.Sprintf("none in %d and %d repeats; up to %s and %s of such runs may have some (95%%)", r.Repeats, r.BaselineRepeats, percent(r.Upper), percent(r.BaselineUpper))
	}
	if f.Counted {
		return fmt.Sprintf("cannot tell: %s with %d repeats against %d", countInterval(r.Interval), r.Repeats, r.BaselineRepeats)
	}
	return fmt.Sprintf("cannot tell: %s (90%%: %s) with %d repeats; %s", r.shown(), changes(r.Same), r.Repeats, r.needs())
}

// claim is the difference in words.
func (r Comparison) claim(f Figure, against string) string {
	if f.Counted {
		return fmt.Sprintf("%s %s than %s", count(math.Abs(r.Shift)), lower(r.greater, "more", "fewer"), against)
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
	return fmt.Sprintf("%s%s %s than %s", bound, percent(math.Abs(r.Change())), lower(r.greater, "higher", "lower"), against)
}

// evidence is the interval, and how many repeats it is from.
func (r Comparison) evidence(f Figure) string {
	var of string
	switch {
	case f.Counted:
		of = countInterval(r.Interval)
	case math.Exp(r.Shift) >= 2:
		of = fmt.Sprintf("%s to %s times", times(math.Exp(r.Interval.Low)), times(math.Exp(r.Interval.High)))
	default:
		of = changes(r.Interval)
	}
	return fmt.Sprintf("%s: %s; %d repeats against %d", percent(1-r.Alpha), of, r.Repeats, r.BaselineRepeats)
}

func (r Comparison) needs() string {
	switch {
	case r.Needs == 0:
		return "no number of repeats is known to tell"
	case r.Needs > MaxRepeats:
		return fmt.Sprintf("more than %d would be needed: too noisy for a margin of %s", MaxRepeats, percent(r.Margin))
	case r.Reason == TooFewRepeats:
		return fmt.Sprintf("needs at least %d", r.Needs)
	}
	return fmt.Sprintf("about %d would tell %s", r.Needs, percent(r.Margin))
}

// shown is the difference as a signed change.
func (r Comparison) shown() string {
	if math.IsNaN(r.Shift) {
		return "unknown"
	}
	return signed(r.Shift)
}

func lower(greater bool, more, less string) string {
	if greater {
		return more
	}
	return less
}

// changes is an interval of logarithms as signed changes.
func changes(i Interval) string { return signed(i.Low) + " to " + signed(i.High) }

// signed is the logarithm of a ratio as a signed change.
func signed(log float64) string {
	switch change := math.Expm1(log); {
	case math.IsInf(log, -1):
		return "-100%"
	case math.IsInf(log, 1):
		return "any"
	case change < 0:
		return "-" + percent(-change)
	default:
		return "+" + percent(change)
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

// percent has one decimal, and none where it is 0.
func percent(share float64) string {
	return strings.Replace(format.Share(share), ".0%", "%", 1)
}

func count(v float64) string { return fmt.Sprintf("%.0f", v) }

func times(ratio float64) string {
	switch {
	case math.IsInf(ratio, 1):
		return "any number of"
	case ratio >= 100:
		return fmt.Sprintf("%.0f", ratio)
	}
	return fmt.Sprintf("%.1f", ratio)
}
