package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/histogram"
)

// exporter is the metrics of a process that leads, with objects that a test changes.
type exporter struct {
	*Metrics
	*prometheus.Registry
	objects Objects
	now     time.Time
	stop    func()
}

func newExporter(t *testing.T) *exporter {
	t.Helper()
	e := &exporter{Registry: prometheus.NewPedanticRegistry(), now: time.Unix(1_000_000, 0)}
	e.Metrics = New(func() time.Time { return e.now }, func() Sessions {
		return Sessions{
			Count:       2,
			RecordBytes: 1000,
			RecordLimit: 4000,
		}
	})
	e.MustRegister(e.Metrics)
	e.stop = e.Lead(Leader{Objects: func(context.Context) (*Objects, error) { return &e.objects, nil }})
	return e
}

// names are the families that a registry has, each with the number of its series.
func (e *exporter) names(t *testing.T) map[string]int {
	t.Helper()
	families, err := e.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, f := range families {
		n[f.GetName()] = len(f.Metric)
	}
	return n
}

func at(second int64) *metav1.MicroTime {
	return new(metav1.NewMicroTime(time.Unix(second, 250_000_000)))
}

func load(name string) v1alpha1.RedisLoadTest {
	return v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Status: v1alpha1.RedisLoadTestStatus{
			StartTime: at(50),
			Progress:  25,
			LoadPods:  &v1alpha1.LoadPodsStatus{Desired: 2, Ready: 1, Lost: 1},
		},
	}
}

func nightly(name string) v1alpha1.RedisExperimentSchedule {
	return v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.RedisExperimentScheduleSpec{Schedule: "0 3 * * *"},
		Status: v1alpha1.RedisExperimentScheduleStatus{Skipped: 3, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionRegressed, Status: metav1.ConditionTrue},
		}},
	}
}

func matrix(name string) v1alpha1.RedisExperiment {
	return v1alpha1.RedisExperiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Status: v1alpha1.RedisExperimentStatus{
			Progress:   &v1alpha1.ExperimentProgress{Runs: 12, Finished: 4, Failed: 1},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionRegressed, Status: metav1.ConditionTrue}},
			Comparison: []v1alpha1.ComparisonResult{
				{Verdict: v1alpha1.ComparisonWorse},
				{Verdict: v1alpha1.ComparisonSame},
				{Verdict: v1alpha1.ComparisonWorse},
			},
		},
	}
}

// interval is the record of a load pod, with a reply in 3 ms and errors.
func interval() *record.Interval {
	var h histogram.Histogram
	h.Record(int64(3 * time.Millisecond))
	op := record.Op{Latency: h.AppendTo(nil)}
	op.OK, op.Fail, op.Unknown, op.Dropped = 1, 2, 3, 4
	op.Errors[record.ClassReadOnly], op.Errors[record.ClassTimeout] = 2, 3
	return &record.Interval{Ops: []record.Op{op}}
}

// full has every metric.
func full(t *testing.T) *exporter {
	e := newExporter(t)
	e.objects = Objects{
		LoadTests:   []v1alpha1.RedisLoadTest{load("cache")},
		Faults:      []v1alpha1.RedisFault{kill("hang")},
		Experiments: []v1alpha1.RedisExperiment{matrix("sizes")},
		Schedules:   []v1alpha1.RedisExperimentSchedule{nightly("nightly")},
	}
	e.LoadOpened("cache", []string{"get"}).Add(interval())
	e.RunRecorded(&e.objects.Schedules[0], v1alpha1.VerdictPass)
	e.FaultStored(v1alpha1.FaultHang, &v1alpha1.RedisFaultStatus{}, &e.objects.Faults[0].Status)
	return e
}

// Names and help pass Prometheus's lint, and everything that is defined is exported.
func TestLint(t *testing.T) {
	e := full(t)
	problems, err := testutil.GatherAndLint(e.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	names := e.names(t)
	for _, d := range Definitions() {
		if names[d.Name] == 0 {
			t.Errorf("%s is not exported", d.Name)
		}
		delete(names, d.Name)
		if !strings.Contains(d.Example, d.Name) || d.Help == "" || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: help %q, example %q", d.Name, d.Help, d.Example)
		}
	}
	if len(names) > 0 {
		t.Errorf("exported, but not defined: %v", names)
	}
}

