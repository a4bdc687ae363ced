package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/archive"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/testing/golden"
)

// Of a file and of the cluster the report is the same; of runs whose objects are there it has curves and bottlenecks,
// and says of how many.
func TestReportExperiment(t *testing.T) {
	t.Parallel()
	s := clitest.NewExperiment(t, nil)
	test, results := s.RunObjects(t, 1)
	file := clitest.FileWith(t, clitest.AsYAML(t, clitest.AsList(s.Object, s.ConfigMap(t), test, results)))
	config := clitest.Cluster(t, map[string]any{
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperiments/fsync": s.Object,
		"/api/v1/namespaces/shop/configmaps/fsync-experiment":                s.ConfigMap(t),
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisloadtests": map[string]any{
			"kind":  "RedisLoadTestList",
			"items": []any{test},
		},
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisfaults": map[string]any{
			"kind":  "RedisFaultList",
			"items": []any{},
		},
		"/api/v1/namespaces/shop/configmaps/" + test.Name + "-results": results,
	})
	for _, form := range []string{"html", "markdown", "json", "junit", "csv"} {
		code, out, stderr := called("redquake", "report", file, "-o", form)
		if code != cli.ExitOK || stderr != "" {
			t.Fatalf("%s: exit code %d, %s", form, code, stderr)
		}
		if code, of, stderr := called("redquake", "report", "redisexperiment/fsync", "-o", form, "--kubeconfig",
			config); code != cli.ExitOK || stderr != "" || of != out {
			t.Errorf("%s of the cluster: exit code %d, %s; the same: %v", form, code, stderr, of == out)
		}
	}
	_, page, _ := called("redquake", "report", file, "-o", "html")
	for _, part := range []string{`class="smc"`, "Curves of 1 of 24", "<td class=\"m\">Disk</td>"} {
		if !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if code, out, stderr := called("redquake", "report", clitest.NewExperiment(t, nil).File(t), "-o",
		"html"); code != cli.ExitOK || strings.Contains(out, `class="smc"`) || !strings.Contains(out, "There are no curves") {
		t.Errorf("without the runs: exit code %d, %s", code, stderr)
	}
	for want, args := range map[string][]string{
		"--fault: an experiment has a fault": {file, "--fault", "kill"},
		"there is no RedisExperiment none":   {"rexp/none", "--kubeconfig", config},
	} {
		if code, _, stderr := called(append([]string{"redquake", "report"}, args...)...); code != cli.ExitError ||
			!strings.Contains(stderr, want) {
			t.Errorf("exit code %d, %q, want %q", code, stderr, want)
		}
	}
}

// A schedule that has run in virtual time is read from what kubectl saves of it.
func TestReportSchedule(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "report_schedule.yaml")
	code, out, stderr := called("redquake", "report", file)
	if code != cli.ExitOK || stderr != "" ||
		!strings.Contains(out, "p99 of latency=5ms has been worse since 17 Jan, 03:00 (nightly-15801300)") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, out)
	}
	golden.Compare(t, filepath.Join("testdata", "report_schedule.md"), out)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone, _, _ := strings.Cut(string(text), "\n---\n")
	run := clitest.AsYAML(t, clitest.NewExperiment(t, nil).Object)
	for name, c := range map[string]struct{ text, want string }{
		"without its history": {
			alone,
			"the history of RedisExperimentSchedule nightly, ConfigMap nightly-history, is missing: kubectl get " +
				"redisexperimentschedule/nightly configmap/nightly-history -o yaml saves both\n",
		},
		"with an experiment": {
			string(text) + "---\n" + run,
			"contains RedisExperiment fsync and RedisExperimentSchedule nightly: keep one a file\n",
		},
		"two": {
			string(text) + "---\n" + clitest.AsYAML(t, clitest.NewSchedule()),
			"contains more than one RedisExperimentSchedule (nightly and nightly): keep one a file\n",
		},
		"of another one": {
			strings.Replace(string(text), "uid: 00000002", "uid: 00000009", 1),
			"the history of RedisExperimentSchedule nightly, ConfigMap nightly-history, is missing: ",
		},
		"with a bad spec": {
			strings.Replace(alone, "schedule: 0 3 * * *", "schedule: daily", 1),
			"decode a RedisExperimentSchedule: ",
		},
	} {
		if code, out, stderr := called("redquake", "report", clitest.FileWith(t, c.text)); code != cli.ExitError ||
			out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, stderr)
		}
	}
	first, second := clitest.NewExperiment(t, nil).Object, clitest.NewExperiment(t, nil).Object
	first.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(clitest.NewSchedule(), v1alpha1.GroupVersion.WithKind("RedisExperimentSchedule")),
	}
	second.OwnerReferences = first.OwnerReferences
	if code, of, stderr := called("redquake", "report",
		clitest.FileWith(t, string(text)+"---\n"+clitest.AsYAML(t, first, second))); code != cli.ExitOK || of != out {
		t.Errorf("with its runs: exit code %d, %s; the same: %v", code, stderr, of == out)
	}
	if code, out, stderr := called("redquake", "report", clitest.FileWith(t, clitest.AsYAML(t, clitest.NewSchedule())),
		"-o", "json"); code != cli.ExitOK || !strings.Contains(out, `"state": "Pending"`) {
		t.Errorf("before the first run: exit code %d, %s\n%s", code, stderr, out)
	}
}

