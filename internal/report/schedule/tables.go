package schedule

import (
	"fmt"
	"slices"

	"github.com/redquake/redquake/internal/analysis/compare"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/judgement"
	"github.com/redquake/redquake/internal/report/wording"
	"github.com/redquake/redquake/internal/result"
)

// regressionsSection is the regressions that last; nil = there is none.
func (s *Schedule) regressionsSection() *report.Section {
	h := s.History
	if len(h.Regressions) == 0 && h.Confirming == nil {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "Cell"},
			{Title: "Level before", Number: true},
			{Title: "Since"},
			{Title: "Found with"},
			{Title: "State"},
			{Title: "Why", Soft: true},
		},
	}
	for i := range h.Regressions {
		r := &h.Regressions[i]
		state := report.Cell{Text: "regressed", Judged: report.Missed}
		why := r.Message
		if r.Unconfirmed != "" {
			state = report.Cell{Text: "unconfirmed", Judged: report.NotJudged}
			why += "; " + r.Unconfirmed
		}
		unit := experiment.UnitOf(compare.FigureNamed(r.Figure))
		t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
			{Text: r.Figure},
			{Text: r.Cell},
			{Text: wording.Value(unit, r.Level), Value: &r.Level, Unit: unit},
			{Text: s.when(r.Since)},
			{Text: r.Found},
			state,
			{Text: why},
		}})
	}
	section := &report.Section{
		ID:      "regressions",
		Title:   "What is worse",
		Leading: true,
		Tables:  []report.Table{t},
	}
	section.Finding = report.Text(
		"A regression ends with the second run in a row that is back within the margin of the level before.")
	c := h.Confirming
	if c == nil {
		return section
	}
	for _, r := range c.Regressed {
		unit := experiment.UnitOf(compare.FigureNamed(r.Figure))
		section.Tables[0].Rows = append(section.Tables[0].Rows, report.Row{Cells: []report.Cell{
			{Text: r.Figure},
			{Text: r.Cell},
			{Text: wording.Value(unit, r.Level), Value: new(r.Level), Unit: unit},
			{Text: s.when(c.Run)},
			{Text: c.Run},
			{Text: "being repeated", Judged: report.NotJudged},
			{Text: r.Message},
		}})
	}
	if c.Attempts > 0 {
		section.Note = fmt.Sprintf("%s could not tell; the last one: %s",
			wording.Plural(c.Attempts, "repetition"), c.Why)
	}
	return section
}

// changesSection is the changes of level; nil = there is none.
func (s *Schedule) changesSection(runs []history.Run) *report.Section {
	if len(s.History.Changes) == 0 {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Figure"},
			{Title: "Cell"},
			{Title: "Change", Number: true},
			{Title: "Since"},
			{Title: "Found with"},
			{Title: "Which is"},
		},
	}
	for _, c := range slices.Backward(s.History.Changes) {
		f := compare.FigureNamed(c.Figure)
		unit := result.UnitShare
		if f.Counted {
			unit = result.UnitCount
		}
		word := wording.OfVerdict("Better")
		if c.Worse {
			word = wording.OfVerdict("Worse")
		}
		t.Rows = append(t.Rows, report.Row{
			Dim: len(runs) > 0 && c.Template != runs[0].Template,
			Cells: []report.Cell{
				{Text: c.Figure},
				{Text: c.Cell},
				{Text: wording.Change(f, &c.Change), Value: new(c.Change), Unit: unit},
				{Text: s.when(c.Since)},
				{Text: c.Found},
				{Text: word.String()},
			},
		})
	}
	return &report.Section{
		ID:     "changes",
		Title:  "Changes of a level",
		Tables: []report.Table{t},
		Finding: report.Text(
			"Found over the runs of the schedule: by two in a row that are far from all before, or by the ranks before and after."),
	}
}

// nightsSection is the runs of the schedule, the latest first.
func (s *Schedule) nightsSection() *report.Section {
	if len(s.History.Runs) == 0 {
		return nil
	}
	t := report.Table{
		Columns: []report.Column{
			{Title: "Run"},
			{Title: "Scheduled, UTC"},
			{Title: "Verdict"},
			{Title: "Compared with"},
			{Title: "Regressed", Number: true},
			{Title: "Repeats"},
			{Title: "Message", Soft: true},
		},
	}
	for _, r := range slices.Backward(s.History.Runs) {
		verdict := string(r.Verdict)
		if verdict == "" {
			verdict = "none"
		}
		regressed := float64(len(r.Regressed))
		t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{
			{Text: r.Name},
			{Text: r.Scheduled.UTC().Format("2 Jan 2006, 15:04")},
			{Text: verdict, Judged: judgement.OfVerdict(r.Verdict)},
			{Text: r.Against},
			{Text: report.Count(len(r.Regressed)), Value: &regressed, Unit: result.UnitCount},
			{Text: r.Confirms},
			{Text: r.Message},
		}})
	}
	section := &report.Section{
		ID:    "nights",
		Title: "Runs of the schedule",
		Finding: report.Text(wording.Plural(len(s.History.Runs), "run") +
			", the latest first; redquake report redisexperiment/RUN has what each found"),
		Tables: []report.Table{t},
		Folded: true,
		Open:   len(t.Rows) <= 12,
	}
	if n := s.History.Dropped.Runs; n > 0 {
		section.Note = fmt.Sprintf("%s before these are not kept.", wording.Plural(n, "run"))
	}
	return section
}
