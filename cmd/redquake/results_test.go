package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/result"
)

// checkTable checks the table of clitest.Record, with its fault if that is known.
func checkTable(t *testing.T, name string, code int, out, stderr string, withFault bool) {
	t.Helper()
	want := `Every 10 s
Since the start       UTC  OK/s  Errors  Share
0.0 s            04:00:00    10       0    0 %
10.0 s           04:00:10    10       0    0 %
20.0 s           04:00:20    10       0    0 %
`
	if withFault {
		want = `Every 10 s
Since the start       UTC  OK/s  Errors  Share  Faults
0.0 s            04:00:00    10       0    0 %
10.0 s           04:00:10    10       0    0 %  kill
20.0 s           04:00:20    10       0    0 %

Faults
Each has a report of its own.

Fault  Type        At         Outage           Dip  Recovery   Lost writes  Verdict
kill   PodKill  +12 s  1.5 s ± 50 ms  not measured       2 s  not measured  ✓ Pass
`
	}
	if code != cli.ExitOK || out != want || stderr != "" {
		t.Errorf("%s: exit code %d, stderr %q, stdout\n%swant\n%s", name, code, stderr, out, want)
	}
}

func TestResultsOfAFile(t *testing.T) {
	results, faults := clitest.RunObjects(t)
	for name, tt := range map[string]struct {
		text      string
		withFault bool
	}{
		"the record alone":         {string(clitest.Record(t)), false},
		"the ConfigMap":            {clitest.AsYAML(t, results), false},
		"several documents":        {clitest.AsYAML(t, append(faults, results)...), true},
		"a list, as kubectl saves": {clitest.AsYAML(t, clitest.AsList(append(faults, results)...)), true},
	} {
		file := filepath.Join(t.TempDir(), "run.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := called("redquake", "results", file)
		checkTable(t, name, code, out, stderr, tt.withFault)
		var stdout, diagnostics bytes.Buffer
		code = execute(t.Context(), []string{"redquake", "results", "-"}, cli.Streams{
			In:  strings.NewReader(tt.text),
			Out: &stdout,
			Err: &diagnostics,
		})
		checkTable(t, name+" from standard input", code, stdout.String(), diagnostics.String(), tt.withFault)
	}
}

func TestResultsForPrograms(t *testing.T) {
	results, faults := clitest.RunObjects(t)
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte(clitest.AsYAML(t, clitest.AsList(append(faults, results)...))),
		0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := called("redquake", "results", file, "-o", "json", "--every", "1s", "--operation", "set")
	var c result.Course
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, %v in\n%s", code, err, out)
	}
	if c.Version != 1 || len(c.Rows) != 30 || c.Rows[13].Name != "set" || c.Rows[13].Faults[0] != "kill" ||
		len(c.Rows[15].Faults) != 0 || !c.Start.Equal(clitest.Start) {
		t.Errorf("%+v", c)
	}
	code, out, _ = called("redquake", "results", file, "-o", "csv", "--every", "15s")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || code != cli.ExitOK || len(rows) != 3 || rows[1][0] != "0" || rows[1][4] != "150" ||
		rows[1][16] != "kill" || rows[0][16] != "faults" {
		t.Errorf("exit code %d, %v in\n%s", code, err, out)
	}
}

func TestResultsOfACluster(t *testing.T) {
	results, faults := clitest.RunObjects(t)
	pending := &v1alpha1.RedisLoadTest{
		Status: v1alpha1.RedisLoadTestStatus{
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionComplete, Reason: "Preparing", Message: "0 of 1 load pods are ready"},
			},
		},
	}
	config := clitest.Cluster(t, map[string]any{
		"/api/v1/namespaces/shop/configmaps/checkout-results": results,
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisfaults": map[string]any{
			"kind":  "RedisFaultList",
			"items": faults,
		},
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisloadtests/pending":      pending,
		"/apis/redquake.dev/v1alpha1/namespaces/elsewhere/redisloadtests/unknown": pending,
	})
	code, out, stderr := called("redquake", "results", "checkout", "--kubeconfig", config)
	checkTable(t, "namespace of the context", code, out, stderr, true)
	code, out, stderr = called("redquake", "results", "checkout", "--kubeconfig", config, "--context", "b", "-n", "shop")
	checkTable(t, "namespace of the flag", code, out, stderr, true)
	for _, tt := range []struct{ name, context, want string }{
		{"nothing", "a", "there is no RedisLoadTest nothing in namespace shop, and no file of this name\n"},
		{"checkout", "b", "there is no RedisLoadTest checkout in namespace other, and no file of this name\n"},
		{"pending", "a", "RedisLoadTest pending of namespace shop has no record (Preparing: 0 of 1 load pods are ready)\n"},
	} {
		code, out, stderr := called("redquake", "results", tt.name, "--kubeconfig", config, "--context", tt.context)
		if code != cli.ExitError || out != "" || stderr != "redquake results: "+tt.want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", tt.name, code, out, stderr, tt.want)
		}
	}
}

func TestResultsRefuses(t *testing.T) {
	results, _ := clitest.RunObjects(t)
	for name, tt := range map[string]struct {
		text string
		args []string
		want string
	}{
		"no record":        {"kind: ConfigMap\n", nil, "FILE: contains no ConfigMap with the key series in binaryData"},
		"two records":      {clitest.AsYAML(t, results, results), nil, "FILE: contains more than one record"},
		"a damaged record": {string(clitest.Record(t)[:40]), nil, "FILE: corrupt record: "},
		"a newer version": {
			"\x09" + string(clitest.Record(t)[1:]), nil,
			"FILE: the record is of version 9, which a newer redquake wrote: ",
		},
		"no YAML": {"a: [", nil, "FILE: is neither a record nor YAML: "},
		"an operation": {
			string(clitest.Record(t)),
			[]string{"--operation", "get"},
			`the run has no operation "get", it has ["set"]`,
		},
		"format":          {"", []string{"-o", "yaml"}, `--output: "yaml" is none of table, json and csv`},
		"length of a row": {"", []string{"--every", "0s"}, "--every: must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := called(append([]string{"redquake", "results", file}, tt.args...)...)
			if want := "redquake results: " + strings.Replace(tt.want, "FILE", file, 1); code != cli.ExitError || out != "" ||
				!strings.HasPrefix(stderr, want) {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant %s", code, out, stderr, want)
			}
		})
	}
	if code, _, stderr := called("redquake", "results", "./none.yaml"); code != cli.ExitError ||
		stderr != "redquake results: open ./none.yaml: no such file or directory\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
