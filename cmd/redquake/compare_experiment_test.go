package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/golden"
)

// storedExperiment is an experiment that has ended: appendfsync no and always, with SET and GET, and its record.
type storedExperiment struct {
	object *v1alpha1.RedisExperiment
	record *experiment.Record
}

const experimentSpec = `
template:
  spec:
    target: {service: {name: redis, port: 6379}}
    load: {users: 20, duration: 5s}
    workload:
      benchmark: {tests: [set]}
      keyspace: {prefix: "bench:", keys: 10000}
matrix:
- name: appendfsync
  settings:
  - {name: "no", config: {appendfsync: "no"}}
  - {name: always, config: {appendfsync: always}}
- name: test
  path: workload.benchmark.tests.0
  values: [set, get]
repeat: 6
compare: {figures: [throughput], margins: {throughput: "10%"}}
`

// newSchedule is a schedule of such an experiment, as it is written in a file.
func newSchedule() *v1alpha1.RedisExperimentSchedule {
	s := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop", UID: types.UID("s-uid")}}
	s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), "RedisExperimentSchedule"
	s.Spec.Schedule, s.Spec.TimeZone = "0 3 * * *", new("Europe/Berlin")
	if err := yaml.UnmarshalStrict([]byte(experimentSpec), &s.Spec.Template.Spec); err != nil {
		panic(err)
	}
	return s
}

// newStored runs all of the rounds; always makes SET four times slower. edit changes the spec before.
func newStored(t *testing.T, edit func(*v1alpha1.RedisExperimentSpec)) *storedExperiment {
	t.Helper()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: "fsync", Namespace: "shop", UID: types.UID("e-uid")}}
	e.APIVersion, e.Kind = v1alpha1.GroupVersion.String(), "RedisExperiment"
	if err := yaml.UnmarshalStrict([]byte(experimentSpec), &e.Spec); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&e.Spec)
	}
	plan, err := experiment.NewPlan(&e.Spec)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	around := func(v float64) experiment.Value {
		return experiment.Value{Value: v * math.Exp(0.01*random.NormFloat64())}
	}
	s := &storedExperiment{e, &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}}
	for n := 1; n <= plan.Runs(); n++ {
		slot := plan.Slot(n, 1)
		throughput, p99 := 80000., 0.0004
		if s.record.Cells[slot.Variant] == "appendfsync=always,test=set" {
			throughput, p99 = 20000, 0.002
		}
		s.record.Runs = append(s.record.Runs, experiment.RecordedRun{
			Cell: slot.Variant, Round: slot.Round, LoadTest: children.RunName(e.Name, n), Start: runStart.Add(time.Duration(n) * time.Minute), Server: "redis 7.0.15",
			Values: map[string]experiment.Value{"throughput": around(throughput), "latencyP99": around(p99)},
		})
	}
	s.condition(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "24 runs of 4 cells")
	e.Status.Results = children.ExperimentRecordName(e.Name)
	return s
}

func (s *storedExperiment) condition(complete metav1.ConditionStatus, reason, message string) {
	s.object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: complete, Reason: reason, Message: message}}
}

// stored is the ConfigMap with the record.
func (s *storedExperiment) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	data, err := s.record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return children.ExperimentRecord(s.object, data)
}

// file is what kubectl saves of both.
func (s *storedExperiment) file(t *testing.T) string {
	t.Helper()
	return fileWith(t, asYAML(t, asList(s.object, s.stored(t))))
}

func fileWith(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fsync.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// golden compares text with a file of testdata.
func isGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	golden.Compare(t, file, got)
}

