package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// blocks are the tables in a page: the line that says what of, and what is written below it.
// "figures: ENTRY FIGURE..." is a row for each cell with these figures; "section: ENTRY HEADING" is
// the first table below a heading of the report.
var blocks = regexp.MustCompile(
	`(?s)<!-- (figures|section): ([-A-Za-z0-9 ]+) -->\n.*?<!-- end of the (?:figures|section) -->`)

// writeDocs fills the tables of docs/gallery/NAME.md from the reports of the entries, and puts
// these beside it, as reports/NAME.md.
func (g *gallery) writeDocs(docs string, chosen []entry) error {
	for _, e := range chosen {
		r, err := readReport(g.file(e, ".json"))
		if err != nil {
			return err
		}
		whole, err := os.ReadFile(g.file(e, ".md"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(docs, "reports", e.name+".md"), whole, 0o644); err != nil {
			return err
		}
		page := filepath.Join(docs, e.page()+".md")
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		filled := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
			kind := blocks.FindStringSubmatch(block)[1]
			words := strings.Fields(blocks.FindStringSubmatch(block)[2])
			if words[0] != e.name { // another entry of the same page
				return block
			}
			head, _, _ := strings.Cut(block, "\n")
			table := r.table(words[1:])
			if kind == "section" {
				table = tableBelow(strings.Join(words[1:], " "), string(whole))
			}
			return head + "\n" + table + "<!-- end of the " + kind + " -->"
		})
		if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// table has a row for each cell of an experiment, or each fault, with the figures named: their
// medians, and the change against the baseline.
func (r *report) table(figures []string) string {
	var b strings.Builder
	var rows []string
	for _, f := range r.Figures {
		// the figures of a single run come after those of its cell
		ofRun := strings.HasPrefix(f.Of, "run ")
		if slices.Contains(figures, f.Name) && f.Of != "" && !ofRun && !slices.Contains(rows, f.Of) {
			rows = append(rows, f.Of)
		}
	}
	fmt.Fprintf(&b, "| | %s |\n|%s\n", strings.Join(figures, " | "),
		strings.Repeat(" --- |", len(figures)+1))
	for _, of := range rows {
		fmt.Fprintf(&b, "| %s", strings.ReplaceAll(of, ",", ", "))
		for _, name := range figures {
			fmt.Fprintf(&b, " | %s", r.entryOf(name, of))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// entryOf is a figure of a cell in words, with its change against the cell's baseline, if it has
// another one than itself and the change an interval.
func (r *report) entryOf(name, of string) string {
	text, err := figure(name, of)(r)
	if err != nil {
		return "-"
	}
	i := slices.IndexFunc(r.Comparisons, func(c comparisons.Comparison) bool {
		return c.Cell == of &&
			c.Figure == name && c.Baseline != of
	})
	// of single runs, or of too few
	if i < 0 || r.Comparisons[i].Unit == result.UnitCount || r.Comparisons[i].Change == nil {
		return text
	}
	change, ok := changed(&r.Comparisons[i])
	if !ok {
		return text
	}
	return text + " (" + change + ")"
}

// tableBelow is the first table below a heading of a report in Markdown; "" = there is none.
func tableBelow(heading, markdown string) string {
	_, section, _ := strings.Cut(markdown, "\n### "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n### ")
	_, table, found := strings.Cut(section, "\n|")
	if !found {
		return ""
	}
	table, _, _ = strings.Cut(table, "\n\n")
	return "|" + table + "\n"
}
