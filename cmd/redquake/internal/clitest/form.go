package clitest

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"regexp"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/report"
)

// forms are whether a text has the form of a report.
var forms = map[string]func(text string) bool{
	"html":     func(text string) bool { return strings.HasPrefix(text, "<!doctype html>") },
	"markdown": func(text string) bool { return strings.HasPrefix(text, "## ") },
	"json": func(text string) bool {
		var d report.Document
		return json.Unmarshal([]byte(text), &d) == nil && d.Version == report.Version &&
			len(d.Figures) > 0
	},
	"junit": func(text string) bool {
		var suites struct {
			Tests  int `xml:"tests,attr"`
			Suites []struct {
				Cases []struct{} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		return xml.Unmarshal([]byte(text), &suites) == nil && suites.Tests > 0 &&
			suites.Tests == len(suites.Suites[0].Cases)
	},
	"text": func(text string) bool {
		return regexp.MustCompile(`^(Pass|Fail|Inconclusive|Running): `).MatchString(text) &&
			!strings.ContainsAny(text, "\u00a0\x1b")
	},
	"csv": func(text string) bool {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		return err == nil && len(rows) > 5 && rows[0][0] == "kind"
	},
}

// IsForm checks that a report has its form, and what it is of.
func IsForm(t *testing.T, form, text, name string) {
	t.Helper()
	if is := forms[form]; is == nil || !is(text) || !strings.Contains(text, name) {
		t.Errorf("this is no %s of %s:\n%.600s", form, name, text)
	}
}
