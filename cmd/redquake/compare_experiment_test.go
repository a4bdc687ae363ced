package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/cmd/redquake/internal/documents"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/result/comparisons"
	"github.com/redquake/redquake/internal/testing/golden"
)

func TestCompareExperiment(t *testing.T) {
	t.Parallel()
	complete := clitest.NewExperiment(t, nil)
	running := clitest.NewExperiment(t, nil)
	running.Record.Runs = running.Record.Runs[:14]
	running.Record.Runs[3].Inconclusive, running.Record.Runs[3].Values = "its verdict is Inconclusive", nil
	running.SetComplete(metav1.ConditionFalse, "Running", "run 15 of 24: appendfsync=no,test=get")
	one := clitest.NewExperiment(t, func(s *v1alpha1.RedisExperimentSpec) {
		s.Matrix = s.Matrix[:1]
		s.Baseline = map[string]v1alpha1.ValueName{"appendfsync": "always"} // not the first cell
	})
	for _, test := range []struct {
		golden string
		of     *clitest.Experiment
		code   int
		args   []string
	}{
		{"compare_experiment.txt", complete, cli.ExitOK, nil},
		{"compare_experiment.md", complete, cli.ExitOK, []string{"-o", "markdown"}},
		{"compare_experiment.json", complete, cli.ExitOK, []string{"-o", "json"}},
		{"compare_experiment_required.txt", complete, cli.ExitFailed, []string{"--require", "NotWorse"}},
		{"compare_experiment_running.txt", running, cli.ExitInconclusive, nil},
		{"compare_experiment_running.md", running, cli.ExitInconclusive, []string{"-o", "markdown"}},
		{"compare_experiment_one_baseline.txt", one, cli.ExitOK, nil},
	} {
		code, out, stderr := called(append([]string{"redquake", "compare", test.of.File(t)}, test.args...)...)
		if code != test.code || stderr != "" {
			t.Errorf("%s: exit code %d, want %d, stderr %q", test.golden, code, test.code, stderr)
		}
		golden.Compare(t, filepath.Join("testdata", test.golden), out)
		if page, err := os.ReadFile("../../docs/cli.md"); err != nil ||
			test.golden == "compare_experiment.txt" && !strings.Contains(string(page), out) {
			t.Errorf("docs/cli.md shows another table than\n%s (%v)", out, err)
		}
	}
}

// later is the experiment again, on other days: SET has become slower by a third.
func later(t *testing.T) *clitest.Experiment {
	t.Helper()
	s := clitest.NewExperiment(t, nil)
	s.Object.Name, s.Object.UID = "fsync-2", "another"
	for i := range s.Record.Runs {
		run := &s.Record.Runs[i]
		run.Start = run.Start.Add(24 * time.Hour)
		if strings.HasSuffix(s.Record.Cells[run.Cell], "test=set") {
			run.Values["throughput"] = experiment.Value{Value: run.Values["throughput"].Value * 2 / 3}
		}
	}
	return s
}

