package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/result"
)

// blocks are the tables in a page: the line that says what of, and what is written below it.
var blocks = regexp.MustCompile(`(?s)<!-- figures: ([-A-Za-z0-9 ]+) -->\n.*?<!-- end of the figures -->`)

// writeDocs fills the tables of docs/gallery/NAME.md from the reports of the entries.
func (g *gallery) writeDocs(docs string, chosen []entry) error {
	for _, e := range chosen {
		r, err := readReport(g.file(e, ".json"))
		if err != nil {
			return err
		}
		page := filepath.Join(docs, e.page()+".md")
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		filled := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
			words := strings.Fields(blocks.FindStringSubmatch(block)[1])
			if words[0] != e.name { // another entry of the same page
				return block
			}
			head, _, _ := strings.Cut(block, "\n")
			return head + "\n" + r.table(words[1:]) + "<!-- end of the figures -->"
		})
		if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// table has a row for each cell of an experiment, or each fault, with the figures named: their medians, and the change against the baseline.
func (r *report) table(figures []string) string {
	var b strings.Builder
	var rows []string
	for _, f := range r.Figures {
		ofRun := strings.HasPrefix(f.Of, "run ") // the figures of a single run come after those of its cell
		if slices.Contains(figures, f.Name) && f.Of != "" && !ofRun && !slices.Contains(rows, f.Of) {
			rows = append(rows, f.Of)
		}
	}
	fmt.Fprintf(&b, "| | %s |\n|%s\n", strings.Join(figures, " | "), strings.Repeat(" --- |", len(figures)+1))
	for _, of := range rows {
		fmt.Fprintf(&b, "| %s", strings.ReplaceAll(of, ",", ", "))
		for _, name := range figures {
			fmt.Fprintf(&b, " | %s", r.entryOf(name, of))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// entryOf is a figure of a cell in words, with its change against the cell's baseline, if it has another one than itself.
func (r *report) entryOf(name, of string) string {
	text, err := figure(name, of)(r)
	if err != nil {
		return "-"
	}
	i := slices.IndexFunc(r.Comparisons, func(c result.Comparison) bool { return c.Cell == of && c.Figure == name && c.Baseline != of })
	if i < 0 || r.Comparisons[i].Unit == result.UnitCount {
		return text
	}
	change, ok := changed(&r.Comparisons[i])
	if !ok {
		return text
	}
	return text + " (" + change + ")"
}
