package virtual

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/schedule"
	"github.com/redquake/redquake/internal/report/study"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// From what real controllers keep of an experiment, its report has a curve and the phases of each run, and says what
// differs.
func TestReportOfAnExperiment(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Redis.DownFor = 2 * time.Second
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			test := &e.Spec.Template.Spec
			test.Load = v1alpha1.LoadShape{
				Rate:     new(int32(100)),
				WarmUp:   operatortest.Length(time.Second),
				Duration: operatortest.Length(28 * time.Second),
			}
			test.Observe.Interval.Duration = 100 * time.Millisecond
			e.Spec.Faults = []v1alpha1.ExperimentFault{
				{Name: "kill", Spec: operatortest.NewFault("", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
					f.Spec.LoadTestRef = nil
					f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(11 * time.Second)}
					f.Spec.Action.PodKill = &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}
				}).Spec},
			}
			e.Spec.Compare.Figures = []v1alpha1.ComparedFigure{"latencyP99", "outage"}
		}))
		e := w.ExperimentEnds("latency", time.Hour)
		d := reportOf(w.Place, e)
		if d.Verdict != report.Pass || d.State != report.Complete ||
			!strings.Contains(d.Finding.String(), "latency 10ms multiplies the p99 latency by ") {
			w.T.Errorf("%s, %s: %s", d.State, d.Verdict, d.Finding)
		}
		titles := map[string]*report.Section{}
		for i := range d.Sections {
			titles[d.Sections[i].ID] = &d.Sections[i]
		}
		if m := titles["matrix"]; strings.Count(string(m.Drawing), `class="smc"`) != 2 || m.Note != "" {
			w.T.Errorf("curves of %d cells; %s", strings.Count(string(m.Drawing), `class="smc"`), m.Note)
		}
		if p := titles["phases"]; p == nil || len(p.Tables[0].Rows) < 4 {
			w.T.Errorf("the phases are not shown: %+v", p)
		}
		if *updateReports {
			keepExperiment(w.Place, "experiment", e)
		}
	})
}

// reportOf makes the report of an experiment from what the cluster has of it.
func reportOf(p *operatortest.Place, o *v1alpha1.RedisExperiment) *report.Document {
	p.T.Helper()
	must := func(err error) {
		if err != nil {
			p.T.Fatal(err)
		}
	}
	plan, err := experiment.NewPlan(&o.Spec)
	must(err)
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ExperimentRecordName(o.Name)}}
	p.Read(stored)
	runs, err := experiment.DecodeRecord(stored.BinaryData[children.ExperimentRecordKey])
	must(err)
	e := &study.Experiment{Object: o, Plan: plan, Record: runs, Details: map[string]*study.Detail{}}
	for _, test := range p.RunsOf(o.Name) {
		results := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ResultsName(test.Name)}}
		p.Until("the record of "+test.Name+" is stored", time.Minute, func() bool { return p.Read(results) }, func() string {
			return ""
		})
		series, err := merged.Decode(results.BinaryData[children.ResultsSeriesKey])
		must(err)
		kept, err := children.ResultsIn(results)
		must(err)
		var faults []v1alpha1.RedisFault
		for _, f := range faultsOf(p, o.Name) {
			if f.Status.LoadTest == test.Name {
				faults = append(faults, f)
			}
		}
		e.Details[test.Name] = study.DetailOf(study.WindowOf(runs), &test, faults, kept.Faults, series)
	}
	d, err := matrix.New(e.Study(""))
	must(err)
	return d
}

// faultsOf are the faults of the runs of an experiment.
func faultsOf(p *operatortest.Place, name string) []v1alpha1.RedisFault {
	p.T.Helper()
	var all v1alpha1.RedisFaultList
	p.MustChange(p.Client.List(context.Background(), &all, client.MatchingLabels{v1alpha1.LabelExperiment: name}))
	return all.Items
}

// The history of a schedule that has become slower names the night.
func TestReportOfASchedule(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(17), scheduletest.Night(1000))
		n.Begin(scheduletest.ToLast)
		o := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 24, scheduletest.LongAfter)
		stored := scheduletest.HistoryOf("nightly")
		n.Read(stored)
		h, err := history.Decode(stored.BinaryData[children.HistoryKey])
		if err != nil {
			n.T.Fatal(err)
		}
		d, err := (&schedule.Schedule{Object: o, History: h}).Report()
		if err != nil {
			n.T.Fatal(err)
		}
		want := "has been worse since " + scheduletest.Night(17).UTC().Format("2 Jan, 15:04") + " (" +
			scheduletest.NameOf("nightly", scheduletest.Night(17)) + ")"
		if !strings.Contains(d.Finding.String(), want) || d.Objectives[0].Judged != report.Missed {
			n.T.Errorf("%s, want %q; %+v", d.Finding, want, d.Objectives)
		}
		if drawing := string(d.Sections[0].Drawing); strings.Count(drawing, `class="tm ws"`) != 2 {
			n.T.Errorf("the change is marked %d times, want once for each cell", strings.Count(drawing, `class="tm ws"`))
		}
		if *updateReports {
			keepObjects(n.World.Place, "schedule", o, stored)
		}
	})
}

// keepExperiment writes what the cluster keeps of an experiment and of its runs, as kubectl get -o yaml would.
func keepExperiment(p *operatortest.Place, name string, o *v1alpha1.RedisExperiment) {
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ExperimentRecordName(o.Name)}}
	p.Read(stored)
	objects := []client.Object{o, stored}
	for _, test := range p.RunsOf(o.Name) {
		results := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.ResultsName(test.Name)}}
		p.Read(results)
		objects = append(objects, &test, results)
	}
	for _, f := range faultsOf(p, o.Name) {
		objects = append(objects, &f)
	}
	keepObjects(p, name, objects...)
}

func keepObjects(p *operatortest.Place, name string, objects ...client.Object) {
	var b bytes.Buffer
	b.WriteString("# From a run in virtual time, written by go test ./test/virtual -run TestReportOf -update-reports.\n")
	for i, object := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		object = object.DeepCopyObject().(client.Object)
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		version, kind := v1alpha1.GroupVersion.String(), ""
		switch object.(type) {
		case *v1alpha1.RedisExperiment:
			kind = "RedisExperiment"
		case *v1alpha1.RedisExperimentSchedule:
			kind = "RedisExperimentSchedule"
		case *v1alpha1.RedisLoadTest:
			kind = "RedisLoadTest"
		case *v1alpha1.RedisFault:
			kind = "RedisFault"
		default:
			version, kind = "v1", "ConfigMap"
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			p.T.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "apiVersion: ") && !strings.HasPrefix(line, "kind: ") {
				lines = append(lines, line)
			}
		}
		b.WriteString("apiVersion: " + version + "\nkind: " + kind + "\n" + strings.Join(lines, ""))
	}
	if err := os.WriteFile("../../cmd/redquake/testdata/report_"+name+".yaml", b.Bytes(), 0o644); err != nil {
		p.T.Fatal(err)
	}
}
