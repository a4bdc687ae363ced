package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// object is a finished load test in docs/objects.
func object(t *testing.T, path string) *v1alpha1.RedisLoadTest {
	t.Helper()
	test := &v1alpha1.RedisLoadTest{}
	if err := yaml.UnmarshalStrict([]byte(read(t, path)), test); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return test
}

// Each workload has an object of a real run, which the page of the workloads links to.
func TestObjects(t *testing.T) {
	files, err := filepath.Glob("objects/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, seen := read(t, "docs/workloads.md"), map[string]bool{}
	for _, file := range files {
		test := object(t, filepath.Join("docs", file))
		w, s := &test.Spec.Workload, test.Status.Summary
		for kind, is := range map[string]bool{
			"commands": w.Commands != nil, "benchmark": w.Benchmark != nil, "ranking": w.Ranking != nil,
			"rateLimiter": w.RateLimiter != nil, "http": w.HTTP != nil,
			"cacheAside on PostgreSQL":   w.CacheAside != nil && w.CacheAside.Database.Driver == v1alpha1.DatabasePostgres,
			"cacheAside on MariaDB":      w.CacheAside != nil && w.CacheAside.Database.Driver == v1alpha1.DatabaseMySQL,
			"cacheAside, database alone": w.CacheAside != nil && w.CacheAside.Mode == v1alpha1.CacheAsideDatabaseOnly,
		} {
			seen[kind] = seen[kind] || is
		}
		if !meta.IsStatusConditionTrue(test.Status.Conditions, v1alpha1.ConditionComplete) ||
			test.Status.Verdict != v1alpha1.VerdictPass ||
			s == nil || s.Requests == 0 || len(s.Operations) == 0 || test.Status.Bottleneck == nil {
			t.Errorf("%s: the run has not passed, or lacks a figure", file)
		}
		if !strings.Contains(page, "]("+file+")") {
			t.Errorf("docs/workloads.md does not link to %s", file)
		}
	}
	for kind, is := range seen {
		if !is {
			t.Errorf("there is no object of %s", kind)
		}
	}
	if len(seen) == 0 {
		t.Error("there is no object")
	}
}

// objectQuote is a block that quotes fields of the status of an object.
var objectQuote = regexp.MustCompile("(?m)^<!-- status of (\\S+): ([^>]*) -->\n```yaml\n((?:.*\n)*?)```$")

// Blocks that quote an object hold what the object holds. With REDQUAKE_DOCS_QUOTE they are written anew.
func TestQuotedObjects(t *testing.T) {
	quoted := 0
	for _, p := range pages(t) {
		text := objectQuote.ReplaceAllStringFunc(p.Text, func(block string) string {
			m := objectQuote.FindStringSubmatch(block)
			quoted++
			return "<!-- status of " + m[1] + ": " + m[2] + " -->\n```yaml\n" + quote(t, m[1], strings.Fields(m[2])) + "```"
		})
		if text == p.Text {
			continue
		}
		if os.Getenv("REDQUAKE_DOCS_QUOTE") == "" {
			t.Errorf("%s quotes objects that are different now; `make objects` writes both", p.Path)
		} else if err := os.WriteFile(filepath.Join(root, p.Path), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	if quoted < 6 {
		t.Errorf("only %d quotes were found", quoted)
	}
}

// quote is the fields of an object's status as YAML, a line for each field, and for each item of a list. Fields with
// the same parent follow each other.
func quote(t *testing.T, path string, fields []string) string {
	t.Helper()
	status, err := json.Marshal(object(t, path).Status)
	if err != nil {
		t.Fatal(err)
	}
	out, parent := "status:\n", ""
	for _, field := range fields {
		value, indent := json.RawMessage(status), "  "
		steps := strings.Split(field, ".")
		if len(steps) == 1 {
			parent = ""
		}
		for i, step := range steps {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(value, &members); err != nil || members[step] == nil {
				t.Fatalf("%s has no %s (%v)", path, field, err)
			}
			value = members[step]
			if at := strings.Join(steps[:i+1], "."); i < len(steps)-1 {
				if at != parent {
					out += indent + step + ":\n"
				}
				parent, indent = at, indent+"  "
			}
		}
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			out += indent + steps[len(steps)-1] + ": " + flow(value) + "\n"
			continue
		}
		out += indent + steps[len(steps)-1] + ":\n"
		for _, item := range items {
			out += indent + "- " + flow(item) + "\n"
		}
	}
	return out
}

var (
	jsonKey  = regexp.MustCompile(`([{,])"(\w+)":`)
	jsonWord = regexp.MustCompile(`: "([A-Za-z]+|-?[0-9.]+(?:us|ms|s))"`)
	nextItem = regexp.MustCompile(`([}\w"]),([{\w"])`)
)

// flow is JSON as people write it in YAML.
func flow(value json.RawMessage) string {
	keys := jsonKey.ReplaceAllString(string(value), "$1$2: ")
	return nextItem.ReplaceAllString(jsonWord.ReplaceAllString(keys, ": $1"), "$1, $2")
}

func TestFlow(t *testing.T) {
	const in = `{"name":"set","latency":{"p50":"5.74ms","max":2,"mean":"2"},"list":[{"a":"b, c"},{"a":""}]}`
	if got, want := flow(json.RawMessage(in)),
		`{name: set, latency: {p50: 5.74ms, max: 2, mean: "2"}, list: [{a: "b, c"}, {a: ""}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
