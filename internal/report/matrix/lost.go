package matrix

import (
	"fmt"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
)

// losses are the lost writes of one cell, or of several.
type losses struct {
	runs, with int
	total      float64
	most       float64
}

func (l *losses) add(run *study.Run) {
	v, ok := run.Values[compare.LostWrites.Name]
	if !ok || run.Inconclusive != "" {
		return
	}
	l.runs++
	l.total += v.Value
	l.most = max(l.most, v.Value)
	if v.Value > 0 {
		l.with++
	}
}

// lostSection is what was lost, and what cannot be excluded; nil if no run has counted.
func (s *subject) lostSection() *report.Section {
	cells := make([]losses, len(s.Cells))
	var all losses
	readBack := int64(0)
	for i := range s.Runs {
		run := &s.Runs[i]
		cells[run.Cell].add(run)
		all.add(run)
		if run.Detail != nil && run.Inconclusive == "" {
			readBack += run.Detail.ReadBack
		}
	}
	if all.runs == 0 {
		return nil
	}
	section := &report.Section{
		ID:      "lost",
		Title:   "Lost writes",
		Finding: s.lostFinding(cells, all, readBack),
	}
	t := report.Table{Caption: "Acknowledged writes that were lost", Columns: []report.Column{
		{Title: "Cell"},
		{Title: "Runs", Number: true},
		{Title: "With a loss", Number: true},
		{Title: "Lost", Number: true},
		{Title: "Most in a run", Number: true},
		{Title: "Verdict"},
		{Title: "Why", Soft: true},
	}}
	for i := range s.Cells {
		l := &cells[i]
		row := report.Row{Cells: []report.Cell{
			{Text: s.Cells[i].Name},
			{Text: report.Count(l.runs)},
			{Text: report.Count(l.with)},
			{Text: report.Count(int64(l.total)), Value: &l.total, Unit: result.UnitCount},
			{Text: report.Count(int64(l.most)), Value: &l.most, Unit: result.UnitCount},
			{},
			{},
		}}
		c := s.Row(s.Cells[i].Name, compare.LostWrites.Name)
		if c != nil && s.Cells[i].Baseline != i {
			row.Cells[5], row.Cells[6] = report.Cell{
				Text: wording.OfVerdict(c.Verdict).String(),
			}, report.Cell{Text: c.Message}
		}
		t.Rows = append(t.Rows, row)
	}
	if all.with > 0 {
		section.Tables = []report.Table{t}
	} else if len(s.Cells) <= cellsWithCurves {
		t.Drawn = true // all of it is said in the sentence
		section.Tables = []report.Table{t}
	}
	return section
}

func (s *subject) lostFinding(cells []losses, all losses, readBack int64) report.Prose {
	looked := ""
	if readBack > 0 {
		looked = fmt.Sprintf(" (%s acknowledged writes were read back)", report.Count(readBack))
	}
	if all.with == 0 {
		least := all.runs
		for _, c := range cells {
			if c.runs > 0 {
				least = min(least, c.runs)
			}
		}
		return report.Prose{}.Strong(fmt.Sprintf("No loss in the %s of any cell",
			wording.Plural(least, "repeat"))).Add(fmt.Sprintf(
			"%s. That is no proof of “same”: a loss in up to %s of such runs cannot be excluded for a cell, in up to %s for all %s together (%s).",
			looked, wording.Percent(round2(compare.UpperOfNone(least))),
			wording.Percent(round2(compare.UpperOfNone(all.runs))), wording.Plural(all.runs, "run"),
			wording.Percent(0.95)))
	}
	var with, without []string
	for i := range cells {
		if cells[i].with > 0 {
			with = append(with, s.Cells[i].Name)
		} else if cells[i].runs > 0 {
			without = append(without, s.Cells[i].Name)
		}
	}
	p := report.Prose{}.Damage(fmt.Sprintf("%s were lost",
		wording.Plural(int(all.total), "acknowledged write"))).Add(fmt.Sprintf(" in %d of %s%s: in %s.",
		all.with, wording.Plural(all.runs, "run"), looked, wording.Some(with)))
	if len(without) > 0 {
		p = p.Add(
			fmt.Sprintf(
				" None in %s, which is no proof: a loss in up to %s of such runs cannot be excluded for a "+
					"cell (%s).", wording.Some(without),
				wording.Percent(round2(compare.UpperOfNone(fewest(cells)))), wording.Percent(0.95)))
	}
	return p
}

// fewest is the smallest number of runs of a cell without a loss.
func fewest(cells []losses) int {
	n := 0
	for _, c := range cells {
		if c.with == 0 && c.runs > 0 && (n == 0 || c.runs < n) {
			n = c.runs
		}
	}
	return n
}

func round2(x float64) float64 {
	return float64(int(100*x+0.5)) / 100
}
