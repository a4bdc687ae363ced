package output

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/result"
)

// comparisonHeader are the columns. Where all cells have the same baseline, that is named above the
// table.
func comparisonHeader(c *result.Comparisons) []string {
	header := []string{"figure", "cell", "median", "baseline", "change", "interval", "verdict", "runs"}
	if c.Baseline == "" {
		header = slices.Insert(header, 2, "compared with")
	}
	return header
}

// comparisonTitle says what is compared with what.
func comparisonTitle(c *result.Comparisons) string {
	with := cmp.Or(c.Baseline, "the baseline of each cell")
	switch e := c.Experiment; {
	case e == nil:
		return "Compared with " + with
	case e.Verdict == "":
		return fmt.Sprintf("Experiment %s, provisional: %d of %d runs, compared with %s", e.Name,
			e.Finished, e.Runs, with)
	default:
		return fmt.Sprintf("Experiment %s: %d runs, compared with %s", e.Name, e.Finished, with)
	}
}

// verdictOf is that of an experiment in a sentence; "" = the runs are of none.
func verdictOf(e *result.Experiment) string {
	switch {
	case e == nil:
		return ""
	case e.Verdict == "":
		return "none, as the experiment is not complete: " + e.Message
	case e.Message == "":
		return e.Verdict
	}
	return e.Verdict + ": " + e.Message
}

// WriteComparisons writes a table of cells against their baseline, and below it the verdicts in
// sentences.
func WriteComparisons(w io.Writer, c *result.Comparisons) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", comparisonTitle(c))
	var t table
	t.row(strings.Split(strings.ToUpper(strings.Join(comparisonHeader(c), "|")), "|")...)
	for i := range c.Comparisons {
		t.row(comparisonRow(c, &c.Comparisons[i])...)
	}
	b.WriteString(t.String())
	b.WriteString("\n")
	for _, r := range c.Comparisons {
		if r.Message != "" {
			fmt.Fprintf(&b, "%s: %s\n", r.Cell, sentence(&r))
		}
	}
	if verdict := verdictOf(c.Experiment); verdict != "" {
		line(&b, "Verdict", "%s", printable(verdict))
	}
	for _, note := range slices.Concat(c.Notes, c.Opposed()) {
		line(&b, "Note", "%s", printable(note))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// WriteComparisonsMarkdown writes the same for a comment or a page.
func WriteComparisonsMarkdown(w io.Writer, c *result.Comparisons) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", markdown(comparisonTitle(c)))
	header := comparisonHeader(c)
	fmt.Fprintf(&b, "| %s |\n|%s ---: | ---: | ---: | --- | --- | ---: |\n",
		strings.Join(header, " | "), strings.Repeat(" --- |", len(header)-6))
	for i := range c.Comparisons {
		row := comparisonRow(c, &c.Comparisons[i])
		for k := range row {
			row[k] = markdown(row[k])
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
	for _, r := range c.Comparisons {
		if r.Message != "" {
			fmt.Fprintf(&b, "- **%s**: %s\n", markdown(r.Cell), markdown(sentence(&r)))
		}
	}
	if verdict := verdictOf(c.Experiment); verdict != "" {
		fmt.Fprintf(&b, "- **Verdict**: %s\n", markdown(printable(verdict)))
	}
	for _, note := range slices.Concat(c.Notes, c.Opposed()) {
		fmt.Fprintf(&b, "- Note: %s\n", markdown(printable(note)))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}

// sentence is a message that names its figure.
func sentence(r *result.Comparison) string {
	if strings.HasPrefix(r.Message, r.Figure+" ") {
		return r.Message
	}
	return r.Figure + ": " + r.Message
}

// markdown is text in a cell of a table, without its special characters.
func markdown(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "[", `\[`, "]", `\]`, "@", "&#64;",
		"*", `\*`, "_", `\_`, "<", "&lt;", "\n", " ").Replace(text)
}

func comparisonRow(c *result.Comparisons, r *result.Comparison) []string {
	row := []string{
		r.Figure, r.Cell, median(r.Unit, r.Median, r.MedianAtLeast),
		median(r.Unit, r.BaselineMedian, r.BaselineMedianAtLeast), bound(r) + change(r, r.Change),
		interval(r),
		cmp.Or(r.Verdict, "-"), fmt.Sprintf("%d/%d", r.Repeats, r.BaselineRepeats),
	}
	if c.Baseline == "" {
		row = slices.Insert(row, 2, r.Baseline)
	}
	return row
}

// printable is text of a file or a cluster without what moves the cursor of a terminal.
func printable(text string) string {
	return redis.Printable(text, len(text))
}

func interval(r *result.Comparison) string {
	if r.Change == nil {
		return "-"
	}
	low, high := "-100%", "any"
	if isDifference(r) {
		low = "any"
	}
	if r.AtLeast != nil {
		low = change(r, r.AtLeast)
	}
	if r.AtMost != nil {
		high = change(r, r.AtMost)
	}
	return fmt.Sprintf("%s to %s (%s)", low, high, format.Share(r.Confidence))
}

// isDifference reports whether a change is one of counts, and not relative.
func isDifference(r *result.Comparison) bool {
	return r.Figure == compare.LostWrites.Name
}

// bound is > or < where runs were not over by the deadline.
func bound(r *result.Comparison) string {
	return map[string]string{"AtLeast": ">", "AtMost": "<"}[r.Bound]
}

// change is a relative change, or a difference of counts.
func change(r *result.Comparison, v *float64) string {
	switch {
	case v == nil:
		return "-"
	case isDifference(r):
		return fmt.Sprintf("%+.0f", *v)
	case math.Abs(*v) < 5e-5: // 0.0% of either sign
		return "0%"
	case *v < 0:
		return "-" + format.Share(-*v)
	case *v >= 9.995:
		return fmt.Sprintf("%.3gx", 1+*v)
	}
	return "+" + format.Share(*v)
}

func median(unit result.Unit, v *float64, atLeast bool) string {
	switch {
	case v == nil:
		return "-"
	case atLeast:
		return ">" + inUnit(unit, *v)
	}
	return inUnit(unit, *v)
}

func inUnit(unit result.Unit, x float64) string {
	switch unit {
	case result.UnitSeconds:
		return format.Duration(time.Duration(x * float64(time.Second)))
	case result.UnitShare:
		return format.Share(x)
	case result.UnitPerSecond:
		return format.Rate(x) + "/s"
	case result.UnitCores:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case result.UnitBytes:
		return strconv.FormatFloat(x/(1<<20), 'f', 1, 64) + "Mi"
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
