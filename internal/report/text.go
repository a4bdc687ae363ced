package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textWidth is how wide the text of a report is, in characters: a terminal. Only tables of many
// figures are wider.
const textWidth = 100

// narrowest is how narrow a column of words becomes at least, in characters, where a table is too
// wide.
const narrowest = 24

// WriteText writes a report for a terminal: what Markdown has, in aligned columns and without what
// is folded there only because it is long.
func WriteText(w io.Writer, d *Document) error {
	var t text
	t.head(d)
	t.table(d.headlines())
	t.objectives(d)
	t.doubts(d)
	t.sections(d)
	if d.Specification != "" {
		t.part("Specification", "")
		for line := range strings.Lines(d.Specification) {
			t.line(strings.TrimRight(line, "\n"))
		}
	}
	return written(w, strings.TrimPrefix(t.String(), "\n"))
}

// WriteParts writes the sections and notes of a report for a terminal, without what it says of the
// whole.
func WriteParts(w io.Writer, d *Document) error {
	var t text
	t.sections(d)
	return written(w, strings.TrimPrefix(t.String(), "\n"))
}

func (t *text) sections(d *Document) {
	for _, leading := range []bool{true, false} {
		for i := range d.Sections {
			if s := &d.Sections[i]; s.Leading == leading && s.isText() {
				t.section(s)
			}
		}
	}
	t.list("Notes", d.Notes)
}

type text struct {
	strings.Builder
	titled bool // the latest line is a title, under which no line is left empty
}

// line writes a line. What a server or a user has named cannot move the cursor of a terminal.
func (t *text) line(line string) {
	t.titled = false
	t.WriteString(strings.TrimRight(printable(line, ' '), " ") + "\n")
}

// printable is text of which every character is seen: others, but for one that is kept, are spaces.
func printable(line string, kept rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case r != kept && !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, line)
}

// sentence writes text in lines; nothing if it is empty.
func (t *text) sentence(sentence string) {
	if sentence == "" {
		return
	}
	for _, line := range wrapped(sentence, textWidth) {
		t.line(line)
	}
}

// wrapped breaks text into lines at spaces; a longer word has a line of its own.
func wrapped(sentence string, width int) (lines []string) {
	line, used := "", 0
	for word := range strings.FieldsFuncSeq(sentence, func(r rune) bool {
		return r == ' ' ||
			r == '\n'
	}) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines, line, used = append(lines, line), "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}

// part begins a part of the text: its title, and what is said of it.
func (t *text) part(title, finding string) {
	t.line("")
	t.line(title)
	t.titled = true
	t.sentence(finding)
}

func (t *text) head(d *Document) {
	verdict := string(d.Verdict)
	if verdict == "" {
		verdict = string(d.State)
	}
	t.line(fmt.Sprintf("%s: %s", verdict, d.subject())) // whole, for whoever reads the first line
	t.sentence(d.Finding.String())
	// which the table has
	if d.Verdict != Fail ||
		!slices.ContainsFunc(d.Objectives, func(o Objective) bool { return o.Judged == Missed }) {
		t.sentence(d.Reason)
	}
	t.sentence(d.Done.String())
}

// objectives writes what became of the objectives.
func (t *text) objectives(d *Document) {
	table, met := d.objectiveTable()
	t.table(table)
	t.sentence(met)
}

func (t *text) doubts(d *Document) {
	var list []string
	for _, one := range d.Doubts {
		list = append(list, one.Reason+of(one.Of)+": "+one.Message)
	}
	t.list("Doubts: reasons why the figures are inconclusive", list)
}

// list writes sentences, each with a hanging indent; nothing without any.
func (t *text) list(title string, sentences []string) {
	if len(sentences) == 0 {
		return
	}
	t.part(title, "")
	for _, one := range sentences {
		for i, line := range wrapped(one, textWidth-2) {
			t.line([]string{"- ", "  "}[min(i, 1)] + line)
		}
	}
}

func (t *text) section(s *Section) {
	t.part(s.Title, s.Finding.String())
	width := 0
	for _, f := range s.Facts {
		width = max(width, utf8.RuneCountInString(f.Name))
	}
	for _, f := range s.Facts {
		name := f.Name
		for _, line := range wrapped(f.text(), max(narrowest, textWidth-width-2)) {
			t.line(padded(name, width, false) + "  " + line)
			name = ""
		}
	}
	for i := range s.Tables {
		t.table(&s.Tables[i])
	}
	t.sentence(s.Note)
}

// table writes a table; nothing without rows.
func (t *text) table(table *Table) {
	columns, rows := table.written()
	if len(rows) == 0 {
		return
	}
	if !t.titled {
		t.line("")
	}
	t.sentence(table.Caption)
	head := make([]string, len(columns))
	for c := range columns {
		head[c] = columns[c].Title
	}
	rows = slices.Insert(rows, 0, head)
	widths := widthsOf(columns, rows)
	for _, row := range rows {
		t.row(columns, widths, row)
	}
}

// widthsOf are the widths of columns. Where they are too wide together, the widest of words gives
// way, down to its longest word.
func widthsOf(columns []Column, rows [][]string) []int {
	widths, least := make([]int, len(columns)), make([]int, len(columns))
	whole := 2 * (len(columns) - 1)
	for c := range columns {
		least[c] = narrowest
		for _, row := range rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row[c]))
			for _, word := range wrapped(row[c], 1) {
				least[c] = max(least[c], utf8.RuneCountInString(word))
			}
		}
		whole += widths[c]
	}
	for whole > textWidth {
		widest := -1
		for c := range columns {
			if !columns[c].Number && widths[c] > least[c] && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		narrower := max(least[widest], widths[widest]-(whole-textWidth))
		whole, widths[widest] = whole-widths[widest]+narrower, narrower
	}
	return widths
}

// row writes the cells of a row side by side, each in as many lines as it needs.
func (t *text) row(columns []Column, widths []int, row []string) {
	cells := make([][]string, len(row))
	high := 1
	for c := range row {
		cells[c] = []string{row[c]}
		if utf8.RuneCountInString(row[c]) > widths[c] {
			cells[c] = wrapped(row[c], widths[c])
		}
		high = max(high, len(cells[c]))
	}
	for i := range high {
		var line strings.Builder
		for c := range cells {
			cell := ""
			if i < len(cells[c]) {
				cell = cells[c][i]
			}
			if c > 0 {
				line.WriteString("  ")
			}
			line.WriteString(padded(cell, widths[c], columns[c].Number))
		}
		t.line(line.String())
	}
}

// padded fills text with spaces.
func padded(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if right {
		return space + text
	}
	return text + space
}
