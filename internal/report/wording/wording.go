// Package wording writes the figures and the verdicts of experiments and schedules: what they are
// called, values, changes and intervals, typeset as in package report.
package wording

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// NBSP is the no-break space between a number and what it counts.
const NBSP = "\u00a0"

// Figure is what a figure is called, as a title and within a sentence, and what it counts.
type Figure struct{ Title, InText, Counts string }

var words = map[string]Figure{
	compare.Throughput.Name:  {"Throughput", "the throughput", "successes per second"},
	compare.LatencyP50.Name:  {"p50", "the median latency", "latency of successes"},
	compare.LatencyP99.Name:  {"p99", "the p99 latency", "latency of successes"},
	compare.LatencyP999.Name: {"p99.9", "the p99.9 latency", "latency of successes"},
	compare.ErrorRate.Name:   {"Errors", "the error rate", "share of the requests"},
	compare.Outage.Name:      {"Outage", "the outage", "longest time without a success"},
	compare.ProbeOutage.Name: {
		"Outage of the probe", "the outage of the probe",
		"longest time without a success of the probe",
	},
	compare.RecoveryTime.Name: {
		"Recovery", "the recovery",
		"from the injection until the throughput holds",
	},
	compare.LostWrites.Name: {"Lost writes", "lost writes", "acknowledged, and not found"},
	compare.FailedButExecuted.Name: {
		"Failed but executed", "the writes that failed but were executed",
		"ledger writes of a library that failed, and were found",
	},
	compare.ExecutedTwice.Name: {
		"Executed twice", "the writes executed twice",
		"ledger writes of a library, counted by the server",
	},
	compare.LockOverlaps.Name: {
		"Locks held twice", "the locks held by two users",
		"taken while another user counted on them",
	},
	compare.LostRequests.Name: {"Lost requests", "the lost requests", "successes that are missing"},
	compare.MaxCPU.Name:       {"CPU", "the CPU of Redis", "most of a Redis server"},
	compare.MaxMemory.Name:    {"Memory", "the memory of Redis", "most of a Redis server"},
}

// Of is what a figure is called; one that this program does not know has its name.
func Of(figure string) Figure {
	if w, ok := words[figure]; ok {
		return w
	}
	return Figure{figure, figure, ""}
}

// Short is the title within a line.
func (w Figure) Short() string {
	if w.Title == words[compare.LostWrites.Name].Title {
		return "lost"
	}
	if len(w.Title) > 1 && strings.ToUpper(w.Title[:2]) == w.Title[:2] { // an abbreviation
		return w.Title
	}
	return strings.ToLower(w.Title[:1]) + w.Title[1:]
}

// Verdict is a verdict of a comparison, with a sign of its own and the class of its colour.
type Verdict struct{ Sign, Text, Class string }

var verdicts = map[string]Verdict{
	"Better":       {"▲", "better", "bt"},
	"Worse":        {"▼", "worse", "ws"},
	"Same":         {"=", "same", "sm"},
	"Inconclusive": {"?", "inconclusive", "ct"},
	"Improved":     {"▲", "improved", "bt"},
	"Regressed":    {"▼", "regressed", "ws"},
	"":             {"–", "no verdict yet", "ct"},
}

// OfVerdict is how a verdict of a comparison is shown; "" = there is none yet.
func OfVerdict(verdict string) Verdict {
	if w, ok := verdicts[verdict]; ok {
		return w
	}
	return Verdict{"?", verdict, "ct"}
}

// String is the word as text.
func (w Verdict) String() string {
	return w.Sign + " " + w.Text
}

// Tidy rounds a number to three significant digits, and to tens from 1,000 on.
func Tidy(x float64) float64 {
	switch a := math.Abs(x); {
	case a == 0 || math.IsNaN(a) || math.IsInf(a, 0):
		return x
	case a >= 1000:
		return math.Round(x/10) * 10
	default:
		scale := math.Pow10(2 - int(math.Floor(math.Log10(a))))
		return math.Round(x*scale) / scale
	}
}

// Value writes a figure in its unit.
func Value(unit result.Unit, x float64) string {
	switch unit {
	case result.UnitPerSecond:
		return report.Rate(Tidy(x))
	case result.UnitCount:
		return report.InUnit(unit, Tidy(x))
	}
	return report.InUnit(unit, x)
}

// ValueOf is a figure that may be known only to be more.
func ValueOf(unit result.Unit, x *float64, atLeast bool) string {
	switch {
	case x == nil:
		return "–"
	case atLeast:
		return ">" + NBSP + Value(unit, *x)
	}
	return Value(unit, *x)
}

// SplitUnit divides a value from its unit, which is set smaller.
func SplitUnit(text string) (number, unit string) {
	end := strings.LastIndexAny(text, "0123456789")
	if end < 0 || strings.Count(text, NBSP) > 1 {
		return text, ""
	}
	return text[:end+1], text[end+1:]
}

// Bare is a relative change without its unit: one decimal below 10 %, whole ones above, and from
// ten times on the factor.
func Bare(x float64) string {
	percent := 100 * x
	switch a := math.Abs(percent); {
	case x >= 9.995:
		return Times(1+x) + "×"
	case a < 0.05:
		return "0"
	case a < 9.95:
		return signed(percent, 1)
	case a > 99 && x < 0: // less than 1 % is left
		return signed(percent, 2)
	default:
		return signed(percent, 0)
	}
}

func signed(x float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	if x < 0 {
		return "−" + text
	}
	return "+" + text
}

// Times is a ratio as a number with three significant digits.
func Times(ratio float64) string {
	return strconv.FormatFloat(Tidy(ratio), 'f', -1, 64)
}

// Change is a relative change with its unit, or a difference of counts.
func Change(f compare.Figure, x *float64) string {
	switch {
	case x == nil:
		return "–"
	case f.Counted:
		return difference(*x)
	}
	text := Bare(*x)
	if strings.HasSuffix(text, "×") {
		return text
	}
	return text + NBSP + "%"
}

func difference(x float64) string {
	if x == 0 {
		return "0"
	}
	return signed(x, 0)
}

// Interval is an interval without units. A limit that is absent is infinite.
func Interval(f compare.Figure, i *comparisons.Interval) string {
	if i == nil {
		return ""
	}
	low, high := "−100", "any"
	if f.Counted {
		low = "any"
	}
	of := func(x float64) string {
		if f.Counted {
			return difference(x)
		}
		return Bare(x)
	}
	if i.AtLeast != nil {
		low = of(*i.AtLeast)
	}
	if i.AtMost != nil {
		high = of(*i.AtMost)
	}
	return low + "…" + high
}

// Plural is a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1" + NBSP + noun
	}
	return report.Count(n) + NBSP + noun + "s"
}

// List joins words as a sentence does.
func List(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// Percent is a confidence or a margin, such as 99.8 %.
func Percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + NBSP + "%"
}

// Numbered writes a value of a parameter: a whole one with a comma between thousands.
func Numbered(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && fmt.Sprint(n) == text && n >= 1000 {
		return report.Count(n)
	}
	return text
}

// MostNamed is how many cells a sentence names.
const MostNamed = 4

// Some names the first of some cells.
func Some(names []string) string {
	if more := len(names) - MostNamed; more > 0 {
		return strings.Join(names[:MostNamed], ", ") + " and " + Plural(more, "more cell")
	}
	return List(names)
}
