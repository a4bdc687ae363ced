package report

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a report for a pull request's comment: verdict, finding and figures, and the rest folded.
func WriteMarkdown(w io.Writer, d *Document) error {
	var m markdown
	m.head(d)
	m.figures(d)
	m.objectives(d)
	if len(d.Doubts) > 0 {
		m.line("**Doubts**: reasons why the figures are inconclusive.\n")
		for _, doubt := range d.Doubts {
			m.line("- **%s**%s: %s", escaped(doubt.Reason), escaped(of(doubt.Of)), escaped(doubt.Message))
		}
		m.line("")
	}
	m.line("<details><summary>Details</summary>\n")
	for i := range d.Sections {
		m.section(&d.Sections[i])
	}
	for _, note := range d.Notes {
		m.line("- %s", escaped(note))
	}
	if d.Specification != "" {
		fence := fenceFor(d.Specification)
		m.line("\n### Specification\n\n%syaml\n%s\n%s", fence, strings.TrimRight(d.Specification, "\n"), fence)
	}
	m.line("\n</details>")
	if _, err := io.WriteString(w, m.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

var verdictSigns = map[Verdict]string{Pass: "✅ Pass", Fail: "❌ Fail", Inconclusive: "❔ Inconclusive"}

func (m *markdown) head(d *Document) {
	verdict := verdictSigns[d.Verdict]
	if verdict == "" {
		verdict = string(d.State)
	}
	m.line("## %s: %s %s\n", verdict, kindNames[d.Kind], escaped(strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")))
	m.line("**%s**\n", escaped(d.Finding.String()))
	for _, text := range []string{d.Reason, d.Done.String()} {
		if text != "" {
			m.line("%s\n", escaped(text))
		}
	}
}

var kindNames = map[Kind]string{LoadTest: "load test", Fault: "fault", Experiment: "experiment", Comparison: "comparison"}

// KindName is the name of a kind in a sentence.
func (d *Document) KindName() string { return kindNames[d.Kind] }

func (m *markdown) figures(d *Document) {
	var rows [][]string
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
		rows = append(rows, []string{f.Label, strings.TrimSpace(f.Text() + " " + f.Beside()), limit})
	}
	m.table([]string{"Figure", "Value", "Limit"}, []bool{false, true, false}, rows)
}

var judgedWords = map[Judged]string{Met: "✓ met", Missed: "✗ missed", NotJudged: "? not judged"}

func (m *markdown) objectives(d *Document) {
	var rows [][]string
	for i := range d.Objectives {
		o := &d.Objectives[i]
		actual := "not measured"
		if o.Actual != nil {
			actual = InUnit(o.Unit, *o.Actual)
		}
		rows = append(rows, []string{o.Name + of(o.Of), actual, InUnit(o.Unit, o.Limit), judgedWords[o.Judged]})
	}
	m.table([]string{"Objective", "Actual", "Limit", "Verdict"}, []bool{false, true, true, false}, rows)
}

func of(what string) string {
	if what == "" {
		return ""
	}
	return " of " + what
}

func (m *markdown) section(s *Section) {
	if s.Unfit || s.Derived || len(s.Tables)+len(s.Facts)+len(s.Finding) == 0 {
		return
	}
	m.line("### %s\n", escaped(s.Title))
	if len(s.Finding) > 0 {
		m.line("%s\n", s.Finding.markdown())
	}
	for _, f := range s.Facts {
		m.line("- %s: %s", escaped(f.Name), escaped(strings.TrimSpace(f.Value+" "+f.Detail)))
	}
	if len(s.Facts) > 0 {
		m.line("")
	}
	for i := range s.Tables {
		m.tableOf(&s.Tables[i])
	}
	if s.Note != "" {
		m.line("%s\n", escaped(s.Note))
	}
}

// tableOf writes a table without the columns that only a drawing is in.
func (m *markdown) tableOf(t *Table) {
	var head []string
	var right, used []bool
	for c, column := range t.Columns {
		drawn := len(t.Rows) > 0
		for _, r := range t.Rows {
			drawn = drawn && r.Cells[c].Text == "" && r.Cells[c].Judged == ""
		}
		used = append(used, !drawn)
		if !drawn {
			head, right = append(head, column.Title), append(right, column.Number)
		}
	}
	if t.Caption != "" {
		m.line("%s\n", escaped(t.Caption))
	}
	var rows [][]string
	for _, r := range t.Rows {
		var row []string
		for c := range r.Cells {
			if used[c] {
				row = append(row, r.Cells[c].markdown())
			}
		}
		rows = append(rows, row)
	}
	m.table(head, right, rows)
}

func (c *Cell) markdown() string {
	if sign := map[Judged]string{Met: "✓ ", Missed: "✗ ", NotJudged: "? "}[c.Judged]; sign != "" {
		return sign + c.Text
	}
	return c.Text
}

// table writes a table; nothing without rows.
func (m *markdown) table(head []string, right []bool, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	line := func(cells []string) {
		for _, cell := range cells {
			m.WriteString("| " + escaped(cell) + " ")
		}
		m.WriteString("|\n")
	}
	line(head)
	for _, r := range right {
		if r {
			m.WriteString("| ---: ")
		} else {
			m.WriteString("| --- ")
		}
	}
	m.WriteString("|\n")
	for _, r := range rows {
		line(r)
	}
	m.WriteByte('\n')
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
	return markdownEscapes.Replace(text)
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "[", `\[`, "]", `\]`, "*", `\*`, "_", `\_`, "~", `\~`, "@", "@\u200b", "#", `\#`,
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "://", ":&#47;&#47;", "www.", "www&#46;", "\n", " ", "\r", " ")

// fenceFor is a fence that does not occur in a text.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}
