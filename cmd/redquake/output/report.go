package output

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
)

// ReportForms are the forms of a report, and the extensions of files that have them.
var ReportForms = []struct{ Name, Extension string }{
	{"markdown", ".md"},
	{"html", ".html"},
	{"json", ".json"},
	{"junit", ".xml"},
	{"csv", ".csv"},
	{"text", ".txt"},
}

// WriteReport writes a report in a form, which is one of FormNames.
func WriteReport(w io.Writer, form string, d *report.Document) error {
	switch form {
	case "html":
		return page.Write(w, d)
	case "json":
		return report.WriteJSON(w, d)
	case "junit":
		return report.WriteJUnit(w, d)
	case "csv":
		return report.WriteCSV(w, d)
	case "text":
		return report.WriteText(w, d)
	}
	return report.WriteMarkdown(w, d)
}

// FormOf is the form of a report by the extension of its file. An extension that has none is an
// error.
func FormOf(path string) (string, error) {
	extension := strings.ToLower(filepath.Ext(path))
	var known []string
	for _, f := range ReportForms {
		if f.Extension == extension {
			return f.Name, nil
		}
		known = append(known, f.Extension)
	}
	return "", fmt.Errorf("the extension of %s must be one of %s, which says what form the report has",
		path, strings.Join(known, ", "))
}

// FormNames are the names of ReportForms.
func FormNames() (names []string) {
	for _, f := range ReportForms {
		names = append(names, f.Name)
	}
	return names
}