// Of two experiments each cell of the second is compared with itself in the first.
func TestCompareTwoExperiments(t *testing.T) {
	t.Parallel()
	before, after := clitest.NewExperiment(t, nil).File(t), later(t)
	code, out, stderr := called("redquake", "compare", before, after.File(t))
	if code != cli.ExitOK || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	golden.Compare(t, filepath.Join("testdata", "compare_experiment_two.txt"), out)
	for require, want := range map[string]int{"None": cli.ExitOK, "NotWorse": cli.ExitFailed, "Same": cli.ExitFailed} {
		if code, _, stderr := called("redquake", "compare", before, after.File(t), "--require", require); code != want ||
			want != cli.ExitOK && !strings.Contains(stderr, "throughput of appendfsync=no,test=set is Regressed") {
			t.Errorf("--require %s: exit code %d, stderr %q", require, code, stderr)
		}
	}
	if code, _, stderr := called("redquake", "compare", after.File(t), before, "--require",
		"NotWorse"); code != cli.ExitOK {
		t.Errorf("improved: exit code %d, stderr %q", code, stderr)
	}
	again := later(t)
	again.Object.Name = "fsync" // as of a schedule on two clusters
	if _, out, _ := called("redquake", "compare", before,
		again.File(t)); !strings.HasPrefix(out, "Compared with "+before+"\n") {
		t.Errorf("two of one name:\n%s", out)
	}
	running := later(t)
	running.Record.Runs = running.Record.Runs[:20]
	running.SetComplete(metav1.ConditionFalse, "Running", "run 21 of 24")
	if code, out, stderr := called("redquake", "compare", before, running.File(t), "--require",
		"NotWorse"); code != cli.ExitInconclusive || stderr != "" ||
		!strings.HasPrefix(out, "Experiment fsync-2, provisional: 20 of 24 runs, compared with fsync\n") ||
		strings.Contains(out, "Regressed") {
		t.Errorf("one that runs: exit code %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	others := clitest.NewExperiment(t, func(s *v1alpha1.RedisExperimentSpec) { s.Matrix[0].Name = "aof" })
	others.Record.Runs[0].Start = clitest.Start
	for want, args := range map[string][]string{
		" are the same experiment\n": {before, before},
		" is not complete, so that nothing can be compared with it: Running: run 21 of 24\n": {running.File(t), before},
		" has none of the cells of ": {before, others.File(t)},
	} {
		if code, out, stderr := called(append([]string{"redquake", "compare"}, args...)...); code != cli.ExitError ||
			out != "" || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, out, stderr, want)
		}
	}
}

