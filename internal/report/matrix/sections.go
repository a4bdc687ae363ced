package matrix

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/intervals"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// matrixSection is the cells.
func (s *subject) matrixSection() (*report.Section, error) {
	m, w := s.matrix(), s.Window
	html, err := drawings.Draw("matrix", m)
	if err != nil {
		return nil, err
	}
	f := wording.Of(s.leading().Name)
	text := "Each cell: the median of " + f.InText
	if s.BaselineText() != "" {
		text += ", and how it differs from its baseline"
	}
	switch {
	case len(m.Ticks) > 0 && w.Fault:
		text += ", and the throughput around the fault: the line is the median of the runs, the band " +
			"goes from the lowest to the highest. All on one scale; the dashed line is the baseline."
	case len(m.Ticks) > 0:
		text += ", and the throughput over the run: the line is the median of the runs, the band goes " +
			"from the lowest to the highest. All on one scale; the dashed line is the baseline."
	case len(s.Cells) > cellsWithCurves:
		text += fmt.Sprintf(". The curves of %s are left out: the report of a load test shows them.",
			wording.Plural(len(s.Cells), "cell"))
	default:
		text += "."
	}
	section := &report.Section{
		ID:      "matrix",
		Title:   "The matrix",
		Leading: true,
		Finding: report.Text(text),
		Drawing: html,
		Tables:  []report.Table{s.matrixTable()},
	}
	section.Note = s.missing(len(m.Ticks) > 0)
	return section, nil
}

// missing says of how many runs there is no curve.
func (s *subject) missing(curves bool) string {
	if s.Kind != report.Experiment || len(s.Cells) > cellsWithCurves || len(s.Runs) == 0 {
		return ""
	}
	with := 0
	for i := range s.Runs {
		if s.Runs[i].Detail != nil && s.Runs[i].Detail.Curve != nil {
			with++
		}
	}
	switch {
	case !curves:
		return "There are no curves: the record of an experiment has the figures of its runs alone, " +
			"and neither the load tests nor their results were given."
	case with < len(s.Runs):
		return fmt.Sprintf(
			"Curves of %d of %s: the others had no fault, or their load tests or results are not there "+
				"any more.", with, wording.Plural(len(s.Runs), "run"))
	}
	return ""
}

// comparisonSection is the comparisons as intervals; nil if nothing is compared as a ratio.
func (s *subject) comparisonSection() (*report.Section, error) {
	html, err := intervals.Draw(&s.Matrix, "Changes against the baseline", s.Table.Comparisons)
	if err != nil || html == "" {
		return nil, err
	}
	joint := 0.
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if r.Primary && r.IntervalJoint != nil {
			joint = r.IntervalJoint.Confidence
		}
	}
	section := &report.Section{
		ID:      "comparisons",
		Title:   "Better, worse, same, or inconclusive",
		Leading: true,
		Drawing: html,
		Tables:  []report.Table{intervals.Table(s.Table.Comparisons)},
	}
	section.Finding = report.Prose{}.Strong(tally(s.Table.Comparisons))
	if s.Provisional() {
		section.Finding = report.Text(
			"Changes so far, without a verdict: the number of runs was fixed in advance, to rule out " +
				"optional stopping. To the right is always better.")
		return section, nil
	}
	section.Finding = section.Finding.Add(" To the right is always better. ").Strong("▼ worse").
		Add(" or ").Strong("▲ better").
		Add(": the thin line, the interval that holds for all comparisons at once, leaves out 0. ").
		Strong("= same").
		Add(": the thick part, the interval of " + wording.Percent(0.9) +
			", lies within the grey margin; that wins. ").Strong("? inconclusive").Add(": neither.")
	section.Note = "Change in percent; the scale is even in ratios and stretched around 0."
	if joint > 0 {
		section.Note += fmt.Sprintf(
			" Where nothing differs, the chance that any comparison is called different is %s. Beside "+
				"“same” stands the interval of %s, beside the others the one of %s.", wording.Percent(0.05),
			wording.Percent(0.9), wording.Percent(joint))
	}
	return section, nil
}

// earlierSection is the cells against themselves in an earlier run; nil = there is none.
func (s *subject) earlierSection() (*report.Section, error) {
	e := s.Earlier
	if e == nil {
		return nil, nil
	}
	section := &report.Section{
		ID:      "earlier",
		Title:   "Against " + e.Run,
		Leading: true,
	}
	word := map[string]string{
		"True":    "Something has regressed",
		"False":   "Nothing has regressed",
		"Unknown": "It is not known whether something has regressed",
	}[e.Regressed]
	if e.Reason == "Unconfirmed" {
		word += ", unconfirmed"
	}
	section.Finding = report.Prose{}
	if e.Regressed == "True" {
		section.Finding = section.Finding.Damage(word)
	} else {
		section.Finding = section.Finding.Strong(word)
	}
	if e.Message != "" {
		section.Finding = section.Finding.Add(": " + strings.TrimSuffix(e.Message, ".") + ".")
	} else {
		section.Finding = section.Finding.Add(".")
	}
	if len(e.Rows) == 0 {
		return section, nil
	}
	section.Finding = section.Finding.Add(
		" Two days differ by more than the repeats of one: a regression needs the whole interval " +
			"beyond the margin. To the right is always better.")
	html, err := intervals.Draw(&s.Matrix, "Changes against "+e.Run, e.Rows)
	if err != nil {
		return nil, err
	}
	section.Drawing = html
	table := intervals.Table(e.Rows)
	table.Caption, table.Drawn = "Each cell against itself in "+e.Run, html != ""
	section.Tables = []report.Table{table}
	section.Note = strings.Join(e.Notes, ". ")
	return section, nil
}

// othersSection is the figures of which no verdict is told.
func (s *subject) othersSection() *report.Section {
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "Cell"},
			{Title: "Median", Number: true},
			{Title: "of baseline", Number: true},
			{Title: "Change", Number: true},
			{Title: "Interval of " + wording.Percent(0.95), Number: true},
		},
	}
	for i := range s.Table.Comparisons {
		r := &s.Table.Comparisons[i]
		if r.Primary {
			continue
		}
		c := intervals.Cells(r)
		interval := ""
		if r.Change != nil {
			interval = wording.Interval(compare.FigureNamed(r.Figure), &comparisons.Interval{
				AtLeast: r.AtLeast,
				AtMost:  r.AtMost,
			})
		}
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{{Text: r.Figure}, c[1], c[3], c[4], c[5], {Text: interval}},
		})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &report.Section{
		ID:      "others",
		Title:   "Other figures",
		Finding: report.Text("without a verdict"),
		Tables:  []report.Table{t},
		Folded:  true,
		Unfit:   len(t.Rows) > 40,
		Note:    "Each interval holds for its own comparison alone: of 20 that differ in nothing, one leaves out 0 by chance.",
	}
}
