package controllers

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
)

// What the dashboard reads of a load with a fault: while it runs it changes all the time and is preliminary, at its end
// it is complete and changes no more.
func TestDashboardFollowsARun(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		redis.downFor = time.Second
		w.kubelet.Start()
		o := startOperator(w.place, spy{})
		source := &dashboardserver.Source{Client: w.client, Runs: o.sessions}
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: length(40 * time.Second)}
		}))
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: length(15 * time.Second)}
		}))
		load := served.Key{Resource: served.LoadTests, Namespace: w.namespace, Name: "run"}
		fault := served.Key{Resource: served.Faults, Namespace: w.namespace, Name: "kill"}
		revision := func(key served.Key) served.Revision {
			t.Helper()
			r, err := source.Revision(context.Background(), key)
			if err != nil {
				w.t.Fatal(err)
			}
			return r
		}
		made := func(key served.Key) *report.Document {
			t.Helper()
			d, err := source.Report(context.Background(), key)
			if err != nil {
				w.t.Fatal(err)
			}
			return d
		}
		if d := made(fault); d.State != report.Pending || d.Series != nil {
			w.t.Errorf("the fault is %s before the load", d.State)
		}
		w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		var seen []string
		for range 3 {
			time.Sleep(2 * time.Second)
			if r := revision(load); r.Over || slices.Contains(seen, r.ID) {
				w.t.Errorf("%+v after %v", r, seen)
			} else {
				seen = append(seen, r.ID)
			}
		}
		if d := made(load); d.State != report.Running || d.Series == nil || d.Verdict != "" {
			w.t.Errorf("%s, %q, series %v while it runs", d.State, d.Verdict, d.Series != nil)
		}
		w.faultEnds("kill", 2*time.Minute)
		w.testEnds("run", 2*time.Minute)
		time.Sleep(time.Minute)
		for _, key := range []served.Key{load, fault} {
			last := revision(key)
			if d := made(key); !last.Over || d.State != report.Complete || d.Series == nil {
				w.t.Errorf("%s: %+v, %s, series %v at the end", key.Resource, last, d.State, d.Series != nil)
			}
			time.Sleep(time.Hour)
			if again := revision(key); again != last {
				w.t.Errorf("%s: %+v has become %+v", key.Resource, last, again)
			}
		}
	})
}

// Lists have what kubectl get shows, and unknown objects, or those of namespaces that are not watched, are not there.
func TestDashboardLists(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		o := startOperator(w.place, spy{})
		source := &dashboardserver.Source{Client: w.client, Runs: o.sessions}
		w.create(newExperiment("latency", redis.address(), nil))
		e := w.experimentEnds("latency", time.Hour)
		ctx := context.Background()
		d, err := source.Report(ctx, served.Key{Resource: served.Experiments, Namespace: w.namespace, Name: "latency"})
		if err != nil || d.State != report.Complete || len(d.Sections) == 0 || d.Verdict != report.Verdict(e.Status.Verdict) {
			w.t.Errorf("the experiment: %+v, %v", d, err)
		}
		if all, err := source.Namespaces(ctx); err != nil || !slices.Equal(all, []string{w.namespace}) {
			w.t.Errorf("namespaces %v, %v", all, err)
		}
		list, more, err := source.Objects(ctx, served.LoadTests, "", 1)
		if runs := len(w.runsOf("latency")); err != nil || len(list) != 1 || more != runs-1 ||
			list[0].Status != v1alpha1.ReasonSucceeded || len(list[0].Figures) == 0 {
			w.t.Errorf("%+v and %d more of %d, %v", list, more, runs, err)
		}
		if list, _, err := source.Objects(ctx, served.Experiments, w.namespace, 10); err != nil || len(list) != 1 ||
			list[0].Name != "latency" || list[0].Verdict != d.Verdict {
			w.t.Errorf("%+v, %v", list, err)
		}
		elsewhere := &dashboardserver.Source{Client: w.client, Runs: o.sessions, Namespaced: []string{"other"}}
		for what, err := range map[string]error{
			"an unknown object": second(
				source.Revision(ctx, served.Key{Resource: served.LoadTests, Namespace: w.namespace, Name: "unknown"})),
			"another namespace": second(
				elsewhere.Revision(ctx, served.Key{Resource: served.Experiments, Namespace: w.namespace, Name: "latency"})),
			"another resource": second(
				source.Report(ctx, served.Key{Resource: "secrets", Namespace: w.namespace, Name: "latency"})),
		} {
			if !errors.Is(err, served.ErrNotFound) {
				w.t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
