package controllers

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
)

var updateReports = flag.Bool("update-reports", false,
	"write the finished objects and records of TestReportOfARun to internal/report/run/testdata, from which the golden "+
		"files of reports are made")

// reported is a run whose objects and record are kept.
type reported struct {
	name    string
	load    func(*v1alpha1.RedisLoadTest)
	faults  []*v1alpha1.RedisFault
	downFor time.Duration
	verdict report.Verdict // of the report of the load, or of its only fault
	finding string         // is part of it
}

func reportedRuns() []reported {
	steady := func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(11 * time.Second)}
	}
	kill := func(name string, change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
		return newFault(name, "checkout-cache", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			steady(f)
			f.Spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
			change(f)
		})
	}
	within := func(outage, recovery time.Duration) func(*v1alpha1.RedisFault) {
		return func(f *v1alpha1.RedisFault) {
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: length(outage), MaxRecoveryTime: length(recovery)}
		}
	}
	return []reported{
		{name: "quiet", verdict: report.Pass, finding: "without an error"},
		{
			name: "pass", downFor: 2 * time.Second, verdict: report.Pass, finding: "the throughput was back",
			faults: []*v1alpha1.RedisFault{kill("kill-primary", within(5*time.Second, 30*time.Second))},
		},
		{
			name: "fail", downFor: 4 * time.Second, verdict: report.Fail, finding: "maxOutage is",
			faults: []*v1alpha1.RedisFault{kill("kill-primary", within(time.Second, 30*time.Second))},
		},
		{
			name: "not-recovered", downFor: 25 * time.Second, verdict: report.Fail, finding: "was not back within",
			faults: []*v1alpha1.RedisFault{kill("kill-primary", func(f *v1alpha1.RedisFault) {
				within(30*time.Second, 30*time.Second)(f)
				f.Spec.RecoveryDeadline.Duration = 5 * time.Second
			})},
		},
		{
			name: "inconclusive", downFor: 2 * time.Second, verdict: report.Inconclusive, finding: "Not conclusive",
			faults: []*v1alpha1.RedisFault{kill("kill-primary", func(f *v1alpha1.RedisFault) {
				within(5*time.Second, 30*time.Second)(f)
				f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(4 * time.Second)}
			})},
		},
		{
			name: "several", downFor: time.Second, verdict: report.Pass, finding: "left them without a single answer",
			load: func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = length(110 * time.Second) },
			faults: []*v1alpha1.RedisFault{
				kill("first", func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{
						After: length(15 * time.Second),
					}
				}),
				kill("second", func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{
						After: length(60 * time.Second),
					}
				}),
			},
		},
		{name: "search", verdict: report.Pass, finding: "were served", load: func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Verify, test.Spec.Pods.Count = nil, 1
			searchFor(8)(test)
		}},
	}
}

// From objects and records of real controllers a report has the verdict, and says what happened.
func TestReportOfARun(t *testing.T) {
	t.Parallel()
	for _, tc := range reportedRuns() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				in := w.reportedRun(&tc)
				d := run.LoadTest(in)
				if len(tc.faults) == 1 {
					var err error
					if d, err = run.Fault(in, tc.faults[0].Name); err != nil {
						w.t.Fatal(err)
					}
				}
				if d.Verdict != tc.verdict || !strings.Contains(d.Finding.String(), tc.finding) || d.State != report.Complete {
					w.t.Errorf("%s, %s: %s; want %s: %s", d.State, d.Verdict, d.Finding, tc.verdict, tc.finding)
				}
				if d.Series == nil {
					w.t.Error("there are no curves")
				}
				w.statusIsDigest(&in)
			})
		})
	}
}

func (w *world) reportedRun(tc *reported) run.Input {
	redis := w.startRedis("")
	if tc.downFor > 0 {
		redis.downFor = tc.downFor
	}
	w.kubelet.Start()
	startOperator(w.place, spy{})
	w.create(newLoadTest("checkout-cache", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		verifies(test)
		test.Spec.Pods.Count = 2
		test.Spec.Client.AddedLatency = &metav1.Duration{Duration: 2 * time.Millisecond}
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(400)),
			WarmUp:   length(2 * time.Second),
			Duration: length(50 * time.Second),
		}
		test.Spec.Observe.Interval.Duration = 100 * time.Millisecond
		test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%")}
		if tc.load != nil {
			tc.load(test)
		}
	}))
	in := run.Input{}
	for _, f := range tc.faults {
		w.create(f)
	}
	for _, f := range tc.faults {
		in.Faults = append(in.Faults, *w.faultEnds(f.Name, 5*time.Minute))
	}
	in.Test = w.testEnds("checkout-cache", 5*time.Minute)
	stored := w.recordOf("checkout-cache", &in)
	if *updateReports {
		w.keepRun("../internal/report/run/testdata/"+tc.name+".yaml", &in, stored)
	}
	return in
}