// Without all runs no reader of the JSON finds what would be a verdict.
func TestCompareExperimentProvisional(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*clitest.Experiment){
		"running": func(s *clitest.Experiment) { s.SetComplete(metav1.ConditionFalse, "Running", "run 24 of 24") },
		"aborted": func(s *clitest.Experiment) {
			s.SetComplete(metav1.ConditionTrue, v1alpha1.ReasonAborted, "ended by spec.abort")
		},
		"failed": func(s *clitest.Experiment) {
			s.SetComplete(metav1.ConditionFalse, v1alpha1.ReasonRevertFailed, "a fault")
		},
		"saved before the end":     func(s *clitest.Experiment) { s.Record.Runs = s.Record.Runs[:23] },
		"without a status":         func(s *clitest.Experiment) { s.Object.Status = v1alpha1.RedisExperimentStatus{} },
		"without any run that end": func(s *clitest.Experiment) { s.Record.Runs = nil },
	} {
		s := clitest.NewExperiment(t, nil)
		edit(s)
		code, out, stderr := called("redquake", "compare", s.File(t), "-o", "json")
		var table comparisons.Comparisons
		if err := json.Unmarshal([]byte(out), &table); err != nil || code != cli.ExitInconclusive || stderr != "" {
			t.Fatalf("%s: exit code %d, stderr %q, %v", name, code, stderr, err)
		}
		if e := table.Experiment; e == nil || e.Verdict != "" || e.Message == "" || e.Runs != 24 ||
			e.Finished != len(s.Record.Runs) {
			t.Errorf("%s: experiment %+v", name, e)
		}
		if len(table.Comparisons) == 0 {
			t.Errorf("%s: no figures", name)
		}
		for _, c := range table.Comparisons {
			if c.Verdict != "" || c.Message != "" || c.Reason != "" || c.NotWorse != nil || c.Same != nil || c.P != nil ||
				c.Needs != 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// The exit code is that of the verdict: of the runs' objectives, of what the spec or --require asks of the comparison,
// and of an earlier run.
func TestCompareExperimentVerdict(t *testing.T) {
	t.Parallel()
	requireNotWorse := func(s *v1alpha1.RedisExperimentSpec) { s.Compare.Require = v1alpha1.RequireNotWorse }
	noRegression := func(s *v1alpha1.RedisExperimentSpec) {
		s.CompareTo, s.Objectives = &v1alpha1.EarlierRun{Run: "before"}, &v1alpha1.ExperimentObjectives{NoRegression: true}
	}
	regressed := func(s *clitest.Experiment) {
		s.Object.Status.Earlier = &v1alpha1.EarlierComparison{Run: "before", Comparison: []v1alpha1.ComparisonResult{
			{
				Cell:    "appendfsync=no,test=set",
				Figure:  "throughput",
				Verdict: v1alpha1.ComparisonRegressed,
				Message: "throughput 20% lower than before",
			},
		}}
	}
	noisy := func(s *clitest.Experiment) {
		for i := range s.Record.Runs {
			s.Record.Runs[i].Values = map[string]experiment.Value{"throughput": {Value: 1000 * math.Exp(float64(i*7%5))}}
		}
	}
	for name, test := range map[string]struct {
		spec func(*v1alpha1.RedisExperimentSpec)
		edit func(*clitest.Experiment)
		args []string
		code int
		want string
	}{
		"nothing required": {nil, nil, nil, cli.ExitOK, "Verdict: Pass\n"},
		"not worse, by the spec": {
			requireNotWorse, nil, nil, cli.ExitFailed,
			"Verdict: Fail: appendfsync=always,test=set: throughput 7",
		},
		"nothing, by the flag": {
			requireNotWorse,
			nil,
			[]string{"--require", "None"},
			cli.ExitOK,
			"Verdict: Pass\n",
		},
		"the same, by the flag": {
			nil,
			nil,
			[]string{"--require", "Same"},
			cli.ExitFailed,
			"Verdict: Fail: appendfsync=always,test=set: ",
		},
		"the runs are inconclusive": {requireNotWorse, noisy, nil, cli.ExitInconclusive, "Verdict: Inconclusive: "},
		"an objective of a run": {
			nil,
			func(s *clitest.Experiment) { s.Record.Runs[2].Missed, s.Record.Runs[2].Failed = true, "p99" },
			nil,
			cli.ExitFailed,
			"1 of 6 runs of appendfsync=",
		},
		"a regression": {
			noRegression, regressed, nil, cli.ExitFailed,
			"appendfsync=no,test=set has regressed: throughput 20% lower than before",
		},
		"a regression, only reported": {nil, regressed, nil, cli.ExitOK, "Verdict: Pass\n"},
	} {
		s := clitest.NewExperiment(t, test.spec)
		if test.edit != nil {
			test.edit(s)
		}
		code, out, stderr := called(append([]string{"redquake", "compare", s.File(t)}, test.args...)...)
		if code != test.code || stderr != "" || !strings.Contains(out, test.want) {
			t.Errorf("%s: exit code %d, want %d, stderr %q, want %q in\n%s", name, code, test.code, stderr, test.want, out)
		}
	}
}

func TestCompareExperimentOfACluster(t *testing.T) {
	t.Parallel()
	s := clitest.NewExperiment(t, nil)
	other := clitest.NewExperiment(t, nil)
	other.Object.Name, other.Object.Status.Results = "fresh", ""
	other.SetComplete(metav1.ConditionFalse, "Checking", "0 of 3 dry runs")
	deleted := other.ConfigMap(t) // that of an experiment of the same name that was deleted
	deleted.OwnerReferences[0].UID = "another"
	lost := clitest.NewExperiment(t, nil)
	lost.Object.Name = "lost"
	schedule := clitest.NewSchedule()
	schedule.Status.History = []v1alpha1.ScheduledRun{{Name: "nightly-1"}}
	const api = "/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperiments/"
	config := clitest.Cluster(t, map[string]any{
		api + "fsync": s.Object, "/api/v1/namespaces/shop/configmaps/fsync-experiment": s.ConfigMap(t),
		api + "fresh": other.Object, "/api/v1/namespaces/shop/configmaps/fresh-experiment": deleted,
		api + "lost": lost.Object,
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperimentschedules/nightly": schedule,
	})
	_, want, _ := called("redquake", "compare", s.File(t))
	for _, arg := range []string{
		"redisexperiment/fsync", "rexp/fsync", "redisexperiments/fsync",
		"redisexperiment.redquake.dev/fsync",
	} {
		if code, out, stderr := called("redquake", "compare", arg, "--kubeconfig", config); code != cli.ExitOK ||
			stderr != "" || out != want {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%swant\n%s", arg, code, stderr, out, want)
		}
	}
	code, out, stderr := called("redquake", "compare", "rexp/fresh", "--kubeconfig", config)
	if code != cli.ExitInconclusive || stderr != "" ||
		!strings.HasPrefix(out, "Experiment fresh, provisional: 0 of 24 runs, ") ||
		!strings.Contains(out, "Checking: 0 of 3 dry runs\n") {
		t.Errorf("before the first run: exit code %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	for arg, want := range map[string]string{
		"rexp/none":     "there is no RedisExperiment none in namespace shop\n",
		"rexp/lost":     "the record of RedisExperiment lost, ConfigMap lost-experiment, is missing: kubectl get ",
		"rexp/../fsync": `"../fsync" is no name of a RedisExperiment`,
		"rexps/nightly": "RedisExperimentSchedule nightly is compared by its runs, which are RedisExperiments: name one of " +
			"them, such as redisexperiment/nightly-1\n",
		"rexps/none":    "there is no RedisExperimentSchedule none in namespace shop\n",
		"rexps/no_name": `"no_name" is no name of a RedisExperimentSchedule`,
		"rexp/":         `"" is no name of a RedisExperiment`,
		"fsync":         "there is no file fsync: an experiment of the cluster is redisexperiment/NAME, and runs are NAME=RUNS",
	} {
		if code, out, stderr := called("redquake", "compare", arg, "--kubeconfig", config); code != cli.ExitError ||
			out != "" || !strings.HasPrefix(stderr, "redquake compare: "+want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", arg, code, out, stderr, want)
		}
	}
}

// What was saved may be documents or a list, with or without what is not needed; and a spec alone shows what will be
// compared.
func TestCompareExperimentFiles(t *testing.T) {
	t.Parallel()
	s := clitest.NewExperiment(t, nil)
	_, want, _ := called("redquake", "compare", s.File(t))
	results, faults := clitest.RunObjects(t)
	unowned := s.ConfigMap(t)
	unowned.OwnerReferences = nil
	newer := map[string]any{} // its status has a field that this program does not know
	text, err := json.Marshal(s.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &newer); err != nil {
		t.Fatal(err)
	}
	newer["status"].(map[string]any)["later"] = 1
	for name, text := range map[string]string{
		"documents":                  clitest.AsYAML(t, s.Object, s.ConfigMap(t)),
		"the record first":           clitest.AsYAML(t, s.ConfigMap(t), s.Object),
		"with the rest":              clitest.AsYAML(t, append(faults, results, clitest.AsList(s.Object, s.ConfigMap(t)))...),
		"without owners":             clitest.AsYAML(t, s.Object, unowned),
		"with fields of the cluster": clitest.AsYAML(t, newer, s.ConfigMap(t)),
	} {
		if code, out, stderr := called("redquake", "compare", clitest.FileWith(t, text)); code != cli.ExitOK ||
			stderr != "" || out != want {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%s", name, code, stderr, out)
		}
		var out, stderr bytes.Buffer
		code := execute(t.Context(), []string{"redquake", "compare", "-"}, cli.Streams{
			In:  strings.NewReader(text),
			Out: &out,
			Err: &stderr,
		})
		if code != cli.ExitOK || out.String() != want {
			t.Errorf("%s from standard input: exit code %d, stderr %q", name, code, &stderr)
		}
	}
	spec := fmt.Sprintf("apiVersion: %s\nkind: RedisExperiment\nmetadata: {name: planned}\nspec:%s", v1alpha1.GroupVersion,
		strings.ReplaceAll(strings.Replace(clitest.ExperimentSpec, "repeat: 6", "repeat: 2", 1), "\n", "\n  "))
	code, out, stderr := called("redquake", "compare", clitest.FileWith(t, spec))
	if code != cli.ExitInconclusive || stderr != "" {
		t.Errorf("a spec: exit code %d, stderr %q", code, stderr)
	}
	golden.Compare(t, filepath.Join("testdata", "compare_experiment_planned.txt"), out)
	samples, err := filepath.Glob("../../config/samples/experiment*.yaml")
	if err != nil || len(samples) < 4 {
		t.Fatalf("samples %v, %v", samples, err)
	}
	for _, sample := range samples {
		if code, out, stderr := called("redquake", "compare", sample); code != cli.ExitInconclusive || stderr != "" ||
			!strings.Contains(out, ", provisional: 0 of ") || strings.Contains(out, "Note ") {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%s", sample, code, stderr, out)
		}
	}
}

func TestCompareExperimentRefuses(t *testing.T) {
	t.Parallel()
	s := clitest.NewExperiment(t, nil)
	with := func(edit func(*clitest.Experiment)) string {
		other := clitest.NewExperiment(t, nil)
		edit(other)
		return clitest.AsYAML(t, other.Object, other.ConfigMap(t))
	}
	second := clitest.NewExperiment(t, nil)
	second.Object.Name = "second"
	schedule := clitest.NewSchedule()
	schedule.Status.History = []v1alpha1.ScheduledRun{{Name: "nightly-1"}, {Name: "nightly-2"}}
	damaged := s.ConfigMap(t)
	damaged.BinaryData[children.ExperimentRecordKey] = []byte("runs")
	foreign := s.ConfigMap(t)
	foreign.OwnerReferences[0].UID = "another"
	for name, test := range map[string]struct {
		text string
		args []string
		want string
	}{
		"the experiment alone": {
			clitest.AsYAML(t, s.Object), nil,
			"FILE: the record of RedisExperiment fsync, ConfigMap fsync-experiment, is missing: kubectl get " +
				"redisexperiment/fsync configmap/fsync-experiment -o yaml saves both\n",
		},
		"the record alone": {
			clitest.AsYAML(t, s.ConfigMap(t)), nil,
			"FILE: contains a record, but not its RedisExperiment, which says what is compared: kubectl get redisexperiment/fsync ",
		},
		"of another one": {clitest.AsYAML(t, s.Object, foreign), nil, "FILE: the record of RedisExperiment fsync"},
		"neither": {
			"kind: ConfigMap\n", nil,
			"FILE: contains no RedisExperiment; of runs, the arguments are NAME=RUNS\n",
		},
		"nothing": {"", nil, "FILE: contains no RedisExperiment"},
		"no YAML": {"a: [", nil, "FILE: is neither a record nor YAML: "},
		"two experiments": {
			clitest.AsYAML(t, s.Object, second.Object), nil,
			"FILE: contains more than one RedisExperiment (fsync and second): keep one a file\n",
		},
		"a schedule": {
			clitest.AsYAML(t, schedule), nil,
			"FILE: RedisExperimentSchedule nightly is compared by its runs, which are RedisExperiments: name one of them, " +
				"such as redisexperiment/nightly-2\n",
		},
		"no matrix": {
			with(func(s *clitest.Experiment) { s.Object.Spec.Matrix = nil }),
			nil,
			"FILE: decode a RedisExperiment: ",
		},
		"a bad spec": {with(func(s *clitest.Experiment) {
			s.Object.Spec.Compare.Figures = []v1alpha1.ComparedFigure{
				"tps",
			}
		}), nil, "FILE: decode a RedisExperiment: "},
		"a bad status": {
			strings.Replace(clitest.AsYAML(t, s.Object), "status:\n", "status:\n  seed: {}\n", 1), nil,
			"FILE: decode a RedisExperiment: json: cannot unmarshal object into Go struct field ",
		},
		"no such field": {
			with(func(s *clitest.Experiment) { s.Object.Spec.Matrix[1].Path = "load.user" }),
			nil,
			"FILE: RedisExperiment fsync: ",
		},
		"a cell that the spec does not have": {
			with(func(s *clitest.Experiment) {
				s.Record.Cells = append(s.Record.Cells,
					"appendfsync=\x1b[2J")
			}), nil,
			`FILE: ConfigMap fsync-experiment: the record has a cell "appendfsync=\x1b[2J" that the spec does not have: it is of another experiment`,
		},
		"fewer cells": {with(func(s *clitest.Experiment) {
			s.Record.Cells, s.Record.Runs = s.Record.Cells[:2],
				nil
		}), nil, "FILE: ConfigMap fsync-experiment: the record has 2 cells, and the spec 4"},
		"a run of no cell": {
			with(func(s *clitest.Experiment) { s.Record.Runs[3].Cell = 4 }),
			nil,
			"FILE: ConfigMap fsync-experiment: read the experiment's record: run 4 is of cell 4 of 4",
		},
		"a run of no round": {
			with(func(s *clitest.Experiment) { s.Record.Runs[3].Round = -1 }), nil,
			"FILE: ConfigMap fsync-experiment: run 4 of the record is of round -1 of 6",
		},
		"too many runs": {
			with(func(s *clitest.Experiment) { s.Record.Runs = append(s.Record.Runs, s.Record.Runs[0]) }), nil,
			"FILE: ConfigMap fsync-experiment: the record has more runs of appendfsync=",
		},
		"a newer version": {
			with(func(s *clitest.Experiment) { s.Record.Version = 2 }),
			nil,
			"FILE: ConfigMap fsync-experiment: the experiment's record has version 2, later than 1: it is of a newer version of Redquake\n",
		},
		"a damaged record": {
			clitest.AsYAML(t, s.Object, damaged), nil,
			"FILE: ConfigMap fsync-experiment: read the experiment's record: ",
		},
		"other figures": {
			s.Text(t),
			[]string{"--figure", "latencyP99"},
			"--figure and --margin: those of an experiment are in its spec.compare",
		},
		"other margins": {
			s.Text(t),
			[]string{"--margin", "throughput=5%"},
			"--figure and --margin: those of an experiment are in its spec.compare",
		},
		"another format": {s.Text(t), []string{"-o", "yaml"}, `--output: "yaml" is none of text, markdown and json`},
		"cells besides":  {s.Text(t), []string{"a=b.json"}, `argument "FILE" must be NAME=RUNS`},
		"three experiments": {
			s.Text(t),
			[]string{"a", "b"},
			"two experiments are compared at most; runs are compared by cells, each with a name: before=RUNS after=RUNS",
		},
	} {
		file := clitest.FileWith(t, test.text)
		code, out, stderr := called(append([]string{"redquake", "compare", file}, test.args...)...)
		if want := "redquake compare: " + strings.Replace(test.want, "FILE", file, 1); code != cli.ExitError || out != "" ||
			!strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%swant\n%s", name, code, out, stderr, want)
		}
	}
}

// A file without an end is not read into memory as a whole, and text of a record does not move the cursor of a
// terminal.
func TestCompareExperimentHostile(t *testing.T) {
	t.Parallel()
	if _, err := documents.ReadBounded(endless{}, "standard input", 2<<20); err == nil ||
		err.Error() != "standard input is longer than 2 MiB" {
		t.Errorf("a stream without an end: %v", err)
	}
	s := clitest.NewExperiment(t, nil)
	s.Record.Runs[0].Inconclusive, s.Record.Runs[1].LoadTest, s.Record.Runs[1].Inconclusive = "\x1b[2J", "\x1b[1A", "why"
	s.Record.Runs[2].Missed, s.Record.Runs[2].Failed = true, "\x1b]0;title\a"
	for _, format := range []string{"text", "markdown"} {
		if code, out, _ := called("redquake", "compare", s.File(t), "-o", format); code != cli.ExitFailed ||
			strings.ContainsAny(out, "\x1b\a") {
			t.Errorf("exit code %d, %q", code, out)
		}
	}
}

// endless is a stream that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
