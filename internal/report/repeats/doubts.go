package repeats

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/report/wording"
)

// Doubts is the runs that are left out, the drift, and the notes of the comparison.
func Doubts(s *study.Study) (*report.Section, error) {
	n := s.InDoubt()
	found := "no run left out"
	if n > 0 {
		found = wording.Plural(n, "run") + " left out"
	}
	section := &report.Section{
		ID:     "doubts",
		Title:  "Doubts",
		Folded: true,
		Open:   s.Verdict == report.Inconclusive,
	}
	if d := driftOf(s); d != nil {
		html, err := drawings.Draw("drift", d)
		if err != nil {
			return nil, err
		}
		section.Drawing = html
		found += "; " + d.Found
	}
	section.Finding = report.Text(found)
	if n > 0 {
		section.Tables = append(section.Tables, doubtsTable(s))
	}
	if notes := notesOf(s); len(notes) > 0 {
		t := report.Table{
			Caption: "What the figures do not show",
			Columns: []report.Column{{Title: "Note"}},
		}
		for _, note := range notes {
			t.Rows = append(t.Rows, report.Row{Cells: []report.Cell{{Text: note}}})
		}
		section.Tables = append(section.Tables, t)
	}
	section.Note = "A run in doubt is dropped and counted. Where more than a third of a cell’s runs are in doubt, the cell gets no word."
	return section, nil
}

// notesOf are those of the comparison but for the runs that are left out, which have a table; and
// what was known before.
func notesOf(s *study.Study) (notes []string) {
	for _, note := range s.Table.Notes {
		if !strings.Contains(note, " is inconclusive: ") &&
			!strings.HasSuffix(note, " more runs are inconclusive") {
			notes = append(notes, note)
		}
	}
	return notes
}

func doubtsTable(s *study.Study) report.Table {
	t := report.Table{
		Caption: "Runs in no figure",
		Columns: []report.Column{
			{Title: "Doubt"},
			{Title: "Run"},
			{Title: "Cell"},
			{Title: "Why", Soft: true},
		},
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Inconclusive == "" {
			continue
		}
		d := doubtOf(r.Inconclusive)
		t.Rows = append(t.Rows, report.Row{
			Cells: []report.Cell{
				{Text: d.Reason, Judged: report.NotJudged},
				{Text: fmt.Sprintf("%d: %s", r.Number, r.Name)},
				{Text: s.Cells[r.Cell].Name},
				{Text: d.Message},
			},
		})
	}
	return t
}

// doubt is why a run is in no figure.
type doubt struct{ Reason, Message string }

// doubtOf divides a reason into its word and its sentence.
func doubtOf(inconclusive string) doubt {
	text := strings.TrimPrefix(inconclusive, "its verdict is Inconclusive: ")
	head, rest, found := strings.Cut(text, ": ")
	if found && !strings.ContainsAny(head, " \t\n") && len(head) <= 64 {
		return doubt{head, rest}
	}
	return doubt{"Inconclusive", text}
}