func TestObjects(t *testing.T) {
	e := full(t)
	want := `
redquake_experiment_comparisons{experiment="sizes",namespace="shop",verdict="Better"} 0
redquake_experiment_comparisons{experiment="sizes",namespace="shop",verdict="Inconclusive"} 0
redquake_experiment_comparisons{experiment="sizes",namespace="shop",verdict="Same"} 1
redquake_experiment_comparisons{experiment="sizes",namespace="shop",verdict="Worse"} 2
redquake_experiment_info{experiment="sizes",namespace="shop",state="Pending",verdict=""} 1
redquake_experiment_progress_runs{experiment="sizes",namespace="shop",state="Failed"} 1
redquake_experiment_progress_runs{experiment="sizes",namespace="shop",state="Finished"} 4
redquake_experiment_progress_runs{experiment="sizes",namespace="shop",state="Inconclusive"} 0
redquake_experiment_progress_runs{experiment="sizes",namespace="shop",state="Planned"} 12
redquake_experiment_regressed{experiment="sizes",namespace="shop"} 1
redquake_fault_dip_ratio{fault="hang",namespace="shop",type="Hang"} 0.94
redquake_fault_info{effect="Confirmed",fault="hang",loadtest="cache",namespace="shop",state="Complete",type="Hang",verdict="Fail"} 1
redquake_fault_injected_timestamp_seconds{fault="hang",namespace="shop",type="Hang"} 100.25
redquake_fault_lost_writes{fault="hang",namespace="shop",type="Hang"} 7
redquake_fault_outage_seconds{fault="hang",namespace="shop",type="Hang"} 0.4
redquake_fault_overstayed_seconds{fault="hang",namespace="shop",type="Hang"} 3
redquake_fault_recovered_timestamp_seconds{fault="hang",namespace="shop",type="Hang"} 140.25
redquake_fault_recovery_seconds{fault="hang",namespace="shop",type="Hang"} 1.1
redquake_fault_reverted_timestamp_seconds{fault="hang",namespace="shop",type="Hang"} 130.25
redquake_fault_reverts_abandoned{fault="hang",namespace="shop",type="Hang"} 1
redquake_fault_reverts_failing{fault="hang",namespace="shop",type="Hang"} 1
redquake_loadtest_info{loadtest="cache",namespace="shop",state="Running",verdict=""} 1
redquake_loadtest_pods{loadtest="cache",namespace="shop",state="Desired"} 2
redquake_loadtest_pods{loadtest="cache",namespace="shop",state="Lost"} 1
redquake_loadtest_pods{loadtest="cache",namespace="shop",state="Ready"} 1
redquake_loadtest_progress_ratio{loadtest="cache",namespace="shop"} 0.25
redquake_loadtest_requests_total{loadtest="cache",namespace="shop",operation="get",outcome="dropped"} 4
redquake_loadtest_requests_total{loadtest="cache",namespace="shop",operation="get",outcome="failed"} 2
redquake_loadtest_requests_total{loadtest="cache",namespace="shop",operation="get",outcome="ok"} 1
redquake_loadtest_requests_total{loadtest="cache",namespace="shop",operation="get",outcome="unknown"} 3
redquake_manager_leading 1
redquake_schedule_info{namespace="shop",schedule="nightly",state="Ready",verdict=""} 1
redquake_schedule_regressed{namespace="shop",schedule="nightly"} 1
redquake_schedule_runs_total{namespace="shop",schedule="nightly",verdict="Fail"} 0
redquake_schedule_runs_total{namespace="shop",schedule="nightly",verdict="Inconclusive"} 0
redquake_schedule_runs_total{namespace="shop",schedule="nightly",verdict="None"} 0
redquake_schedule_runs_total{namespace="shop",schedule="nightly",verdict="Pass"} 1
redquake_schedule_skipped_total{namespace="shop",schedule="nightly"} 3
redquake_manager_record_bytes 1000
redquake_manager_record_limit_bytes 4000
redquake_manager_sessions 2
`
	var text strings.Builder
	for _, d := range Definitions() {
		if strings.Contains(want, "\n"+d.Name+"{") || strings.Contains(want, "\n"+d.Name+" ") {
			fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", d.Name, d.Help, d.Name, d.Kind)
			for line := range strings.Lines(want) {
				if name, _, _ := strings.Cut(strings.ReplaceAll(line, "{", " "), " "); name == d.Name {
					text.WriteString(line)
				}
			}
		}
	}
	var names []string
	for name := range strings.FieldsSeq(want) {
		name, _, labels := strings.Cut(name, "{")
		if (labels || strings.HasPrefix(name, "redquake_")) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if err := testutil.GatherAndCompare(e.Registry, strings.NewReader(text.String()), names...); err != nil {
		t.Error(err)
	}
	if n := e.names(t)["redquake_loadtest_errors_total"]; n != record.NumClasses {
		t.Errorf("%d classes of errors, want all %d from the begin", n, record.NumClasses)
	}
}

// The series of objects end with the objects, also if nothing is reconciled, and with the leadership; counters stay.
func TestSeriesEnd(t *testing.T) {
	empty := newExporter(t).names(t)
	e := full(t)
	e.stop()
	if got := e.names(t); fmt.Sprint(got) != fmt.Sprint(empty) {
		t.Errorf("without the leadership %v, want %v", got, empty)
	}
	if got := testutil.ToFloat64(e.faults.injections.WithLabelValues("Hang")); got != 1 {
		t.Errorf("%v injections after the end of the leadership", got)
	}
	stale := e.stop
	e.stop = e.Lead(Leader{Objects: func(context.Context) (*Objects, error) { return &e.objects, nil }})
	stale()
	if e.names(t)["redquake_fault_info"] != 1 {
		t.Error("the end of an earlier leadership ended this one")
	}
	e.objects = Objects{}
	if got := e.names(t); fmt.Sprint(got) != fmt.Sprint(empty) {
		t.Errorf("after the deletion %v, want %v", got, empty)
	}
}

// A cache that cannot be read costs the series of the objects only.
func TestUnreadableCache(t *testing.T) {
	e := full(t)
	e.Lead(Leader{Objects: func(context.Context) (*Objects, error) { return nil, errors.New("the cache is not started") }})
	if n := e.names(t); n["redquake_fault_info"] != 0 || n["redquake_fault_injections_total"] != len(v1alpha1.FaultTypes) {
		t.Errorf("%v", n)
	}
}

// After 1,000 objects of each kind have come and gone there are as many series as before, and nothing of them is kept.
func TestCardinality(t *testing.T) {
	e := newExporter(t)
	before := e.names(t)
	for i := range 1000 {
		name := fmt.Sprint("object-", i)
		test, broken, schedule := load(name), kill(name), nightly(name)
		e.objects = Objects{
			LoadTests:   []v1alpha1.RedisLoadTest{test},
			Faults:      []v1alpha1.RedisFault{broken},
			Experiments: []v1alpha1.RedisExperiment{matrix(name)},
			Schedules:   []v1alpha1.RedisExperimentSchedule{schedule},
		}
		e.LoadOpened(test.UID, []string{"get", "set"}).Add(interval())
		e.RunRecorded(&schedule, v1alpha1.VerdictFail)
		e.FaultStored(v1alpha1.FaultTypes[i%len(v1alpha1.FaultTypes)], &v1alpha1.RedisFaultStatus{}, &broken.Status)
		if i%2 == 0 {
			e.LoadEnded(test.UID, v1alpha1.VerdictPass)
		}
		if i%100 == 0 && len(e.names(t)) <= len(before) {
			t.Error("the objects have no series")
		}
		e.ForgetSchedule(types.NamespacedName{Namespace: "shop", Name: name})
	}
	e.objects = Objects{}
	e.RetainLoads(nil)
	if after := e.names(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v, before %v", after, before)
	}
	if len(e.loads)+len(e.runs) > 0 {
		t.Errorf("%d loads and %d schedules are kept", len(e.loads), len(e.runs))
	}
}

// The counters of a load stay for some minutes after its end, and of two loads of one name only the living one has
// series.
func TestLoadLingers(t *testing.T) {
	e := full(t)
	e.LoadEnded("cache", v1alpha1.VerdictPass)
	e.now = e.now.Add(lingers)
	if n := e.names(t)["redquake_loadtest_requests_total"]; n != 4 {
		t.Errorf("%d series just after the end", n)
	}
	e.now = e.now.Add(time.Second)
	if n := e.names(t)["redquake_loadtest_requests_total"]; n != 0 {
		t.Errorf("%d series later", n)
	}
	e.LoadOpened("another", []string{"get"})
	if len(e.loads) != 1 {
		t.Errorf("%d loads are kept", len(e.loads))
	}
	e.objects.LoadTests[0].UID = "another"
	if n := e.names(t)["redquake_loadtest_requests_total"]; n != 4 {
		t.Errorf("%d series of the new load", n)
	}
}

// Two operations of one name are one series: a series twice would cost all metrics.
func TestOperationsOfOneName(t *testing.T) {
	e := full(t)
	iv := interval()
	iv.Ops = append(iv.Ops, iv.Ops[0], iv.Ops[0])
	e.LoadOpened("cache", []string{"get", "set", "get"}).Add(iv)
	if got := nonzero(t, e, "redquake_loadtest_requests_total"); len(got) != 8 ||
		got[2] != `{loadtest="cache",namespace="shop",operation="get",outcome="ok"} 2` {
		t.Errorf("%v", got)
	}
}

// Names of deleted load tests are no labels.
func TestLabelOfADeletedLoad(t *testing.T) {
	e := full(t)
	e.objects.LoadTests = nil
	families, err := e.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if strings.Contains(labelsOf(m), `"cache"`) {
				t.Errorf("%s{%s}", f.GetName(), labelsOf(m))
			}
		}
	}
}

// A process that has time has no lag.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Now, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go m.FollowLag(ctx)
		time.Sleep(10 * time.Second)
		cancel()
		synctest.Wait()
		if got := testutil.ToFloat64(m.lag); got != 0 {
			t.Errorf("%v s", got)
		}
	})
	start := time.Now()
	for after, want := range map[time.Duration]time.Duration{
		lagEvery / 2:    0,
		lagEvery:        0,
		2 * time.Second: 1750 * time.Millisecond,
	} {
		if got := lateness(start, start.Add(after)); got != want {
			t.Errorf("%s after the one before: %s late, want %s", after, got, want)
		}
	}
}

// Without metrics nothing is counted.
func TestNil(t *testing.T) {
	var m *Metrics
	m.LoadOpened("cache", []string{"get"}).Add(interval())
	m.LoadEnded("cache", "")
	m.RetainLoads(nil)
	m.FaultStored(v1alpha1.FaultHang, nil, nil)
	m.RunRecorded(nil, "")
	m.ForgetSchedule(types.NamespacedName{})
	m.Lead(Leader{})()
	m.FollowLag(t.Context())
}
