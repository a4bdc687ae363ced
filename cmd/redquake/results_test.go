package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

var runStart = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

// storedRun is the record of a run of 30 s with 10 successes per second.
func storedRun(t *testing.T) []byte {
	t.Helper()
	series := record.NewSeries("uid", runStart, time.Second, []string{"set"}, 1)
	for i := range int64(30) {
		begin := i * int64(time.Second)
		iv := &record.Interval{Index: i, Pods: 1, Ops: make([]record.Op, 1), FirstOK: begin, LastOK: begin + int64(time.Second) - 1, FirstError: -1, LastError: -1}
		iv.Ops[0].OK = 10
		if err := series.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	series.Finish(0)
	data, err := series.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// storedObjects are the ConfigMap and the faults of a run: a setting of it, one on it, one before it, one on another test, one that was not injected.
func storedObjects(t *testing.T) (results any, faults []any) {
	t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: "shop"}}
	fault := func(name, test string, at time.Duration) any {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: "PodKill"}}}
		f.APIVersion, f.Kind = v1alpha1.GroupVersion.String(), "RedisFault"
		f.Status = v1alpha1.RedisFaultStatus{LoadTest: test, Verdict: v1alpha1.VerdictPass}
		if at != 0 {
			f.Status.InjectedAt = new(metav1.NewMicroTime(runStart.Add(at)))
			f.Status.Impact = &v1alpha1.Impact{
				Recovered: true, RecoveryTime: &v1alpha1.BoundedDuration{Value: 2_000_000, AtLeast: 2_000_000, AtMost: 2_000_000},
				Outage: &v1alpha1.Outage{BoundedDuration: v1alpha1.BoundedDuration{Value: 1_500_000, AtLeast: 1_450_000, AtMost: 1_520_000}, Of: v1alpha1.OutageOfShard, Shard: new(int32(0))},
			}
		}
		return f
	}
	setting := fault("setting", "checkout", 12*time.Second).(*v1alpha1.RedisFault)
	setting.Spec.Setting = true
	return children.ResultsConfigMap(test, storedRun(t)), []any{
		setting, fault("kill", "checkout", 12*time.Second), fault("earlier", "checkout", -time.Hour), fault("elsewhere", "other", 12*time.Second), fault("never", "checkout", 0),
	}
}

func asYAML(t *testing.T, objects ...any) string {
	t.Helper()
	var documents []string
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "---\n")
}

func asList(items ...any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// checkTable checks the table of storedRun, with its fault if that is known.
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
	results, faults := storedObjects(t)
	for name, tt := range map[string]struct {
		text      string
		withFault bool
	}{
		"the record alone":         {string(storedRun(t)), false},
		"the ConfigMap":            {asYAML(t, results), false},
		"several documents":        {asYAML(t, append(faults, results)...), true},
		"a list, as kubectl saves": {asYAML(t, asList(append(faults, results)...)), true},
	} {
		file := filepath.Join(t.TempDir(), "run.yaml")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := called("redquake", "results", file)
		checkTable(t, name, code, out, stderr, tt.withFault)
		var stdout, diagnostics bytes.Buffer
		code = execute(t.Context(), []string{"redquake", "results", "-"}, cli.Streams{In: strings.NewReader(tt.text), Out: &stdout, Err: &diagnostics})
		checkTable(t, name+" from standard input", code, stdout.String(), diagnostics.String(), tt.withFault)
	}
}

func TestResultsForPrograms(t *testing.T) {
	results, faults := storedObjects(t)
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte(asYAML(t, asList(append(faults, results)...))), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := called("redquake", "results", file, "-o", "json", "--every", "1s", "--operation", "set")
	var c result.Course
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, %v in\n%s", code, err, out)
	}
	if c.Version != 1 || len(c.Rows) != 30 || c.Rows[13].Name != "set" || c.Rows[13].Faults[0] != "kill" || len(c.Rows[15].Faults) != 0 || !c.Start.Equal(runStart) {
		t.Errorf("%+v", c)
	}
	code, out, _ = called("redquake", "results", file, "-o", "csv", "--every", "15s")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || code != cli.ExitOK || len(rows) != 3 || rows[1][0] != "0" || rows[1][4] != "150" || rows[1][16] != "kill" || rows[0][16] != "faults" {
		t.Errorf("exit code %d, %v in\n%s", code, err, out)
	}
}

// cluster serves the objects of namespace shop, and returns a kubeconfig for it.
func cluster(t *testing.T, objects map[string]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var object any = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404, Message: "not found"}
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
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: %q}}],
		contexts: [{name: a, context: {cluster: c, namespace: shop}}, {name: b, context: {cluster: c, namespace: other}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestResultsOfACluster(t *testing.T) {
	results, faults := storedObjects(t)
	pending := &v1alpha1.RedisLoadTest{Status: v1alpha1.RedisLoadTestStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionComplete, Reason: "Preparing", Message: "0 of 1 load pods are ready"}}}}
	config := cluster(t, map[string]any{
		"/api/v1/namespaces/shop/configmaps/checkout-results":                     results,
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisfaults":                 map[string]any{"kind": "RedisFaultList", "items": faults},
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
	results, _ := storedObjects(t)
	for name, tt := range map[string]struct {
		text string
		args []string
		want string
	}{
		"no record":        {"kind: ConfigMap\n", nil, "FILE: contains no ConfigMap with the key series in binaryData"},
		"two records":      {asYAML(t, results, results), nil, "FILE: contains more than one record"},
		"a damaged record": {string(storedRun(t)[:40]), nil, "FILE: corrupt record: "},
		"a newer version":  {"\x09" + string(storedRun(t)[1:]), nil, "FILE: the record is of version 9, which a newer redquake wrote: "},
		"no YAML":          {"a: [", nil, "FILE: is neither a record nor YAML: "},
		"an operation":     {string(storedRun(t)), []string{"--operation", "get"}, `the run has no operation "get", it has ["set"]`},
		"format":           {"", []string{"-o", "yaml"}, `--output: "yaml" is none of table, json and csv`},
		"length of a row":  {"", []string{"--every", "0s"}, "--every: must be above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := called(append([]string{"redquake", "results", file}, tt.args...)...)
			if want := "redquake results: " + strings.Replace(tt.want, "FILE", file, 1); code != cli.ExitError || out != "" || !strings.HasPrefix(stderr, want) {
				t.Errorf("exit code %d, stdout %q, stderr\n%swant %s", code, out, stderr, want)
			}
		})
	}
	if code, _, stderr := called("redquake", "results", "./none.yaml"); code != cli.ExitError || stderr != "redquake results: open ./none.yaml: no such file or directory\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}
