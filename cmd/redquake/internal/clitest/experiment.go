package clitest

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Experiment is an experiment that has ended: appendfsync no and always, with SET and GET, and its
// record.
type Experiment struct {
	Object *v1alpha1.RedisExperiment
	Record *experiment.Record
}

// ExperimentSpec is the spec of an experiment with 4 cells: appendfsync no and always, with SET and
// GET.
const ExperimentSpec = `
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

// NewSchedule is a schedule of such an experiment, as it is written in a file.
func NewSchedule() *v1alpha1.RedisExperimentSchedule {
	s := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{
		Name:      "nightly",
		Namespace: "shop",
		UID:       types.UID("s-uid"),
	}}
	s.APIVersion = v1alpha1.GroupVersion.String()
	s.Kind = "RedisExperimentSchedule"
	s.Spec.Schedule, s.Spec.TimeZone = "0 3 * * *", new("Europe/Berlin")
	err := yaml.UnmarshalStrict([]byte(ExperimentSpec), &s.Spec.Template.Spec)
	if err != nil {
		panic(err)
	}
	return s
}

// NewExperiment runs all of the rounds; always makes SET four times slower. edit changes the spec
// before.
func NewExperiment(t *testing.T, edit func(*v1alpha1.RedisExperimentSpec)) *Experiment {
	t.Helper()
	e := &v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{
			Name:      "fsync",
			Namespace: "shop",
			UID:       types.UID("e-uid"),
		},
	}
	e.APIVersion, e.Kind = v1alpha1.GroupVersion.String(), "RedisExperiment"
	err := yaml.UnmarshalStrict([]byte(ExperimentSpec), &e.Spec)
	if err != nil {
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
	s := &Experiment{e, &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}}
	for n := 1; n <= plan.Runs(); n++ {
		slot := plan.Slot(n, 1)
		throughput, p99 := 80000., 0.0004
		if s.Record.Cells[slot.Variant] == "appendfsync=always,test=set" {
			throughput, p99 = 20000, 0.002
		}
		s.Record.Runs = append(s.Record.Runs, experiment.RecordedRun{
			Cell:     slot.Variant,
			Round:    slot.Round,
			LoadTest: children.RunName(e.Name, n),
			Start:    Start.Add(time.Duration(n) * time.Minute),
			Server:   "redis 7.0.15",
			Values: map[string]experiment.Value{
				"throughput": around(throughput),
				"latencyP99": around(p99),
			},
		})
	}
	s.SetComplete(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "24 runs of 4 cells")
	e.Status.Results = children.ExperimentRecordName(e.Name)
	return s
}

// SetComplete sets the condition Complete, and no other one.
func (s *Experiment) SetComplete(complete metav1.ConditionStatus, reason, message string) {
	s.Object.Status.Conditions = []metav1.Condition{
		{
			Type:    v1alpha1.ConditionComplete,
			Status:  complete,
			Reason:  reason,
			Message: message,
		},
	}
}

// ConfigMap is the ConfigMap with the record.
func (s *Experiment) ConfigMap(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	data, err := s.Record.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return children.ExperimentRecord(s.Object, data)
}

// File is what kubectl saves of both.
func (s *Experiment) File(t *testing.T) string {
	t.Helper()
	return FileWith(t, AsYAML(t, AsList(s.Object, s.ConfigMap(t))))
}

// FileWith returns a new file with a text.
func FileWith(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fsync.yaml")
	err := os.WriteFile(file, []byte(text), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Text is the experiment and its record as YAML documents.
func (s *Experiment) Text(t *testing.T) string {
	t.Helper()
	return AsYAML(t, s.Object, s.ConfigMap(t))
}

// steadyRecord is the record of a run of 20 s at 1,000/s.
func steadyRecord(t *testing.T, start time.Time) *merged.Series {
	t.Helper()
	s := merged.New("run", start, 100*time.Millisecond, []string{"set"}, 1)
	for i := range 200 {
		iv := &record.Interval{
			Index:      int64(i),
			Pods:       1,
			Ops:        make([]record.Op, 1),
			FirstError: -1,
			LastError:  -1,
		}
		iv.Ops[0].OK = 100
		if err := s.Add(0, iv); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish(0)
	return s
}

// RunObjects are the load test of a run, and its record.
func (s *Experiment) RunObjects(
	t *testing.T, number int,
) (test *v1alpha1.RedisLoadTest, results any) {
	t.Helper()
	run := &s.Record.Runs[number-1]
	test = &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{
		Name:      run.LoadTest,
		Namespace: "shop",
		Labels:    map[string]string{v1alpha1.LabelExperiment: s.Object.Name},
	}}
	test.APIVersion, test.Kind = v1alpha1.GroupVersion.String(), "RedisLoadTest"
	test.Status.Bottleneck = &v1alpha1.Bottleneck{Component: "Disk"}
	data, err := steadyRecord(t, run.Start).Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	return test, children.ResultsConfigMap(test, data)
}
