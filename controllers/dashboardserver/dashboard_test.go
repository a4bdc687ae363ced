package dashboardserver_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/dashboardserver"
	served "github.com/redquake/redquake/internal/dashboard"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// What the dashboard reads of a load with a fault: while it runs it changes all the time and is preliminary, at its end
// it is complete and changes no more.
func TestDashboardFollowsARun(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Lasting(40 * time.Second)}.Run(t, func(w *operatortest.World) {
		w.Redis.DownFor = time.Second
		source := &dashboardserver.Source{Client: w.Client, Runs: w.Operator.Sessions}
		w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(15 * time.Second)}
		}))
		load := served.Key{Resource: served.LoadTests, Namespace: w.Namespace, Name: "run"}
		fault := served.Key{Resource: served.Faults, Namespace: w.Namespace, Name: "kill"}
		revision := func(key served.Key) served.Revision {
			t.Helper()
			r, err := source.Revision(context.Background(), key)
			if err != nil {
				w.T.Fatal(err)
			}
			return r
		}
		made := func(key served.Key) *report.Document {
			t.Helper()
			d, err := source.Report(context.Background(), key)
			if err != nil {
				w.T.Fatal(err)
			}
			return d
		}
		if d := made(fault); d.State != report.Pending || d.Series != nil {
			w.T.Errorf("the fault is %s before the load", d.State)
		}
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		var seen []string
		for range 3 {
			time.Sleep(2 * time.Second)
			if r := revision(load); r.Over || slices.Contains(seen, r.ID) {
				w.T.Errorf("%+v after %v", r, seen)
			} else {
				seen = append(seen, r.ID)
			}
		}
		if d := made(load); d.State != report.Running || d.Series == nil || d.Verdict != "" {
			w.T.Errorf("%s, %q, series %v while it runs", d.State, d.Verdict, d.Series != nil)
		}
		w.FaultEnds("kill", 2*time.Minute)
		w.TestEnds("run", 2*time.Minute)
		time.Sleep(time.Minute)
		for _, key := range []served.Key{load, fault} {
			last := revision(key)
			if d := made(key); !last.Over || d.State != report.Complete || d.Series == nil {
				w.T.Errorf("%s: %+v, %s, series %v at the end", key.Resource, last, d.State, d.Series != nil)
			}
			time.Sleep(time.Hour)
			if again := revision(key); again != last {
				w.T.Errorf("%s: %+v has become %+v", key.Resource, last, again)
			}
		}
	})
}

// Lists have what kubectl get shows, and unknown objects, or those of namespaces that are not watched, are not there.
func TestDashboardLists(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		source := &dashboardserver.Source{Client: w.Client, Runs: w.Operator.Sessions}
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), nil))
		e := w.ExperimentEnds("latency", time.Hour)
		ctx := context.Background()
		d, err := source.Report(ctx, served.Key{Resource: served.Experiments, Namespace: w.Namespace, Name: "latency"})
		if err != nil || d.State != report.Complete || len(d.Sections) == 0 || d.Verdict != report.Verdict(e.Status.Verdict) {
			w.T.Errorf("the experiment: %+v, %v", d, err)
		}
		if all, err := source.Namespaces(ctx); err != nil || !slices.Equal(all, []string{w.Namespace}) {
			w.T.Errorf("namespaces %v, %v", all, err)
		}
		list, more, err := source.Objects(ctx, served.LoadTests, "", 1)
		if runs := len(w.RunsOf("latency")); err != nil || len(list) != 1 || more != runs-1 ||
			list[0].Status != v1alpha1.ReasonSucceeded || len(list[0].Figures) == 0 {
			w.T.Errorf("%+v and %d more of %d, %v", list, more, runs, err)
		}
		if list, _, err := source.Objects(ctx, served.Experiments, w.Namespace, 10); err != nil || len(list) != 1 ||
			list[0].Name != "latency" || list[0].Verdict != d.Verdict {
			w.T.Errorf("%+v, %v", list, err)
		}
		elsewhere := &dashboardserver.Source{Client: w.Client, Runs: w.Operator.Sessions, Namespaced: []string{"other"}}
		for what, err := range map[string]error{
			"an unknown object": second(
				source.Revision(ctx, served.Key{Resource: served.LoadTests, Namespace: w.Namespace, Name: "unknown"})),
			"another namespace": second(
				elsewhere.Revision(ctx, served.Key{Resource: served.Experiments, Namespace: w.Namespace, Name: "latency"})),
			"another resource": second(
				source.Report(ctx, served.Key{Resource: "secrets", Namespace: w.Namespace, Name: "latency"})),
		} {
			if !errors.Is(err, served.ErrNotFound) {
				w.T.Errorf("%s: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
