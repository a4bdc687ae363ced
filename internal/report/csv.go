package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

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
