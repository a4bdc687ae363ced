package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// WriteJSON writes a report as JSON. Its schema is docs/report.schema.json.
func WriteJSON(w io.Writer, d *Document) error {
	out := *d
	out.Sections = slices.DeleteFunc(slices.Clone(d.Sections), func(s Section) bool {
		return s.Derived || len(s.Tables)+len(s.Facts)+len(s.Finding) == 0
	})
	for i := range out.Sections {
		out.Sections[i] = out.Sections[i].plain()
	}
	text, err := json.MarshalIndent(&out, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// plain is the section without typeset spaces, which programs do not expect.
func (s Section) plain() Section {
	s.Note = plain(s.Note)
	s.Facts = slices.Clone(s.Facts)
	for i := range s.Facts {
		s.Facts[i].Value, s.Facts[i].Detail = plain(s.Facts[i].Value), plain(s.Facts[i].Detail)
	}
	s.Tables = slices.Clone(s.Tables)
	for i := range s.Tables {
		t := &s.Tables[i]
		t.Caption, t.Rows = plain(t.Caption), slices.Clone(t.Rows)
		for k := range t.Rows {
			t.Rows[k].Cells = slices.Clone(t.Rows[k].Cells)
			for c := range t.Rows[k].Cells {
				t.Rows[k].Cells[c].Text = plain(t.Rows[k].Cells[c].Text)
			}
		}
	}
	return s
}

// WriteCSV writes the figures of a report, a row for each. What is not known is empty.
func WriteCSV(w io.Writer, d *Document) error {
	rows := [][]string{
		{
			"kind", "namespace", "name", "of", "figure", "unit", "value", "atLeast", "atMost", "limit",
			"judged",
		},
	}
	for i := range d.Figures {
		f := &d.Figures[i]
		rows = append(rows, []string{
			string(d.Kind), d.Namespace, d.Name, f.Of, f.Name, string(f.Unit), decimal(f.Value),
			decimal(f.AtLeast), decimal(f.AtMost), decimal(f.Limit), string(f.Judged),
		})
	}
	return WriteRows(w, rows)
}

// WriteRows writes rows as CSV.
func WriteRows(w io.Writer, rows [][]string) error {
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func decimal(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}
