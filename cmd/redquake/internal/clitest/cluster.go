package clitest

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Cluster serves the objects of namespace shop, and returns a kubeconfig for it.
func Cluster(t *testing.T, objects map[string]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var object any = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure,
			Reason:   metav1.StatusReasonNotFound,
			Code:     404,
			Message:  "not found",
		}
		if found, ok := objects[r.URL.Path]; ok {
			object = found
			if refused, is := found.(metav1.Status); is {
				w.WriteHeader(int(refused.Code))
			}
		} else {
			w.WriteHeader(http.StatusNotFound)
		}
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: %q}}],
		contexts: [{name: a, context: {cluster: c, namespace: shop}}, {name: b, context: {cluster: c, namespace: other}}]}`,
		server.URL)
	err := os.WriteFile(file, []byte(text), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

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
	is := forms[form]
	if is == nil || !is(text) || !strings.Contains(text, name) {
		t.Errorf("this is no %s of %s:\n%.600s", form, name, text)
	}
}

// LoadTestYAML is a file with a small load test.
const LoadTestYAML = `
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: checkout}
spec:
  target: {addresses: ["127.0.0.1:6379"]}
  load: {users: 10, duration: 30s}
  workload: {commands: [{name: get, command: [GET, "{key}"]}]}
`

// GapText is a gap with its bounds, rounded to 10 µs.
func GapText(g *result.Gap) string {
	if g == nil {
		return "no gap"
	}
	text := fmt.Sprintf("%v (%v to %v)", time.Duration(g.Length).Round(10*time.Microsecond),
		time.Duration(g.AtLeast).Round(10*time.Microsecond),
		time.Duration(g.AtMost).Round(10*time.Microsecond))
	if g.Of != "" {
		text = g.Of + " " + text
	}
	return text
}

// Result reads a result in JSON.
func Result(t *testing.T, text string) *result.Load {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	r := &result.Load{}
	if err := decoder.Decode(r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}
