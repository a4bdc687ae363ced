package docs_test

import (
	"bytes"
	"encoding/csv"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/comparisons"
)

// names are the words in code style of a text.
type names map[string]bool

var fieldName = regexp.MustCompile("`([A-Za-z0-9]+)`")

func namesIn(text string) names {
	found := names{}
	for _, m := range fieldName.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// fieldTable explains the fields of a type of package result, which <!-- fields of TYPE --> in front of it claims.
type fieldTable struct {
	named names // in the whole table
	// by each name in the first column: a type without a table of its own is explained in the row of the field that has it
	rows map[string]names
}

func fieldTables(text string) map[string]fieldTable {
	tables := map[string]fieldTable{}
	for _, m := range regexp.MustCompile(`(?s)<!-- fields of (\w+) -->\n(.*?)\n\n`).FindAllStringSubmatch(text, -1) {
		table := fieldTable{namesIn(m[2]), map[string]names{}}
		for line := range strings.Lines(m[2]) {
			for name := range namesIn(strings.SplitN(line, "|", 3)[1]) {
				table.rows[name] = namesIn(line)
			}
		}
		tables[m[1]] = table
	}
	return tables
}

// fieldCheck compares the JSON of types with the tables of a page.
type fieldCheck struct {
	t      *testing.T
	page   string
	tables map[string]fieldTable
	seen   map[string]bool // types with a table

	elsewhere reflect.Type // which another page explains; nil = none
}

// check checks the fields of a type; around explains it unless it has a table of its own. It returns the fields' names.
func (c *fieldCheck) check(of reflect.Type, around fieldTable) names {
	own, ok := c.tables[of.Name()]
	if ok {
		around = own
	}
	c.seen[of.Name()] = c.seen[of.Name()] || ok
	fields := names{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		isStruct := inner.Kind() == reflect.Struct && inner != reflect.TypeFor[report.Span]() &&
			strings.Contains(inner.PkgPath(), "redquake/internal/")
		switch {
		case f.Anonymous:
			maps.Copy(fields, c.check(inner, around))
			continue
		case name == "-":
			continue
		}
		if fields[name] = true; !around.named[name] {
			c.t.Errorf("%s: %s of %s is not explained", c.page, name, of)
		}
		if isStruct && inner != c.elsewhere {
			row, ok := around.rows[name]
			if !ok {
				row = around.named
			}
			c.check(inner, fieldTable{named: row})
		}
	}
	for name := range own.rows {
		if !fields[name] {
			c.t.Errorf("%s: %s has no field %s", c.page, of, name)
		}
	}
	return fields
}

// Every field of the JSON of `redquake load`, `results` and `compare`, and of a schedule's history, is explained, and
// every field that a table explains exists.
func TestResultFields(t *testing.T) {
	c := &fieldCheck{t, "docs/record.md", fieldTables(read(t, "docs/record.md")), map[string]bool{}, nil}
	c.check(reflect.TypeFor[result.Load](), fieldTable{})
	c.check(reflect.TypeFor[result.Fault](), fieldTable{})
	c.check(reflect.TypeFor[result.Course](), fieldTable{})
	c.check(reflect.TypeFor[comparisons.Comparisons](), fieldTable{})
	c.check(reflect.TypeFor[history.History](), fieldTable{})
	for name := range c.tables {
		if !c.seen[name] {
			t.Errorf("docs/record.md has a table of %s, which is in no result", name)
		}
	}
	if len(c.tables) < 5 {
		t.Errorf("only the tables of %v were found", c.seen)
	}
}

// Every field of the JSON of a report is explained, and every field that a table explains exists.
func TestReportFields(t *testing.T) {
	c := &fieldCheck{
		t,
		"docs/reports.md",
		fieldTables(read(t, "docs/reports.md")),
		map[string]bool{},
		reflect.TypeFor[comparisons.Comparison](),
	}
	c.check(reflect.TypeFor[report.Document](), fieldTable{})
	if len(c.tables) != 3 || len(c.seen) < 3 {
		t.Errorf("tables of %v, the report has %v", c.tables, c.seen)
	}
}

// The CSV has the columns that the page lists, in this order.
func TestResultColumns(t *testing.T) {
	var out bytes.Buffer
	if err := output.WriteCSV(&out, &result.Course{}); err != nil {
		t.Fatal(err)
	}
	header, err := csv.NewReader(&out).Read()
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(read(t, "docs/record.md"), "\n## CSV\n")
	section, _, _ = strings.Cut(section, "\n```")
	var listed []string
	for _, m := range fieldName.FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	if !slices.Equal(listed, header) {
		t.Errorf("docs/record.md lists the columns\n%q, the CSV has\n%q", listed, header)
	}
	if !slices.Contains(header, "drained") {
		t.Error("the CSV does not tell which successes came after the planned end")
	}
}
