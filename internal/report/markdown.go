package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes a report for a pull request's comment: verdict, finding and figures, and the
// rest folded.
func WriteMarkdown(w io.Writer, d *Document) error {
	var m markdown
	m.head(d)
	m.table(d.headlines())
	objectives, met := d.objectiveTable()
	m.table(objectives)
	if met != "" {
		m.line("%s\n", met)
	}
	if len(d.Doubts) > 0 {
		m.line("**Doubts**: reasons why the figures are inconclusive.\n")
		for _, doubt := range d.Doubts {
			m.line("- **%s**%s: %s", escaped(doubt.Reason), escaped(of(doubt.Of)), escaped(doubt.Message))
		}
		m.line("")
	}
	m.sections(d, true)
	m.line("<details><summary>Details</summary>\n")
	m.sections(d, false)
	m.notes(d)
	if d.Specification != "" {
		fence := fenceFor(d.Specification)
		m.line("\n### Specification\n\n%syaml\n%s\n%s", fence, strings.TrimRight(d.Specification, "\n"),
			fence)
	}
	m.line("\n</details>")
	return written(w, m.String())
}

// WriteMarkdownParts writes the sections and notes of a report, without what it says of the whole.
func WriteMarkdownParts(w io.Writer, d *Document) error {
	var m markdown
	m.sections(d, true)
	m.sections(d, false)
	m.notes(d)
	return written(w, m.String())
}

// written writes the text of a report.
func written(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type markdown struct{ strings.Builder }

// sections writes those that lead, or the others.
func (m *markdown) sections(d *Document, leading bool) {
	for i := range d.Sections {
		if s := &d.Sections[i]; s.Leading == leading {
			m.section(s)
		}
	}
}

func (m *markdown) notes(d *Document) {
	for _, note := range d.Notes {
		m.line("- %s", escaped(note))
	}
}

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(m, format+"\n", args...)
}

var verdictSigns = map[Verdict]string{
	Pass:         "✅ Pass",
	Fail:         "❌ Fail",
	Inconclusive: "❔ Inconclusive",
}

func (m *markdown) head(d *Document) {
	verdict := verdictSigns[d.Verdict]
	if verdict == "" {
		verdict = string(d.State)
	}
	m.line("## %s: %s\n", verdict, escaped(d.subject()))
	m.line("**%s**\n", escaped(d.Finding.String()))
	for _, text := range []string{d.Reason, d.Done.String()} {
		if text != "" {
			m.line("%s\n", escaped(text))
		}
	}
}

var kindNames = map[Kind]string{
	LoadTest:   "load test",
	Fault:      "fault",
	Experiment: "experiment",
	Schedule:   "schedule",
	Comparison: "comparison",
}

// subject is what a report is about: its kind and its name.
func (d *Document) subject() string {
	return kindNames[d.Kind] + " " + strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")
}

// KindName is the name of a kind in a sentence.
func (d *Document) KindName() string {
	return kindNames[d.Kind]
}

// headlines are the figures at the top, with their limits.
func (d *Document) headlines() *Table {
	t := &Table{Columns: []Column{{Title: "Figure"}, {Title: "Value", Number: true}, {Title: "Limit"}}}
	for i := range d.Figures {
		f := &d.Figures[i]
		if !f.Headline {
			continue
		}
		limit := ""
		if f.Limit != nil {
			limit = InUnit(f.Unit, *f.Limit) + " " + judgedWords[f.Judged]
			if f.Counted != nil {
				limit += ", counted " + InUnit(f.Unit, *f.Counted)
			}
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: f.Label}, {Text: f.String()}, {Text: limit}}})
	}
	return t
}

var judgedWords = map[Judged]string{
	Met:       "✓ met",
	Missed:    "✗ missed",
	NotJudged: "? not judged",
}

// objectiveTable is what became of the objectives. Of many those that are met are only counted, in
// a sentence; otherwise that is empty.
func (d *Document) objectiveTable() (t *Table, counted string) {
	t = &Table{
		Columns: []Column{
			{Title: "Objective"},
			{Title: "Actual", Number: true},
			{Title: "Limit", Number: true},
			{Title: "Verdict"},
		},
	}
	met := 0
	for i := range d.Objectives {
		o := &d.Objectives[i]
		if o.Judged == Met && len(d.Objectives) > objectivesShown {
			met++
			continue
		}
		actual := "not measured"
		if o.Actual != nil {
			actual = InUnit(o.Unit, *o.Actual)
		}
		t.Rows = append(t.Rows, Row{
			Cells: []Cell{
				{Text: o.Name + of(o.Of)},
				{Text: actual},
				{Text: InUnit(o.Unit, o.Limit)},
				{Text: judgedWords[o.Judged]},
			},
		})
	}
	if met > 0 {
		counted = fmt.Sprintf("%d of %d objectives are met.", met, len(d.Objectives))
	}
	return t, counted
}

