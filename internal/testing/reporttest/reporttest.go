// Package reporttest checks reports in all their forms.
package reporttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
	"github.com/redquake/redquake/internal/testing/golden"
)

// Forms are all forms of a report, by the endings of their files: html, md, json, csv and xml.
func Forms(t testing.TB, d *report.Document) map[string]string {
	t.Helper()
	all := map[string]string{}
	for extension, write := range map[string]func(*strings.Builder) error{
		"html": func(b *strings.Builder) error { return page.Write(b, d) },
		"md":   func(b *strings.Builder) error { return report.WriteMarkdown(b, d) },
		"json": func(b *strings.Builder) error { return report.WriteJSON(b, d) },
		"csv":  func(b *strings.Builder) error { return report.WriteCSV(b, d) },
		"xml":  func(b *strings.Builder) error { return report.WriteJUnit(b, d) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		all[extension] = b.String()
	}
	return all
}

// Golden compares text with a file of testdata; of a page without its styles and its script, which all pages have.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	_, rest, isPage := strings.Cut(got, "<main")
	if isPage && strings.HasSuffix(name, ".html") {
		body, _, _ := strings.Cut(rest, "</main>")
		got = "<main" + body + "</main>\n"
	}
	golden.Compare(t, filepath.Join("testdata", name), got)
}

// Schema is the one of docs/report.schema.json, which it reads from the folder of a package below internal/report.
func Schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile("../../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// Decoded is JSON, decoded.
func Decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Page writes the page of a report into a file.
func Page(t testing.TB, d *report.Document) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "report.html")
	err := os.WriteFile(file, []byte(Forms(t, d)["html"]), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
