// Package prometheustest runs a real Prometheus in tests, and reads the dashboards and rules of
// config/components.
package prometheustest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/installed"
)

// Query is a query of a dashboard or of a rule.
type Query struct {
	From string // the file and the panel, annotation or alert
	Expr string
}

// With replaces the variables of Grafana: everything is selected, and rates are over an interval
// such as 15s, long ones over span.
func (q Query) With(interval, span string) string {
	return strings.NewReplacer("$__rate_interval", interval, "$__range", span, "$namespace", ".*",
		"$loadtest", ".*",
		"$experiment", ".*", "$schedule", ".*").Replace(q.Expr)
}

// Dashboard is what tests read of a dashboard of Grafana.
type Dashboard struct {
	UID, Title, File string
	Annotations      struct{ List []Annotation }
	Panels           []Panel
	Templating       struct{ List []Variable }
}

// Annotation marks instants in every panel.
type Annotation struct {
	Name, Expr      string
	UseValueForTime bool
}

// Panel is a panel of a dashboard.
type Panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ RefID, Expr string }
}

// Variable is a variable of a dashboard.
type Variable struct{ Name, Type, Definition string }

// Queries are all queries of a dashboard, also those of its annotations.
func (d *Dashboard) Queries() []Query {
	var all []Query
	for _, a := range d.Annotations.List {
		all = append(all, Query{d.File + ": annotation " + a.Name, a.Expr})
	}
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, Query{fmt.Sprintf("%s: panel %s, %s", d.File, p.Title, t.RefID), t.Expr})
		}
	}
	return all
}

// Dashboards reads all dashboards. root is the repository, from the test's folder.
func Dashboards(t testing.TB, root string) []Dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "components", "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards in %s: %v", root, err)
	}
	all := make([]Dashboard, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &all[i])
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[i].File = filepath.Base(file)
	}
	return all
}

// Rules are the groups of rules, and the same as a file that Prometheus reads.
type Rules struct {
	Groups []struct {
		Name  string
		Rules []Rule
	}
	File string
}

// Rule is an alert.
type Rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// ReadRules reads the PrometheusRule. root is the repository, from the test's folder.
func ReadRules(t testing.TB, root string) Rules {
	t.Helper()
	var object struct{ Spec json.RawMessage }
	text, err := os.ReadFile(filepath.Join(root, "config", "components", "prometheus", "rules.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &struct {
			APIVersion, Kind string
			Metadata         any
			Spec             *json.RawMessage
		}{Spec: &object.Spec})
	}
	var rules Rules
	if err == nil {
		err = yaml.Unmarshal(object.Spec, &rules)
	}
	rules.File = filepath.Join(t.TempDir(), "rules.yaml")
	if err == nil {
		err = os.WriteFile(rules.File, object.Spec, 0o600) // JSON is YAML
	}
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// Queries are the expressions of all alerts.
func (r Rules) Queries() []Query {
	var all []Query
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			all = append(all, Query{"rules.yaml: " + rule.Alert + " " + rule.Labels["cause"], rule.Expr})
		}
	}
	return all
}

// Server is a running Prometheus.
type Server struct {
	URL     string
	Process *os.Process
}

// Start starts prometheus or prometheus3 with a configuration and further flags. It ends with the
// test.
func Start(t testing.TB, program, config string, flags ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	err := os.WriteFile(file, []byte(config), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	server := exec.Command(installed.Program(t, program), append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + address,
	}, flags...)...)
	var log strings.Builder
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s: %s", program, log.String())
		}
	})
	return &Server{"http://" + address, server.Process}
}

// Ask evaluates a query, and returns the number of series with a value in the result. What it
// answers is of one instant, between two scrapes or after one that was missed: a test asks within
// an await, or by Has and HasNot.
func (s *Server) Ask(query string) (series int, err error) {
	response, err := http.PostForm(s.URL+"/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, fmt.Errorf("%s", answer.Error)
	}
	return len(answer.Data.Result), nil
}

// Has waits until a query has a result. what says where it is from.
func (s *Server) Has(t testing.TB, what, query string) {
	t.Helper()
	await.Until(t, what+" has a result", func() error {
		n, err := s.Ask(query)
		if err == nil {
			err = await.That(n > 0, "%d results: %s", n, query)
		}
		return err
	})
}

// HasNot waits until a query that Prometheus can evaluate has no result.
func (s *Server) HasNot(t testing.TB, what, query string) {
	t.Helper()
	await.Until(t, what+" has no result", func() error {
		n, err := s.Ask(query)
		if err == nil {
			err = await.That(n == 0, "%d results: %s", n, query)
		}
		return err
	})
}
