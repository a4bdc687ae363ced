package output

import (
	"strings"
	"unicode/utf8"
)

// table is rows of text in columns: the first is aligned to the left, the others, which hold
// figures, to the right.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) {
	t.rows = append(t.rows, cells)
}

// String returns the table, two spaces between columns, a newline after each row.
func (t *table) String() string {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
