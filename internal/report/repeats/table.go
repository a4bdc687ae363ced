package repeats

import (
	"fmt"

	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
)

// Runs is all runs.
func Runs(s *study.Study) *report.Section {
	if len(s.Runs) == 0 {
		return nil
	}
	figures := s.Measured()
	t := report.Table{
		Caption: "The runs, in the order in which they ran",
		Columns: []report.Column{
			{Title: "Run", Number: true},
			{Title: "Cell"},
			{Title: "Round", Number: true},
			{Title: "Verdict"},
		},
	}
	for _, f := range figures {
		t.Columns = append(t.Columns, report.Column{Title: wording.Of(f.Name).Title, Number: true})
	}
	detailed := false
	for i := range s.Runs {
		detailed = detailed || s.Runs[i].Detail != nil && s.Runs[i].Detail.Use.Bottleneck != ""
	}
	if detailed {
		t.Columns = append(t.Columns, report.Column{Title: "Bottleneck", Soft: true})
	}
	t.Columns = append(t.Columns, report.Column{Title: "Name", Soft: true}, report.Column{
		Title: "Why",
		Soft:  true,
	})
	for i := range s.Runs {
		r := &s.Runs[i]
		row := report.Row{
			Dim: r.Inconclusive != "",
			Cells: []report.Cell{
				{Text: report.Count(r.Number)},
				{Text: s.Cells[r.Cell].Name},
				{Text: roundText(r.Round)},
				verdictOf(r),
			},
		}
		for _, f := range figures {
			row.Cells = append(row.Cells, figureCell(r, f.Name, experiment.UnitOf(f)))
		}
		if detailed {
			bottleneck := ""
			if r.Detail != nil {
				bottleneck = r.Detail.Use.Bottleneck
			}
			row.Cells = append(row.Cells, report.Cell{Text: bottleneck})
		}
		why := r.Failed
		if why == "" {
			why = r.Inconclusive
		}
		row.Cells = append(row.Cells, report.Cell{Text: r.Name}, report.Cell{Text: why})
		t.Rows = append(t.Rows, row)
	}
	text := fmt.Sprintf("%d, in the order in which they ran", len(s.Runs))
	if s.Planned > len(s.Runs) {
		text = fmt.Sprintf("%d of %d, in the order in which they ran", len(s.Runs), s.Planned)
	}
	return &report.Section{
		ID:      "runs",
		Title:   "Runs",
		Finding: report.Text(text),
		Tables:  []report.Table{t},
		Folded:  true,
		Unfit:   true,
	}
}

func roundText(round int) string {
	if round == 0 {
		return "–"
	}
	return report.Count(round)
}

func verdictOf(r *study.Run) report.Cell {
	switch {
	case r.Missed:
		return report.Cell{Text: "Fail", Judged: report.Missed}
	case r.Failed != "":
		return report.Cell{Text: "Failed", Judged: report.Missed}
	case r.Inconclusive != "":
		return report.Cell{Text: "Inconclusive", Judged: report.NotJudged}
	}
	return report.Cell{Text: "Pass", Judged: report.Met}
}

func figureCell(r *study.Run, figure string, unit result.Unit) report.Cell {
	v, ok := r.Values[figure]
	if !ok {
		return report.Cell{Text: "–"}
	}
	return report.Cell{
		Text:  wording.ValueOf(unit, &v.Value, v.Censored),
		Value: &v.Value,
		Unit:  unit,
	}
}