func TestCompareExperiment(t *testing.T) {
	t.Parallel()
	complete := newStored(t, nil)
	running := newStored(t, nil)
	running.record.Runs = running.record.Runs[:14]
	running.record.Runs[3].Inconclusive, running.record.Runs[3].Values = "its verdict is Inconclusive", nil
	running.condition(metav1.ConditionFalse, "Running", "run 15 of 24: appendfsync=no,test=get")
	one := newStored(t, func(s *v1alpha1.RedisExperimentSpec) {
		s.Matrix = s.Matrix[:1]
		s.Baseline = map[string]v1alpha1.ValueName{"appendfsync": "always"} // not the first cell
	})
	for _, test := range []struct {
		golden string
		of     *storedExperiment
		code   int
		args   []string
	}{
		{"compare_experiment.txt", complete, cli.ExitOK, nil},
		{"compare_experiment.md", complete, cli.ExitOK, []string{"-o", "markdown"}},
		{"compare_experiment.json", complete, cli.ExitOK, []string{"-o", "json"}},
		{"compare_experiment_required.txt", complete, cli.ExitFailed, []string{"--require", "NotWorse"}},
		{"compare_experiment_running.txt", running, cli.ExitError, nil},
		{"compare_experiment_running.md", running, cli.ExitError, []string{"-o", "markdown"}},
		{"compare_experiment_one_baseline.txt", one, cli.ExitOK, nil},
	} {
		code, out, stderr := called(append([]string{"redquake", "compare", test.of.file(t)}, test.args...)...)
		if code != test.code || stderr != "" {
			t.Errorf("%s: exit code %d, want %d, stderr %q", test.golden, code, test.code, stderr)
		}
		isGolden(t, test.golden, out)
		if page, err := os.ReadFile("../../docs/cli.md"); err != nil || test.golden == "compare_experiment.txt" && !strings.Contains(string(page), out) {
			t.Errorf("docs/cli.md shows another table than\n%s (%v)", out, err)
		}
	}
}

// later is the experiment again, on other days: SET has become slower by a third.
func later(t *testing.T) *storedExperiment {
	t.Helper()
	s := newStored(t, nil)
	s.object.Name, s.object.UID = "fsync-2", "another"
	for i := range s.record.Runs {
		run := &s.record.Runs[i]
		run.Start = run.Start.Add(24 * time.Hour)
		if strings.HasSuffix(s.record.Cells[run.Cell], "test=set") {
			run.Values["throughput"] = experiment.Value{Value: run.Values["throughput"].Value * 2 / 3}
		}
	}
	return s
}

// Of two experiments each cell of the second is compared with itself in the first.
func TestCompareTwoExperiments(t *testing.T) {
	t.Parallel()
	before, after := newStored(t, nil).file(t), later(t)
	code, out, stderr := called("redquake", "compare", before, after.file(t))
	if code != cli.ExitOK || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	isGolden(t, "compare_experiment_two.txt", out)
	for require, want := range map[string]int{"None": cli.ExitOK, "NotWorse": cli.ExitFailed, "Same": cli.ExitFailed} {
		if code, _, stderr := called("redquake", "compare", before, after.file(t), "--require", require); code != want || want != cli.ExitOK && !strings.Contains(stderr, "throughput of appendfsync=no,test=set is Regressed") {
			t.Errorf("--require %s: exit code %d, stderr %q", require, code, stderr)
		}
	}
	if code, _, stderr := called("redquake", "compare", after.file(t), before, "--require", "NotWorse"); code != cli.ExitOK {
		t.Errorf("improved: exit code %d, stderr %q", code, stderr)
	}
	again := later(t)
	again.object.Name = "fsync" // as of a schedule on two clusters
	if _, out, _ := called("redquake", "compare", before, again.file(t)); !strings.HasPrefix(out, "Compared with "+before+"\n") {
		t.Errorf("two of one name:\n%s", out)
	}
	running := later(t)
	running.record.Runs = running.record.Runs[:20]
	running.condition(metav1.ConditionFalse, "Running", "run 21 of 24")
	if code, out, stderr := called("redquake", "compare", before, running.file(t), "--require", "NotWorse"); code != cli.ExitError || stderr != "" || !strings.HasPrefix(out, "Experiment fsync-2, provisional: 20 of 24 runs, compared with fsync\n") || strings.Contains(out, "Regressed") {
		t.Errorf("one that runs: exit code %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	others := newStored(t, func(s *v1alpha1.RedisExperimentSpec) { s.Matrix[0].Name = "aof" })
	others.record.Runs[0].Start = runStart
	for want, args := range map[string][]string{
		" are the same experiment\n": {before, before},
		" is not complete, so that nothing can be compared with it: Running: run 21 of 24\n": {running.file(t), before},
		" has none of the cells of ": {before, others.file(t)},
	} {
		if code, out, stderr := called(append([]string{"redquake", "compare"}, args...)...); code != cli.ExitError || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, out, stderr, want)
		}
	}
}

