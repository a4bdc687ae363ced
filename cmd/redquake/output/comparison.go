package output

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/intervals"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// WriteComparisons writes a table of cells against their baseline as text, and below it the
// verdicts in sentences.
func WriteComparisons(w io.Writer, c *comparisons.Comparisons) error {
	return report.WriteParts(w, comparisonDocument(c))
}

// WriteComparisonsMarkdown writes the same for a comment or a page.
func WriteComparisonsMarkdown(w io.Writer, c *comparisons.Comparisons) error {
	return report.WriteMarkdownParts(w, comparisonDocument(c))
}

// comparisonDocument is the table with its verdicts. Where all cells have the same baseline, that
// is named above the table only.
func comparisonDocument(c *comparisons.Comparisons) *report.Document {
	why := len(intervals.Table(nil).Columns) - 1 // below the table, as it is long
	table := report.Table{
		Columns: append(intervals.Table(nil).Columns[:why], report.Column{Title: "Runs", Number: true}),
	}
	var notes []string
	for i := range c.Comparisons {
		r := &c.Comparisons[i]
		cells := intervals.Cells(r)
		if c.Baseline != "" {
			cells[2].Text = ""
		}
		if !r.Primary {
			cells[why-1].Text = "–"
		}
		cells[why] = report.Cell{Text: fmt.Sprintf("%d/%d", r.Repeats, r.BaselineRepeats)}
		table.Rows = append(table.Rows, report.Row{Cells: cells})
		if r.Message != "" {
			notes = append(notes, r.Cell+": "+sentence(r))
		}
	}
	return &report.Document{
		Sections: []report.Section{{
			Title:   comparisonTitle(c),
			Finding: report.Text(verdictOf(c.Experiment)),
			Tables:  []report.Table{table},
		}},
		Notes: slices.Concat(notes, c.Notes, c.Opposed()),
	}
}

// comparisonTitle says what is compared with what.
func comparisonTitle(c *comparisons.Comparisons) string {
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
func verdictOf(e *comparisons.Experiment) string {
	if e == nil {
		return ""
	}
	verdict := "Verdict: " + cmp.Or(e.Verdict, "none, as the experiment is not complete")
	if e.Message == "" {
		return verdict
	}
	return verdict + ": " + e.Message
}

// sentence is a message that names its figure.
func sentence(r *comparisons.Comparison) string {
	if strings.HasPrefix(r.Message, r.Figure+" ") {
		return r.Message
	}
	return r.Figure + ": " + r.Message
}