// recordOf waits for the record of a load test.
func (p *place) recordOf(test string, in *run.Input) *corev1.ConfigMap {
	p.t.Helper()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ResultsName(test)}}
	p.until("the record is stored", time.Minute, func() bool { return p.read(stored) }, func() string { return "" })
	series, err := merged.Decode(stored.BinaryData[children.ResultsSeriesKey])
	if err != nil {
		p.t.Fatal(err)
	}
	in.Series = series
	if in.Results, err = result.KeptFaults(stored.BinaryData[children.ResultsFaultsKey]); err != nil {
		p.t.Fatal(err)
	}
	if text, ok := stored.Data[children.ResultsDocumentKey]; ok {
		if in.Load, err = result.DecodeLoad([]byte(text)); err != nil {
			p.t.Fatal(err)
		}
	}
	return stored
}

// statusIsDigest checks that the stored result has what the status has: a report from either has the same verdict,
// judges the same objectives, and shows the same figures, to the digits that it shows.
func (p *place) statusIsDigest(in *run.Input) {
	p.t.Helper()
	if in.Load == nil {
		p.t.Error("no result is stored beside the record")
		return
	}
	for i := range in.Faults {
		p.faultIsDigest(&in.Faults[i], in.Results)
	}
	of, from := run.LoadTest(*in), *in
	from.Load, from.Results = nil, nil
	status := run.LoadTest(from)
	if of.Verdict != status.Verdict || in.Load.Verdict != string(in.Test.Status.Verdict) ||
		of.Finding.String() != status.Finding.String() || of.Done.String() != status.Done.String() {
		p.t.Errorf("by the result %s (%s): %s %s\nby the status %s: %s %s", of.Verdict, in.Load.Verdict, of.Finding, of.Done,
			status.Verdict, status.Finding, status.Done)
	}
	if diff := cmp.Diff(status.Objectives, of.Objectives, cmpopts.EquateApprox(1e-5, 0)); diff != "" {
		p.t.Errorf("objectives (-by the status +by the result):\n%s", diff)
	}
	shown := map[string]string{}
	for i := range of.Figures {
		shown[of.Figures[i].Of+" "+of.Figures[i].Name] = of.Figures[i].Text()
	}
	for i := range status.Figures {
		f := &status.Figures[i]
		if got, ok := shown[f.Of+" "+f.Name]; !ok || got != f.Text() {
			p.t.Errorf("%s %s is %q by the result, %q by the status", f.Of, f.Name, got, f.Text())
		}
	}
}

// faultIsDigest checks that the status of a fault is what one function makes of its stored result.
func (p *place) faultIsDigest(f *v1alpha1.RedisFault, results []result.Fault) {
	p.t.Helper()
	stored := result.FaultWith(results, string(f.UID), f.Name)
	if stored == nil {
		p.t.Errorf("no result of fault %s is stored beside the record", f.Name)
		return
	}
	if diff := cmp.Diff(f.Status.Impact, digest.Impact(stored), cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		p.t.Errorf("-in the status +by the result:\n%s", diff)
	}
	if diff := cmp.Diff(f.Status.Objectives, verdict.InStatus(stored.Objectives)); diff != "" ||
		stored.Verdict != string(f.Status.Verdict) || stored.Verdict == "" || stored.Observed == 0 {
		p.t.Errorf("verdict %s, by the result %s, observed for %s; objectives -in the status +by the result:\n%s",
			f.Status.Verdict, stored.Verdict, time.Duration(stored.Observed), diff)
	}
}

// keepRun writes what the cluster keeps of a run, as kubectl get -o yaml would.
func (p *place) keepRun(file string, in *run.Input, stored *corev1.ConfigMap) {
	p.t.Helper()
	var b bytes.Buffer
	b.WriteString("# Written by " + p.t.Name() + " of package controllers.\n")
	add := func(kind, version string, object any, meta *metav1.ObjectMeta) {
		meta.ManagedFields, meta.ResourceVersion = nil, ""
		text, err := yaml.Marshal(object)
		if err != nil {
			p.t.Fatal(err)
		}
		b.WriteString("apiVersion: " + version + "\nkind: " + kind + "\n" + string(text) + "---\n")
	}
	test, config := in.Test.DeepCopy(), stored.DeepCopy()
	test.TypeMeta, config.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	add("RedisLoadTest", v1alpha1.GroupVersion.String(), test, &test.ObjectMeta)
	for _, f := range in.Faults {
		f.TypeMeta = metav1.TypeMeta{}
		add("RedisFault", v1alpha1.GroupVersion.String(), &f, &f.ObjectMeta)
	}
	add("ConfigMap", "v1", config, &config.ObjectMeta)
	if err := os.WriteFile(file, bytes.TrimSuffix(b.Bytes(), []byte("---\n")), 0o644); err != nil {
		p.t.Fatal(err)
	}
}