// Of the cluster the report of a schedule is the same as of what kubectl saves.
func TestReportScheduleOfACluster(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "report_schedule.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved archive.Objects
	if err := documents.Each(text, saved.Add); err != nil {
		t.Fatal(err)
	}
	saved.Schedule.Kind = "RedisExperimentSchedule"
	config := clitest.Cluster(t, map[string]any{
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperimentschedules/nightly": saved.Schedule,
		"/api/v1/namespaces/shop/configmaps/nightly-history":                           saved.Histories[0],
	})
	_, want, _ := called("redquake", "report", file)
	for _, arg := range []string{"redisexperimentschedule/nightly", "redisexperimentschedules/nightly", "rexps/nightly"} {
		if code, out, stderr := called("redquake", "report", arg, "--kubeconfig", config); code != cli.ExitOK ||
			stderr != "" || out != want {
			t.Errorf("%s: exit code %d, %s; the same: %v", arg, code, stderr, out == want)
		}
	}
	if code, _, stderr := called("redquake", "report", "rexps/none", "--kubeconfig", config); code != cli.ExitError ||
		!strings.Contains(stderr, "there is no RedisExperimentSchedule none in namespace shop\n") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// compare writes the report of what it compares beside its table, whatever the verdict is.
func TestCompareReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeLoads(t, dir, "no", 0, 6, 3000, 0.002)
	writeLoads(t, dir, "always", 2, 6, 800, 0.009)
	runs := []string{
		"no=" + filepath.Join(dir, "no-*.json"), "always=" + filepath.Join(dir, "always-*.json"), "--require",
		"NotWorse",
	}
	before, after := clitest.NewExperiment(t, nil).File(t), later(t).File(t)
	for name, test := range map[string]struct {
		args    []string
		code    int
		kind    report.Kind
		verdict report.Verdict
		finding string
	}{
		"runs": {
			runs, cli.ExitFailed, report.Comparison, report.Fail,
			"always lowers the throughput by 7",
		},
		"an experiment": {
			[]string{before},
			cli.ExitOK,
			report.Experiment,
			report.Pass,
			"appendfsync always lowers the throughput by 75 % in 1 of 2 cells",
		},
		"two experiments": {
			[]string{before, after},
			cli.ExitOK,
			report.Comparison,
			"",
			"experiment fsync-2 lowers the throughput by 3",
		},
		"two, that must not differ": {
			[]string{before, after, "--require", "NotWorse"},
			cli.ExitFailed,
			report.Comparison,
			report.Fail,
			"in 2 of 4 cells",
		},
	} {
		file := filepath.Join(t.TempDir(), "report.json")
		code, out, stderr := called(append(append([]string{"redquake", "compare"}, test.args...), "--report", file)...)
		if code != test.code || !strings.Contains(out, "Figure ") {
			t.Errorf("%s: exit code %d, %s\n%s", name, code, stderr, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d report.Document
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != test.kind || d.Verdict != test.verdict || !strings.Contains(d.Finding.String(), test.finding) ||
			len(d.Comparisons) == 0 {
			t.Errorf("%s: %s %q: %s", name, d.Kind, d.Verdict, d.Finding)
		}
	}
	if code, out, stderr := called("redquake", "compare", before, "--report", "report.pdf"); code != cli.ExitError ||
		out != "" || !strings.Contains(stderr, "--report: the extension of report.pdf must be one of .md") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := called("redquake", "compare", before, "--report",
		filepath.Join(dir, "none", "report.html")); code != cli.ExitError || !strings.Contains(stderr, "--report: open ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