// Without all runs no reader of the JSON finds what would be a verdict.
func TestCompareExperimentProvisional(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*storedExperiment){
		"running": func(s *storedExperiment) { s.condition(metav1.ConditionFalse, "Running", "run 24 of 24") },
		"aborted": func(s *storedExperiment) {
			s.condition(metav1.ConditionTrue, v1alpha1.ReasonAborted, "ended by spec.abort")
		},
		"failed":                   func(s *storedExperiment) { s.condition(metav1.ConditionFalse, v1alpha1.ReasonRevertFailed, "a fault") },
		"saved before the end":     func(s *storedExperiment) { s.record.Runs = s.record.Runs[:23] },
		"without a status":         func(s *storedExperiment) { s.object.Status = v1alpha1.RedisExperimentStatus{} },
		"without any run that end": func(s *storedExperiment) { s.record.Runs = nil },
	} {
		s := newStored(t, nil)
		edit(s)
		code, out, stderr := called("redquake", "compare", s.file(t), "-o", "json")
		var table result.Comparisons
		if err := json.Unmarshal([]byte(out), &table); err != nil || code != cli.ExitError || stderr != "" {
			t.Fatalf("%s: exit code %d, stderr %q, %v", name, code, stderr, err)
		}
		if e := table.Experiment; e == nil || e.Verdict != "" || e.Message == "" || e.Runs != 24 || e.Finished != len(s.record.Runs) {
			t.Errorf("%s: experiment %+v", name, e)
		}
		if len(table.Comparisons) == 0 {
			t.Errorf("%s: no figures", name)
		}
		for _, c := range table.Comparisons {
			if c.Verdict != "" || c.Message != "" || c.Reason != "" || c.NotWorse != nil || c.Same != nil || c.P != nil || c.Needs != 0 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// The exit code is that of the verdict: of the runs' objectives, of what the spec or --require asks of the comparison, and of an earlier run.
func TestCompareExperimentVerdict(t *testing.T) {
	t.Parallel()
	requireNotWorse := func(s *v1alpha1.RedisExperimentSpec) { s.Compare.Require = v1alpha1.RequireNotWorse }
	noRegression := func(s *v1alpha1.RedisExperimentSpec) {
		s.CompareTo, s.Objectives = &v1alpha1.EarlierRun{Run: "before"}, &v1alpha1.ExperimentObjectives{NoRegression: true}
	}
	regressed := func(s *storedExperiment) {
		s.object.Status.Earlier = &v1alpha1.EarlierComparison{Run: "before", Comparison: []v1alpha1.ComparisonResult{
			{Cell: "appendfsync=no,test=set", Figure: "throughput", Verdict: v1alpha1.ComparisonRegressed, Message: "throughput 20% lower than before"},
		}}
	}
	noisy := func(s *storedExperiment) {
		for i := range s.record.Runs {
			s.record.Runs[i].Values = map[string]experiment.Value{"throughput": {Value: 1000 * math.Exp(float64(i*7%5))}}
		}
	}
	for name, test := range map[string]struct {
		spec func(*v1alpha1.RedisExperimentSpec)
		edit func(*storedExperiment)
		args []string
		code int
		want string
	}{
		"nothing required":            {nil, nil, nil, cli.ExitOK, "Verdict     Pass\n"},
		"not worse, by the spec":      {requireNotWorse, nil, nil, cli.ExitFailed, "Verdict     Fail: appendfsync=always,test=set: throughput 7"},
		"nothing, by the flag":        {requireNotWorse, nil, []string{"--require", "None"}, cli.ExitOK, "Verdict     Pass\n"},
		"the same, by the flag":       {nil, nil, []string{"--require", "Same"}, cli.ExitFailed, "Verdict     Fail: appendfsync=always,test=set: "},
		"the runs cannot tell":        {requireNotWorse, noisy, nil, cli.ExitError, "Verdict     Inconclusive: "},
		"an objective of a run":       {nil, func(s *storedExperiment) { s.record.Runs[2].Missed, s.record.Runs[2].Failed = true, "p99" }, nil, cli.ExitFailed, "1 of 6 runs of appendfsync="},
		"a regression":                {noRegression, regressed, nil, cli.ExitFailed, "appendfsync=no,test=set has regressed: throughput 20% lower than before"},
		"a regression, only reported": {nil, regressed, nil, cli.ExitOK, "Verdict     Pass\n"},
	} {
		s := newStored(t, test.spec)
		if test.edit != nil {
			test.edit(s)
		}
		code, out, stderr := called(append([]string{"redquake", "compare", s.file(t)}, test.args...)...)
		if code != test.code || stderr != "" || !strings.Contains(out, test.want) {
			t.Errorf("%s: exit code %d, want %d, stderr %q, want %q in\n%s", name, code, test.code, stderr, test.want, out)
		}
	}
}

func TestCompareExperimentOfACluster(t *testing.T) {
	t.Parallel()
	s := newStored(t, nil)
	other := newStored(t, nil)
	other.object.Name, other.object.Status.Results = "fresh", ""
	other.condition(metav1.ConditionFalse, "Checking", "0 of 3 dry runs")
	deleted := other.stored(t) // that of an experiment of the same name that was deleted
	deleted.OwnerReferences[0].UID = "another"
	lost := newStored(t, nil)
	lost.object.Name = "lost"
	schedule := newSchedule()
	schedule.Status.History = []v1alpha1.ScheduledRun{{Name: "nightly-1"}}
	const api = "/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperiments/"
	config := cluster(t, map[string]any{
		api + "fsync": s.object, "/api/v1/namespaces/shop/configmaps/fsync-experiment": s.stored(t),
		api + "fresh": other.object, "/api/v1/namespaces/shop/configmaps/fresh-experiment": deleted,
		api + "lost": lost.object,
		"/apis/redquake.dev/v1alpha1/namespaces/shop/redisexperimentschedules/nightly": schedule,
	})
	_, want, _ := called("redquake", "compare", s.file(t))
	for _, arg := range []string{"redisexperiment/fsync", "rexp/fsync", "redisexperiments/fsync", "redisexperiment.redquake.dev/fsync"} {
		if code, out, stderr := called("redquake", "compare", arg, "--kubeconfig", config); code != cli.ExitOK || stderr != "" || out != want {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%swant\n%s", arg, code, stderr, out, want)
		}
	}
	code, out, stderr := called("redquake", "compare", "rexp/fresh", "--kubeconfig", config)
	if code != cli.ExitError || stderr != "" || !strings.HasPrefix(out, "Experiment fresh, provisional: 0 of 24 runs, ") || !strings.Contains(out, "Checking: 0 of 3 dry runs\n") {
		t.Errorf("before the first run: exit code %d, stderr %q, stdout\n%s", code, stderr, out)
	}
	for arg, want := range map[string]string{
		"rexp/none":     "there is no RedisExperiment none in namespace shop\n",
		"rexp/lost":     "the record of RedisExperiment lost, ConfigMap lost-experiment, is missing: kubectl get ",
		"rexp/../fsync": `"../fsync" is no name of a RedisExperiment`,
		"rexps/nightly": "RedisExperimentSchedule nightly is compared by its runs, which are RedisExperiments: name one of them, such as redisexperiment/nightly-1\n",
		"rexps/none":    "there is no RedisExperimentSchedule none in namespace shop\n",
		"rexps/no_name": `"no_name" is no name of a RedisExperimentSchedule`,
		"rexp/":         `"" is no name of a RedisExperiment`,
		"fsync":         "there is no file fsync: an experiment of the cluster is redisexperiment/NAME, and runs are NAME=RUNS",
	} {
		if code, out, stderr := called("redquake", "compare", arg, "--kubeconfig", config); code != cli.ExitError || out != "" || !strings.HasPrefix(stderr, "redquake compare: "+want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", arg, code, out, stderr, want)
		}
	}
}

// What was saved may be documents or a list, with or without what is not needed; and a spec alone shows what will be compared.
func TestCompareExperimentFiles(t *testing.T) {
	t.Parallel()
	s := newStored(t, nil)
	_, want, _ := called("redquake", "compare", s.file(t))
	results, faults := storedObjects(t)
	unowned := s.stored(t)
	unowned.OwnerReferences = nil
	newer := map[string]any{} // its status has a field that this program does not know
	text, err := json.Marshal(s.object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &newer); err != nil {
		t.Fatal(err)
	}
	newer["status"].(map[string]any)["later"] = 1
	for name, text := range map[string]string{
		"documents":                  asYAML(t, s.object, s.stored(t)),
		"the record first":           asYAML(t, s.stored(t), s.object),
		"with the rest":              asYAML(t, append(faults, results, asList(s.object, s.stored(t)))...),
		"without owners":             asYAML(t, s.object, unowned),
		"with fields of the cluster": asYAML(t, newer, s.stored(t)),
	} {
		if code, out, stderr := called("redquake", "compare", fileWith(t, text)); code != cli.ExitOK || stderr != "" || out != want {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%s", name, code, stderr, out)
		}
		var out, stderr bytes.Buffer
		code := execute(t.Context(), []string{"redquake", "compare", "-"}, cli.Streams{In: strings.NewReader(text), Out: &out, Err: &stderr})
		if code != cli.ExitOK || out.String() != want {
			t.Errorf("%s from standard input: exit code %d, stderr %q", name, code, &stderr)
		}
	}
	spec := fmt.Sprintf("apiVersion: %s\nkind: RedisExperiment\nmetadata: {name: planned}\nspec:%s", v1alpha1.GroupVersion, strings.ReplaceAll(strings.Replace(experimentSpec, "repeat: 6", "repeat: 2", 1), "\n", "\n  "))
	code, out, stderr := called("redquake", "compare", fileWith(t, spec))
	if code != cli.ExitError || stderr != "" {
		t.Errorf("a spec: exit code %d, stderr %q", code, stderr)
	}
	isGolden(t, "compare_experiment_planned.txt", out)
	samples, err := filepath.Glob("../../config/samples/experiment*.yaml")
	if err != nil || len(samples) < 4 {
		t.Fatalf("samples %v, %v", samples, err)
	}
	for _, sample := range samples {
		if code, out, stderr := called("redquake", "compare", sample); code != cli.ExitError || stderr != "" || !strings.Contains(out, ", provisional: 0 of ") || strings.Contains(out, "Note ") {
			t.Errorf("%s: exit code %d, stderr %q, stdout\n%s", sample, code, stderr, out)
		}
	}
}

func TestCompareExperimentRefuses(t *testing.T) {
	t.Parallel()
	s := newStored(t, nil)
	with := func(edit func(*storedExperiment)) string {
		other := newStored(t, nil)
		edit(other)
		return asYAML(t, other.object, other.stored(t))
	}
	second := newStored(t, nil)
	second.object.Name = "second"
	schedule := newSchedule()
	schedule.Status.History = []v1alpha1.ScheduledRun{{Name: "nightly-1"}, {Name: "nightly-2"}}
	damaged := s.stored(t)
	damaged.BinaryData[children.ExperimentRecordKey] = []byte("runs")
	foreign := s.stored(t)
	foreign.OwnerReferences[0].UID = "another"
	for name, test := range map[string]struct {
		text string
		args []string
		want string
	}{
		"the experiment alone": {asYAML(t, s.object), nil, "FILE: the record of RedisExperiment fsync, ConfigMap fsync-experiment, is missing: kubectl get redisexperiment/fsync configmap/fsync-experiment -o yaml saves both\n"},
		"the record alone":     {asYAML(t, s.stored(t)), nil, "FILE: contains a record, but not its RedisExperiment, which says what is compared: kubectl get redisexperiment/fsync "},
		"of another one":       {asYAML(t, s.object, foreign), nil, "FILE: the record of RedisExperiment fsync"},
		"neither":              {"kind: ConfigMap\n", nil, "FILE: contains no RedisExperiment; of runs, the arguments are NAME=RUNS\n"},
		"nothing":              {"", nil, "FILE: contains no RedisExperiment"},
		"no YAML":              {"a: [", nil, "FILE: is neither a record nor YAML: "},
		"two experiments":      {asYAML(t, s.object, second.object), nil, "FILE: contains more than one RedisExperiment (fsync and second): keep one a file\n"},
		"a schedule": {asYAML(t, schedule), nil,
			"FILE: RedisExperimentSchedule nightly is compared by its runs, which are RedisExperiments: name one of them, such as redisexperiment/nightly-2\n"},
		"no matrix":     {with(func(s *storedExperiment) { s.object.Spec.Matrix = nil }), nil, "FILE: decode a RedisExperiment: "},
		"a bad spec":    {with(func(s *storedExperiment) { s.object.Spec.Compare.Figures = []v1alpha1.ComparedFigure{"tps"} }), nil, "FILE: decode a RedisExperiment: "},
		"a bad status":  {strings.Replace(asYAML(t, s.object), "status:\n", "status:\n  seed: {}\n", 1), nil, "FILE: decode a RedisExperiment: json: cannot unmarshal object into Go struct field "},
		"no such field": {with(func(s *storedExperiment) { s.object.Spec.Matrix[1].Path = "load.user" }), nil, "FILE: RedisExperiment fsync: "},
		"a cell that the spec does not have": {with(func(s *storedExperiment) { s.record.Cells = append(s.record.Cells, "appendfsync=\x1b[2J") }), nil,
			`FILE: ConfigMap fsync-experiment: the record has a cell "appendfsync=\x1b[2J" that the spec does not have: it is of another experiment`},
		"fewer cells":      {with(func(s *storedExperiment) { s.record.Cells, s.record.Runs = s.record.Cells[:2], nil }), nil, "FILE: ConfigMap fsync-experiment: the record has 2 cells, and the spec 4"},
		"a run of no cell": {with(func(s *storedExperiment) { s.record.Runs[3].Cell = 4 }), nil, "FILE: ConfigMap fsync-experiment: read the experiment's record: run 4 is of cell 4 of 4"},
		"a run of no round": {with(func(s *storedExperiment) { s.record.Runs[3].Round = -1 }), nil,
			"FILE: ConfigMap fsync-experiment: run 4 of the record is of round -1 of 6"},
		"too many runs": {with(func(s *storedExperiment) { s.record.Runs = append(s.record.Runs, s.record.Runs[0]) }), nil,
			"FILE: ConfigMap fsync-experiment: the record has more runs of appendfsync="},
		"a newer version":   {with(func(s *storedExperiment) { s.record.Version = 2 }), nil, "FILE: ConfigMap fsync-experiment: the experiment's record has version 2, later than 1: it is of a newer version of Redquake\n"},
		"a damaged record":  {asYAML(t, s.object, damaged), nil, "FILE: ConfigMap fsync-experiment: read the experiment's record: "},
		"other figures":     {s.text(t), []string{"--figure", "latencyP99"}, "--figure and --margin: those of an experiment are in its spec.compare"},
		"other margins":     {s.text(t), []string{"--margin", "throughput=5%"}, "--figure and --margin: those of an experiment are in its spec.compare"},
		"another format":    {s.text(t), []string{"-o", "yaml"}, `--output: "yaml" is none of text, markdown and json`},
		"cells besides":     {s.text(t), []string{"a=b.json"}, `argument "FILE" must be NAME=RUNS`},
		"three experiments": {s.text(t), []string{"a", "b"}, "accepts between 1 and 2 arg(s), received 3"},
	} {
		file := fileWith(t, test.text)
		code, out, stderr := called(append([]string{"redquake", "compare", file}, test.args...)...)
		if want := "redquake compare: " + strings.Replace(test.want, "FILE", file, 1); code != cli.ExitError || out != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%swant\n%s", name, code, out, stderr, want)
		}
	}
}

func (s *storedExperiment) text(t *testing.T) string {
	t.Helper()
	return asYAML(t, s.object, s.stored(t))
}

// A file without an end is not read into memory as a whole, and text of a record does not move the cursor of a terminal.
func TestCompareExperimentHostile(t *testing.T) {
	t.Parallel()
	if _, err := readBounded(endless{}, "standard input", 2<<20); err == nil || err.Error() != "standard input is longer than 2 MiB" {
		t.Errorf("a stream without an end: %v", err)
	}
	s := newStored(t, nil)
	s.record.Runs[0].Inconclusive, s.record.Runs[1].LoadTest, s.record.Runs[1].Inconclusive = "\x1b[2J", "\x1b[1A", "why"
	s.record.Runs[2].Missed, s.record.Runs[2].Failed = true, "\x1b]0;title\a"
	for _, format := range []string{"text", "markdown"} {
		if code, out, _ := called("redquake", "compare", s.file(t), "-o", format); code != cli.ExitFailed || strings.ContainsAny(out, "\x1b\a") {
			t.Errorf("exit code %d, %q", code, out)
		}
	}
}

// endless is a stream that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
