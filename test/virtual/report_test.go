package virtual

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/operatortest"
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
		f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(11 * time.Second)}
	}
	kill := func(name string, change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
		return operatortest.NewFault(name, "checkout-cache", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			steady(f)
			f.Spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
			change(f)
		})
	}
	within := func(outage, recovery time.Duration) func(*v1alpha1.RedisFault) {
		return func(f *v1alpha1.RedisFault) {
			f.Spec.Objectives = &v1alpha1.FaultObjectives{
				MaxOutage:       operatortest.Length(outage),
				MaxRecoveryTime: operatortest.Length(recovery),
			}
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
				f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
			})},
		},
		{
			name: "several", downFor: time.Second, verdict: report.Pass, finding: "left them without a single answer",
			load: func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = operatortest.Length(110 * time.Second) },
			faults: []*v1alpha1.RedisFault{
				kill("first", func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{
						After: operatortest.Length(15 * time.Second),
					}
				}),
				kill("second", func(f *v1alpha1.RedisFault) {
					f.Spec.Trigger = v1alpha1.FaultTrigger{
						After: operatortest.Length(60 * time.Second),
					}
				}),
			},
		},
		{name: "search", verdict: report.Pass, finding: "were served", load: func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Verify, test.Spec.Pods.Count = nil, 1
			operatortest.SearchFor(8)(test)
		}},
	}
}

// From objects and records of real controllers a report has the verdict, and says what happened.
func TestReportOfARun(t *testing.T) {
	t.Parallel()
	for _, tc := range reportedRuns() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				in := reportedRun(w, &tc)
				d := run.LoadTest(in)
				if len(tc.faults) == 1 {
					var err error
					if d, err = run.Fault(in, tc.faults[0].Name); err != nil {
						w.T.Fatal(err)
					}
				}
				if d.Verdict != tc.verdict || !strings.Contains(d.Finding.String(), tc.finding) || d.State != report.Complete {
					w.T.Errorf("%s, %s: %s; want %s: %s", d.State, d.Verdict, d.Finding, tc.verdict, tc.finding)
				}
				if d.Series == nil {
					w.T.Error("there are no curves")
				}
				statusIsDigest(w.Place, &in)
			})
		})
	}
}

func reportedRun(w *operatortest.World, tc *reported) subject.Input {
	redis := w.StartRedis("")
	if tc.downFor > 0 {
		redis.DownFor = tc.downFor
	}
	w.Kubelet.Start()
	operatortest.StartOperator(w.Place, operatortest.Spy{})
	w.Create(operatortest.NewLoadTest("checkout-cache", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		test.Spec.Pods.Count = 2
		test.Spec.Client.AddedLatency = &metav1.Duration{Duration: 2 * time.Millisecond}
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:     new(int32(400)),
			WarmUp:   operatortest.Length(2 * time.Second),
			Duration: operatortest.Length(50 * time.Second),
		}
		test.Spec.Observe.Interval.Duration = 100 * time.Millisecond
		test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%")}
		if tc.load != nil {
			tc.load(test)
		}
	}))
	in := subject.Input{}
	for _, f := range tc.faults {
		w.Create(f)
	}
	for _, f := range tc.faults {
		in.Faults = append(in.Faults, *w.FaultEnds(f.Name, 5*time.Minute))
	}
	in.Test = w.TestEnds("checkout-cache", 5*time.Minute)
	stored := w.RecordOf("checkout-cache", &in)
	if *updateReports {
		w.KeepRun("../../internal/report/run/testdata/"+tc.name+".yaml", &in, stored)
	}
	return in
}

// statusIsDigest checks that the stored result has what the status has: a report from either has the same verdict,
// judges the same objectives, and shows the same figures, to the digits that it shows.
func statusIsDigest(p *operatortest.Place, in *subject.Input) {
	p.T.Helper()
	if in.Load == nil {
		p.T.Error("no result is stored beside the record")
		return
	}
	for i := range in.Faults {
		faultIsDigest(p, &in.Faults[i], in.Results)
	}
	of, from := run.LoadTest(*in), *in
	from.Load, from.Results = nil, nil
	status := run.LoadTest(from)
	if of.Verdict != status.Verdict || in.Load.Verdict != string(in.Test.Status.Verdict) ||
		of.Finding.String() != status.Finding.String() || of.Done.String() != status.Done.String() {
		p.T.Errorf("by the result %s (%s): %s %s\nby the status %s: %s %s", of.Verdict, in.Load.Verdict, of.Finding, of.Done,
			status.Verdict, status.Finding, status.Done)
	}
	if diff := cmp.Diff(status.Objectives, of.Objectives, cmpopts.EquateApprox(1e-5, 0)); diff != "" {
		p.T.Errorf("objectives (-by the status +by the result):\n%s", diff)
	}
	shown := map[string]string{}
	for i := range of.Figures {
		shown[of.Figures[i].Of+" "+of.Figures[i].Name] = of.Figures[i].Text()
	}
	for i := range status.Figures {
		f := &status.Figures[i]
		if got, ok := shown[f.Of+" "+f.Name]; !ok || got != f.Text() {
			p.T.Errorf("%s %s is %q by the result, %q by the status", f.Of, f.Name, got, f.Text())
		}
	}
}

// faultIsDigest checks that the status of a fault is what one function makes of its stored result.
func faultIsDigest(p *operatortest.Place, f *v1alpha1.RedisFault, results []result.Fault) {
	p.T.Helper()
	stored := result.FaultWith(results, string(f.UID), f.Name)
	if stored == nil {
		p.T.Errorf("no result of fault %s is stored beside the record", f.Name)
		return
	}
	if diff := cmp.Diff(f.Status.Impact, digest.Impact(stored), cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		p.T.Errorf("-in the status +by the result:\n%s", diff)
	}
	if diff := cmp.Diff(f.Status.Objectives, verdict.InStatus(stored.Objectives)); diff != "" ||
		stored.Verdict != string(f.Status.Verdict) || stored.Verdict == "" || stored.Observed == 0 {
		p.T.Errorf("verdict %s, by the result %s, observed for %s; objectives -in the status +by the result:\n%s",
			f.Status.Verdict, stored.Verdict, time.Duration(stored.Observed), diff)
	}
}