// objectivesShown is up to how many objectives are listed where they are met: an experiment has one
// for each comparison.
const objectivesShown = 8

func of(what string) string {
	if what == "" {
		return ""
	}
	return " of " + what
}

// isText reports whether a section has something to say in the forms without drawings, and is not
// said elsewhere.
func (s *Section) isText() bool {
	return !s.Unfit && !s.Derived && len(s.Tables)+len(s.Facts)+len(s.Finding) > 0
}

func (m *markdown) section(s *Section) {
	if !s.isText() {
		return
	}
	m.line("### %s\n", escaped(s.Title))
	if len(s.Finding) > 0 {
		m.line("%s\n", s.Finding.markdown())
	}
	for _, f := range s.Facts {
		m.line("- %s: %s", escaped(f.Name), escaped(f.text()))
	}
	if len(s.Facts) > 0 {
		m.line("")
	}
	for i := range s.Tables {
		m.table(&s.Tables[i])
	}
	if s.Note != "" {
		m.line("%s\n", escaped(s.Note))
	}
}

// written is a table as text: without the columns in which there are only drawings, or nothing.
func (t *Table) written() (columns []Column, rows [][]string) {
	rows = make([][]string, len(t.Rows))
	for c, column := range t.Columns {
		if len(t.Rows) > 0 &&
			!slices.ContainsFunc(t.Rows, func(r Row) bool {
				return r.Cells[c].Text != "" ||
					r.Cells[c].Judged != ""
			}) {
			continue
		}
		columns = append(columns, column)
		for i := range t.Rows {
			rows[i] = append(rows[i], t.Rows[i].Cells[c].marked())
		}
	}
	return columns, rows
}

// tableRows is how many rows of a table Markdown has at most: a comment may have 65,536 characters.
const tableRows = 60

// marked is the text of a cell, behind a sign of what it says.
func (c *Cell) marked() string {
	sign := map[Judged]string{
		Met:       "✓ ",
		Missed:    "✗ ",
		NotJudged: "? ",
	}[c.Judged]
	if sign != "" {
		return sign + c.Text
	}
	return c.Text
}

// table writes a table; nothing without rows.
func (m *markdown) table(t *Table) {
	columns, rows := t.written()
	if len(rows) == 0 {
		return
	}
	if t.Caption != "" {
		m.line("%s\n", escaped(t.Caption))
	}
	for _, c := range columns {
		m.WriteString("| " + escaped(c.Title) + " ")
	}
	m.WriteString("|\n")
	for _, c := range columns {
		m.WriteString(map[bool]string{true: "| ---: ", false: "| --- "}[c.Number])
	}
	m.WriteString("|\n")
	for _, r := range rows[:min(len(rows), tableRows)] {
		for _, cell := range r {
			m.WriteString("| " + escaped(cell) + " ")
		}
		m.WriteString("|\n")
	}
	m.WriteByte('\n')
	if more := len(rows) - tableRows; more > 0 {
		m.line("%s more rows are in the other forms of the report.\n", Count(more))
	}
}

func (p Prose) markdown() string {
	var b strings.Builder
	for _, s := range p {
		text := escaped(s.Text)
		if (s.Strong || s.Damage || s.Owner != "") && strings.TrimSpace(text) == text && text != "" {
			text = "**" + text + "**"
		}
		b.WriteString(text)
	}
	return b.String()
}

// escaped is text of which nothing is markup: no emphasis, no link, no mention, no HTML, one line.
func escaped(text string) string {
	return markdownEscapes.Replace(printable(text, '\u00a0'))
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "[", `\[`, "]", `\]`,
	"*", `\*`, "_", `\_`, "~", `\~`, "@", "@\u200b", "#", `\#`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "://", ":&#47;&#47;", "www.", "www&#46;")

// fenceFor is a fence that does not occur in a text.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
