package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redquake/redquake/internal/result"
)

func textOf(t *testing.T, d *Document) string {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Columns are aligned; a table that is too wide breaks its words, and never its figures.
func TestTextTables(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("seven words and then some more ", 8))
	d := &Document{
		Kind:      Fault,
		Namespace: "shop",
		Name:      "kill",
		Verdict:   Pass,
		Sections: []Section{{ID: "x", Title: "Title", Tables: []Table{{
			Columns: []Column{{Title: "Name"}, {Title: "Took", Number: true}, {Title: "Drawn"}, {Title: "Why"}},
			Rows: []Row{
				{Cells: []Cell{{Text: "a"}, {Text: "12" + nbsp + "ms"}, {Bar: &Bar{Share: 1}}, {Text: "short"}}},
				{Cells: []Cell{{Text: "longer"}, {Text: "7" + nbsp + "µs", Judged: Missed}, {}, {Text: words}}},
			},
		}}}},
	}
	text := textOf(t, d)
	want := "Pass: fault shop/kill\n\nTitle\nName      Took  Why\na        12 ms  short\nlonger  ✗ 7 µs  seven words"
	if !strings.HasPrefix(text, want) {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > textWidth {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if _, cell, _ := strings.Cut(text, "short"); !strings.Contains(strings.Join(strings.Fields(cell), " "), words) {
		t.Errorf("the cell is not %q but in %q", words, cell)
	}
}

// A table with words that are longer than a column can be made is wider than a terminal, and aligned nevertheless.
func TestTextKeepsLongWordsInTheirColumn(t *testing.T) {
	long := strings.Repeat("appendfsync=always,test=", 2)
	d := &Document{
		Kind:      Fault,
		Namespace: "shop",
		Name:      strings.Repeat("kill-the-primary-", 8),
		Verdict:   Pass,
		Sections: []Section{{ID: "x", Title: "Title", Tables: []Table{{
			Columns: []Column{{Title: "Cell"}, {Title: "Baseline"}, {Title: "Change", Number: true}},
			Rows: []Row{
				{Cells: []Cell{{Text: long + "set"}, {Text: long + "get and " + strings.Repeat("more words ", 9)}, {Text: "1"}}},
				{Cells: []Cell{{Text: "short"}, {Text: "short"}, {Text: "22"}}},
			},
		}}}},
	}
	lines := strings.Split(textOf(t, d), "\n")
	if want := "Pass: " + d.subject(); lines[0] != want {
		t.Errorf("the first line is %q, want %q", lines[0], want)
	}
	var ends []int
	for _, line := range lines[3:] {
		if strings.HasSuffix(line, "Change") || strings.HasSuffix(line, " 1") || strings.HasSuffix(line, "22") {
			ends = append(ends, utf8.RuneCountInString(line))
		}
	}
	if len(ends) != 3 || ends[0] != ends[1] || ends[1] != ends[2] {
		t.Errorf("the figures end in columns %v:\n%s", ends, strings.Join(lines, "\n"))
	}
}

// What others have named moves no cursor, and begins no line.
func TestTextIsPrintable(t *testing.T) {
	const evil = "x\x1b[2J\u202e\rPass: all is well\n\x00"
	d := &Document{
		Name:          evil,
		Verdict:       Fail,
		Reason:        evil,
		Finding:       Text(evil),
		Done:          Text(evil),
		Notes:         []string{evil},
		Doubts:        []Doubt{{Reason: evil, Of: evil, Message: evil}},
		Specification: evil,
		Objectives:    []Objective{{Name: evil}},
		Figures:       []Figure{{Label: evil, Headline: true, Qualifier: evil, Unit: result.UnitCount}},
		Sections: []Section{
			{
				Title:   evil,
				Finding: Text(evil),
				Note:    evil,
				Facts:   []Fact{{evil, evil, evil}},
				Tables:  []Table{{Caption: evil, Columns: []Column{{Title: evil}}, Rows: []Row{{Cells: []Cell{{Text: evil}}}}}},
			},
		},
	}
	text := textOf(t, d)
	if strings.ContainsAny(text, "\x1b\u202e\r\x00\u00a0") || strings.Contains(text, "\nPass") {
		t.Errorf("%q", text)
	}
}

// The sign of an uncertainty is written by one function: elsewhere no text has it, but for the note that explains it.
func TestOneWriterOfUncertainties(t *testing.T) {
	explains := []string{"internal/report/run/short.go"}
	var found []string
	for _, folder := range []string{"api", "cmd", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && strings.ContainsAny(l.Value, "±") {
					found = append(found, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := append([]string{"internal/format/uncertainty.go"}, explains...); !slices.Equal(found, want) {
		t.Errorf("± is written in %v, want %v", found, want)
	}
}
