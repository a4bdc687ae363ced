package matrix

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
)

var update = flag.Bool("update", false, "write the golden files")

var begin = time.Date(2026, 11, 22, 13, 10, 0, 0, time.UTC)

const fsyncSpec = `
template:
  spec:
    target: {service: {name: redis, port: 6379}}
    load: {users: 1000, duration: 90s}
    workload: {benchmark: {tests: [set]}, keyspace: {prefix: "bench:", keys: 10000}}
    verify: {acknowledgedWrites: true}
faults:
- name: kill
  spec: {action: {type: PodKill}, select: {role: Primary}, recoveryDeadline: 2m}
matrix:
- name: appendfsync
  settings:
  - {name: "no", config: {appendfsync: "no"}}
  - {name: everysec, config: {appendfsync: everysec}}
  - {name: always, config: {appendfsync: always}}
- {name: users, path: load.users, values: [1000, 2000, 3000]}
repeat: 6
order: Shuffled
compare: {figures: [throughput, latencyP99, outage, recoveryTime], require: None}
`

// simulated is an experiment whose runs have the figures that level says, with noise.
func simulated(t testing.TB, spec string, level func(cell map[string]string) map[string]float64, edit func(*Experiment)) *Experiment {
	t.Helper()
	o := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: "fsync-by-users", Namespace: "redquake-demo"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	plan, err := experiment.NewPlan(&o.Spec)
	if err != nil {
		t.Fatal(err)
	}
	e := &Experiment{Object: o, Plan: plan, Record: &experiment.Record{Version: experiment.RecordVersion, Cells: plan.Names()}, Details: map[string]*Detail{}}
	o.Status.Seed = new(int64(11))
	random := rand.New(rand.NewPCG(11, 3))
	for n := 1; n <= plan.Runs(); n++ {
		slot := plan.Slot(n, 11)
		run := experiment.RecordedRun{
			Cell: slot.Variant, Round: slot.Round, LoadTest: fmt.Sprintf("%s-%04d", o.Name, n), Server: "redis 7.0.15", Start: begin.Add(time.Duration(n-1) * 2 * time.Minute),
			End: begin.Add(time.Duration(n)*2*time.Minute - 10*time.Second), Values: map[string]experiment.Value{},
		}
		figures := level(plan.Variants[slot.Variant].Values)
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			run.Values[name] = experiment.Value{Value: figures[name] * math.Exp(0.02*random.NormFloat64())}
		}
		e.Record.Runs = append(e.Record.Runs, run)
	}
	e.condition(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, fmt.Sprintf("%d runs", plan.Runs()))
	o.Status.Results = o.Name + "-experiment"
	if edit != nil {
		edit(e)
	}
	return e
}

func (e *Experiment) condition(kind string, is metav1.ConditionStatus, reason, message string) {
	e.Object.Status.Conditions = append(slices.DeleteFunc(e.Object.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind }),
		metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
}

// fsync is what appendfsync costs: always two thirds of the throughput, everysec nothing.
func fsync(cell map[string]string) map[string]float64 {
	users := map[string]float64{"1000": 1, "2000": 1.13, "3000": 1.15}[cell["users"]]
	f := map[string]float64{"throughput": 24500 * users, "latencyP99": 0.0577 * users * users, "outage": 2.44, "recoveryTime": 2.59, "lostWrites": 0}
	if cell["appendfsync"] == "always" {
		f["throughput"] *= 0.33
		f["latencyP99"] *= 3
		f["outage"] *= 0.78
	}
	return f
}

// withDetails adds curves and phases as the load tests of the runs would have them.
func withDetails(e *Experiment) {
	w := WindowOf(e.Record)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range e.Record.Runs {
		run := &e.Record.Runs[i]
		rate, outage := run.Values["throughput"].Value, run.Values["outage"].Value
		counts := make([]float64, 900)
		for k := range counts {
			counts[k] = rate / 10 * (1 + 0.02*random.NormFloat64())
			if at := float64(k)/10 - 30; at >= 0.1 && at < 0.1+outage {
				counts[k] = 0
			}
		}
		d := &Detail{Curve: NewCurve(w, 100*time.Millisecond, counts, 30*time.Second), Begins: new(68 * time.Millisecond), Bottleneck: "RedisMainThread", ReadBack: 27000}
		for _, p := range []struct {
			name   string
			source v1alpha1.PhaseSource
			share  float64
		}{{"FirstError", "Client", .03}, {"PodDeleted", "Kubernetes", .06}, {"ContainerStarted", "Kubernetes", .38}, {"DatasetLoaded", "Redis", .25}, {"Ready", "Kubernetes", .08}, {"FirstSuccess", "Client", .16}, {"Recovered", "Client", .04}} {
			us := v1alpha1.Microseconds(p.share * run.Values["recoveryTime"].Value * 1e6)
			d.Phases = append(d.Phases, v1alpha1.Phase{Name: p.name, Source: p.source, Duration: &v1alpha1.BoundedDuration{Value: us, AtLeast: us, AtMost: us}})
		}
		e.Details[run.LoadTest] = d
	}
}

// forms are all forms of a report.
func forms(t testing.TB, d *report.Document) map[string]string {
	t.Helper()
	all := map[string]string{}
	for extension, write := range map[string]func(*strings.Builder) error{
		"html":  func(b *strings.Builder) error { return page.Write(b, d) },
		"md":    func(b *strings.Builder) error { return report.WriteMarkdown(b, d) },
		"json":  func(b *strings.Builder) error { return report.WriteJSON(b, d) },
		"csv":   func(b *strings.Builder) error { return report.WriteCSV(b, d) },
		"junit": func(b *strings.Builder) error { return report.WriteJUnit(b, d) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		all[extension] = b.String()
	}
	return all
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got, -update writes it:\n%s", name, diff)
	}
}

func reported(t testing.TB, e *Experiment) *report.Document {
	t.Helper()
	d, err := e.Report("")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestExperimentReport(t *testing.T) {
	t.Parallel()
	e := simulated(t, fsyncSpec, fsync, func(e *Experiment) {
		withDetails(e)
		e.Record.Runs[11].Inconclusive = "its verdict is Inconclusive: LoadGeneratorSaturated: a load pod used 97% of its CPU limit"
	})
	for form, text := range forms(t, reported(t, e)) {
		golden(t, "experiment."+form, text)
	}
}
