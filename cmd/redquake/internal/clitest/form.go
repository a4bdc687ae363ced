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

// IsForm checks that a report has its form, and what it is of.
func IsForm(t *testing.T, form, text, name string) {
	t.Helper()
	ok := strings.Contains(text, name)
	switch form {
	case "html":
		ok = ok && strings.HasPrefix(text, "<!doctype html>")
	case "markdown":
		ok = ok && strings.HasPrefix(text, "## ")
	case "json":
		var d report.Document
		ok = ok && json.Unmarshal([]byte(text), &d) == nil && d.Version == report.Version && len(d.Figures) > 0
	case "junit":
		var suites struct {
			Tests  int `xml:"tests,attr"`
			Suites []struct {
				Cases []struct{} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		ok = ok && xml.Unmarshal([]byte(text), &suites) == nil && suites.Tests > 0 && suites.Tests == len(suites.Suites[0].Cases)
	case "text":
		ok = ok && regexp.MustCompile(`^(Pass|Fail|Inconclusive|Running): `).MatchString(text) && !strings.ContainsAny(text, "\u00a0\x1b")
	case "csv":
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		ok = ok && err == nil && len(rows) > 5 && rows[0][0] == "kind"
	}
	if !ok {
		t.Errorf("this is no %s of %s:\n%.600s", form, name, text)
	}
}
