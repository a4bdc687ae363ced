package matrix

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

const nbsp = "\u00a0"

// figureWords are what a figure is called, and what it counts.
type figureWords struct{ title, inText, counts string }

var words = map[string]figureWords{
	compare.Throughput.Name:   {"Throughput", "the throughput", "successes per second"},
	compare.LatencyP50.Name:   {"p50", "the median latency", "latency of successes"},
	compare.LatencyP99.Name:   {"p99", "the p99 latency", "latency of successes"},
	compare.LatencyP999.Name:  {"p99.9", "the p99.9 latency", "latency of successes"},
	compare.ErrorRate.Name:    {"Errors", "the error rate", "share of the requests"},
	compare.Outage.Name:       {"Outage", "the outage", "longest time without a success"},
	compare.ProbeOutage.Name:  {"Outage of the probe", "the outage of the probe", "longest time without a success of the probe"},
	compare.RecoveryTime.Name: {"Recovery", "the recovery", "from the injection until the throughput holds"},
	compare.LostWrites.Name:   {"Lost writes", "lost writes", "acknowledged, and not found"},
	compare.LostRequests.Name: {"Lost requests", "the lost requests", "successes that are missing"},
	compare.MaxCPU.Name:       {"CPU", "the CPU of Redis", "most of a Redis server"},
	compare.MaxMemory.Name:    {"Memory", "the memory of Redis", "most of a Redis server"},
}

func wordsOf(figure string) figureWords {
	if w, ok := words[figure]; ok {
		return w
	}
	return figureWords{figure, figure, ""}
}

// short is the title within a line.
func (w figureWords) short() string {
	if w.title == words[compare.LostWrites.Name].title {
		return "lost"
	}
	if len(w.title) > 1 && strings.ToUpper(w.title[:2]) == w.title[:2] { // an abbreviation
		return w.title
	}
	return strings.ToLower(w.title[:1]) + w.title[1:]
}

// word is a verdict of a comparison, with a sign of its own and the class of its colour.
type word struct{ Sign, Text, Class string }

var verdicts = map[string]word{
	"Better":     {"▲", "better", "bt"},
	"Worse":      {"▼", "worse", "ws"},
	"Same":       {"=", "same", "sm"},
	"CannotTell": {"?", "cannot tell", "ct"},
	"Improved":   {"▲", "improved", "bt"},
	"Regressed":  {"▼", "regressed", "ws"},
	"":           {"–", "no verdict yet", "ct"},
}

func wordOf(verdict string) word {
	if w, ok := verdicts[verdict]; ok {
		return w
	}
	return word{"?", verdict, "ct"}
}

// String is the word as text.
func (w word) String() string { return w.Sign + " " + w.Text }

// tidy rounds a number to three significant digits, and to tens from 1,000 on.
func tidy(x float64) float64 {
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

// value writes a figure in its unit.
func value(unit result.Unit, x float64) string {
	switch unit {
	case result.UnitPerSecond:
		return report.Rate(tidy(x))
	case result.UnitCount:
		return report.InUnit(unit, tidy(x))
	}
	return report.InUnit(unit, x)
}

// valueOf is a figure that may be known only to be more.
func valueOf(unit result.Unit, x *float64, atLeast bool) string {
	switch {
	case x == nil:
		return "–"
	case atLeast:
		return ">" + nbsp + value(unit, *x)
	}
	return value(unit, *x)
}

// split divides a value from its unit, which is set smaller.
func split(text string) (number, unit string) {
	end := strings.LastIndexAny(text, "0123456789")
	if end < 0 || strings.Count(text, nbsp) > 1 {
		return text, ""
	}
	return text[:end+1], text[end+1:]
}

// bare is a relative change without its unit: one decimal below 10 %, whole ones above, and from ten times on the factor.
func bare(x float64) string {
	percent := 100 * x
	switch a := math.Abs(percent); {
	case x >= 9.995:
		return times(1+x) + "×"
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

func times(ratio float64) string { return strconv.FormatFloat(tidy(ratio), 'f', -1, 64) }

// change is a relative change with its unit, or a difference of counts.
func change(f compare.Figure, x *float64) string {
	switch {
	case x == nil:
		return "–"
	case f.Counted:
		return difference(*x)
	}
	text := bare(*x)
	if strings.HasSuffix(text, "×") {
		return text
	}
	return text + nbsp + "%"
}

func difference(x float64) string {
	if x == 0 {
		return "0"
	}
	return signed(x, 0)
}

// limits is an interval without units. A limit that is absent is infinite.
func limits(f compare.Figure, i *result.Interval) string {
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
		return bare(x)
	}
	if i.AtLeast != nil {
		low = of(*i.AtLeast)
	}
	if i.AtMost != nil {
		high = of(*i.AtMost)
	}
	return low + "…" + high
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1" + nbsp + noun
	}
	return report.Count(n) + nbsp + noun + "s"
}

// list joins words as a sentence does.
func list(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// percent is a confidence or a margin, such as 99.8 %.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e4)/1e2, 'f', -1, 64) + nbsp + "%"
}

// numbered writes a value of a parameter: a whole one with a comma between thousands.
func numbered(text string) string {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && fmt.Sprint(n) == text && n >= 1000 {
		return report.Count(n)
	}
	return text
}
