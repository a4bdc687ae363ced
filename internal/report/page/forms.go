package page

import (
	"io"
	"slices"

	"github.com/redquake/redquake/internal/report"
)

// Form is a form of a report as a file.
type Form struct {
	Name, Extension, ContentType string
	Write                        func(io.Writer, *report.Document) error
}

// Forms are the forms of reports.
var Forms = []Form{
	{"markdown", ".md", "text/markdown; charset=utf-8", report.WriteMarkdown},
	{"html", ".html", "text/html; charset=utf-8", Write},
	{"json", ".json", "application/json", report.WriteJSON},
	{"junit", ".xml", "application/xml", report.WriteJUnit},
	{"csv", ".csv", "text/csv; charset=utf-8", report.WriteCSV},
	{"text", ".txt", "text/plain; charset=utf-8", report.WriteText},
}

// FormNamed is the form of a name; nil = there is none.
func FormNamed(name string) *Form {
	i := slices.IndexFunc(Forms, func(f Form) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &Forms[i]
}

// FormNames are the names of Forms.
func FormNames() (names []string) {
	for _, f := range Forms {
		names = append(names, f.Name)
	}
	return names
}
