package judgement

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// markedAt is where a limit is marked on the bar of an objective: what is met stays left of it.
const markedAt = 0.8

// Objectives is the objectives with what became of them; nil = there is none.
func Objectives(d *report.Document) *report.Section {
	if len(d.Objectives) == 0 {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Objective"},
			{Title: "Of"},
			{Title: "Actual", Number: true},
			{Title: "Limit", Number: true},
			{Title: "Actual against limit", Width: 36, Wide: true},
			{Title: "Verdict"},
		},
	}
	met, unjudged := 0, 0
	for _, o := range d.Objectives {
		row := []report.Cell{
			{Text: o.Name},
			{Text: o.Of},
			{Text: "not measured"},
			{Text: report.InUnit(o.Unit, o.Limit)},
			{},
			{Text: judgedWords[o.Judged], Judged: o.Judged},
		}
		if o.Actual != nil {
			row[2].Text = report.InUnit(o.Unit, *o.Actual)
			if o.Limit > 0 {
				row[4].Bar = &report.Bar{Share: markedAt * *o.Actual / o.Limit, Mark: markedAt}
			}
		}
		switch o.Judged {
		case report.Met:
			met++
		case report.NotJudged:
			unjudged++
		}
		t.Rows = append(t.Rows, report.Row{Cells: row})
	}
	found := fmt.Sprintf("%d of %d are met", met, len(d.Objectives))
	switch {
	case unjudged == len(d.Objectives):
		found = "None is judged"
	case unjudged > 0:
		found += fmt.Sprintf(", %d not judged", unjudged)
	}
	return &report.Section{
		ID:      "obj",
		Title:   "Objectives",
		Derived: true,
		Tables:  []report.Table{t.WithoutEmptyColumns()},
		Finding: report.Text(found + ". The line on a bar is the limit."),
	}
}

var judgedWords = map[report.Judged]string{
	report.Met:       "met",
	report.Missed:    "missed",
	report.NotJudged: "not judged",
}

// Of is what became of an objective; met is nil if it could not be judged.
func Of(met *bool) report.Judged {
	switch {
	case met == nil:
		return report.NotJudged
	case *met:
		return report.Met
	}
	return report.Missed
}

// OfVerdict is how a verdict is marked; "" where there is none yet.
func OfVerdict(verdict v1alpha1.Verdict) report.Judged {
	return map[v1alpha1.Verdict]report.Judged{
		v1alpha1.VerdictPass:         report.Met,
		v1alpha1.VerdictFail:         report.Missed,
		v1alpha1.VerdictInconclusive: report.NotJudged,
	}[verdict]
}
