package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/schedule"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/testing/sim"
)

// nights is a world of schedules. Its load tests are a stand-in's: they take their duration and give the figures that
// they are to give, without load pods. An operator is the controller of experiments alone.
type nights struct {
	*world
	takes func(start time.Time) time.Duration // each request, beside the added latency; nil = no time
}

func inNights(t *testing.T, test func(*nights)) {
	t.Helper()
	inWorld(t, func(w *world) {
		n := &nights{world: w}
		// nothing happens in between
		w.lookEvery, w.kubelet.LookEvery, w.kubelet.SweepEvery = 6*time.Hour, 6*time.Hour, time.Minute
		w.operate = n.startExperiments
		w.kubelet.Start() // which collects garbage
		w.standIn("load tests", 6*time.Hour, n.load, &v1alpha1.RedisLoadTestList{})
		test(n)
	})
}

// startExperiments starts an operator that reconciles experiments only.
func (n *nights) startExperiments(s spy) *operator {
	n.t.Helper()
	o := newOperator(n.clock.Now)
	through := interceptor.NewClient(n.client, o.Intercept(s))
	of := reconcilers(Settings{
		Clock:  &n.clock,
		Notify: notify.Client{Hosts: egress.Hosts{"10.0.0.7"}, Dial: n.network.Dial},
	}, through, through, interceptor.NewClient(n.client, o.InterceptLive()),
		func(string) events.EventRecorder { return recorder{n.client} })
	of.experiments.Restored, of.schedules.Restored = nil, nil
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	o.end = sim.Run(n.t, n.client, n.namespace, append(ofSchedules(of), sim.Controller{
		Reconciler: of.experiments,
		Limiter:    options().RateLimiter,
		Workers:    options().MaxConcurrentReconciles,
		Watches: []sim.Source{
			{Kind: &v1alpha1.RedisExperimentList{}, Map: itself},
			{Kind: &v1alpha1.RedisLoadTestList{}, Map: ownedBy("RedisExperiment")},
		},
	})...)
	return o
}

// ofSchedules are the controllers of schedules and of their notifications, with the watches of their SetupWithManager.
func ofSchedules(of all) []sim.Controller {
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	return []sim.Controller{
		{
			Reconciler: of.schedules,
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{Kind: &v1alpha1.RedisExperimentScheduleList{}, Map: itself},
				{Kind: &v1alpha1.RedisExperimentList{}, Map: func(ctx context.Context, o client.Object) []reconcile.Request {
					if reason(o.(*v1alpha1.RedisExperiment).Status.Conditions) == v1alpha1.ReasonRunning {
						return nil // as the predicate of the controller does
					}
					return ownedBy("RedisExperimentSchedule")(ctx, o)
				}},
			},
		},
		{
			Reconciler: schedule.NewNotifier(of.schedules),
			Limiter:    options().RateLimiter,
			Workers:    options().MaxConcurrentReconciles,
			Watches: []sim.Source{
				{
					Kind: &v1alpha1.RedisExperimentScheduleList{},
					Map: func(ctx context.Context, o client.Object) []reconcile.Request {
						if !schedule.Notifies(o.(*v1alpha1.RedisExperimentSchedule)) {
							return nil
						}
						return itself(ctx, o)
					},
				},
			},
		},
	}
}

// load brings the load tests nearer to their ends.
func (n *nights) load(ctx context.Context) error {
	for {
		var all v1alpha1.RedisLoadTestList
		if err := n.client.List(ctx, &all, client.InNamespace(n.namespace)); err != nil {
			return err
		}
		wait := time.Duration(0)
		for i := range all.Items {
			test := &all.Items[i]
			if state.IsFinished(test.Status.Conditions) {
				continue
			}
			left := time.Until(test.CreationTimestamp.Add(test.Spec.Load.Duration.Duration))
			if left > 0 && !test.Spec.Abort {
				wait = max(time.Second, left/3)
				continue
			}
			if err := n.endLoad(ctx, test); err != nil {
				return err
			}
		}
		if wait == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// endLoad completes a load test.
func (n *nights) endLoad(ctx context.Context, test *v1alpha1.RedisLoadTest) error {
	before := test.DeepCopy()
	st := &test.Status
	st.StartTime, st.CompletionTime = new(metav1.NewMicroTime(test.CreationTimestamp.Time)), new(metav1.NowMicro())
	end := state.Summary{Complete: true, Reason: v1alpha1.ReasonSucceeded}
	st.Verdict = v1alpha1.VerdictPass
	if test.Spec.Abort {
		end.Reason, st.Verdict = v1alpha1.ReasonAborted, v1alpha1.VerdictInconclusive
	}
	latency := test.Spec.Client.AddedLatency.Duration
	if n.takes != nil {
		latency += n.takes(st.StartTime.Time)
	}
	of := v1alpha1.MicrosecondsOf(latency)
	st.Summary = &v1alpha1.LoadSummary{
		Requests:   100,
		Throughput: "100",
		ErrorRate:  "0",
		Latency:    &v1alpha1.LatencySummary{P50: of, P99: of, P999: of},
	}
	state.SetSummary(&st.Conditions, test.Generation, end)
	return n.client.Status().Patch(ctx, test, client.MergeFrom(before))
}

// newSchedule runs every night at 3:00: two cells, four times each, a second long.
func newSchedule(name string, change func(*v1alpha1.RedisExperimentSchedule)) *v1alpha1.RedisExperimentSchedule {
	s := &v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisExperimentScheduleSpec{
			Schedule: "0 3 * * *", Template: v1alpha1.ExperimentTemplate{Spec: once("", nil).Spec},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

// once is an experiment as the runs of newSchedule are.
func once(name string, change func(*v1alpha1.RedisExperiment)) *v1alpha1.RedisExperiment {
	return newExperiment(name, "10.0.0.2:6379", func(e *v1alpha1.RedisExperiment) {
		e.Spec.Template.Spec.Load.Duration = length(time.Second)
		e.Spec.LoadTestsHistoryLimit = new(int32(1))
		e.Spec.Matrix[0].Values = []intstr.IntOrString{intstr.FromString("5ms"), intstr.FromString("6ms")}
		e.Spec.Compare.Margins = map[string]v1alpha1.Percentage{"latencyP99": "10%"}
		if change != nil {
			change(e)
		}
	})
}

// lasting lets the eight loads of a run take so long together.
func lasting(run time.Duration) func(*v1alpha1.RedisExperimentSchedule) {
	return func(s *v1alpha1.RedisExperimentSchedule) {
		s.Spec.Template.Spec.Template.Spec.Load.Duration = length(run / 8)
	}
}

// night is the scheduled time of the n-th run of newSchedule: the world begins on 2000-01-01, 0:00 UTC.
func night(n int) time.Time { return time.Date(2000, 1, n, 3, 0, 0, 0, time.UTC) }

func nameOf(schedule string, at time.Time) string {
	return fmt.Sprintf("%s-%d", schedule, at.Unix()/60)
}

// noise is from 0 to 200 us for each load, the same in each test.
func noise(start time.Time) time.Duration {
	random := rand.New(rand.NewPCG(1, uint64(start.UnixMilli())))
	return time.Duration(random.Int64N(200)) * time.Microsecond
}

// slower is noise and, from one instant to another one, so much more.
func slower(by time.Duration, from, to time.Time) func(time.Time) time.Duration {
	return func(start time.Time) time.Duration {
		if start.Before(from) || !start.Before(to) {
			return noise(start)
		}
		return noise(start) + by
	}
}

// schedule reads a schedule.
func (p *place) schedule(name string) *v1alpha1.RedisExperimentSchedule {
	p.t.Helper()
	s := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(s)
	return s
}

// runsHaveEnded waits until the history of a schedule has so many runs.
func (p *place) runsHaveEnded(name string, n int, within time.Duration) *v1alpha1.RedisExperimentSchedule {
	p.t.Helper()
	return p.scheduleIs(name, fmt.Sprintf("%d runs have ended", n), within,
		func(s *v1alpha1.RedisExperimentSchedule) bool {
			return len(s.Status.History) >= n
		})
}

// scheduleIs waits for a status of a schedule.
func (p *place) scheduleIs(
	name, what string, within time.Duration, is func(*v1alpha1.RedisExperimentSchedule) bool,
) *v1alpha1.RedisExperimentSchedule {
	p.t.Helper()
	var s *v1alpha1.RedisExperimentSchedule
	p.until(what, within, func() bool {
		s = p.schedule(name)
		return is(s)
	}, func() string { return fmt.Sprintf("%s, %+v", where(s.Status.Conditions), s.Status) })
	return s
}

// eventsOf are the notes of the events with a reason, by object, in virtual time: they are sent beside what they tell
// of.
func (p *place) eventsOf(reason string) map[string][]string {
	p.t.Helper()
	synctest.Wait()
	var all eventsv1.EventList
	p.mustChange(p.client.List(context.Background(), &all))
	notes := map[string][]string{}
	for _, e := range all.Items {
		if e.Reason == reason {
			notes[e.Regarding.Name] = append(notes[e.Regarding.Name], e.Note)
		}
	}
	return notes
}

// refusing lets the API server refuse to create runs, as a quota does, and counts how often.
func refusing(count *atomic.Int32, refused func(name string) bool) spy {
	return spy{Before: func(w write) error {
		if e, is := w.Object.(*v1alpha1.RedisExperiment); is && w.Verb == "create" && refused(e.Name) {
			count.Add(1)
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "redisexperiments"},
				e.Name, errors.New("exceeded quota: runs"))
		}
		return nil
	}}
}

// scheduledRuns are the runs of a schedule that exist.
func (p *place) scheduledRuns(name string) (runs []string) {
	p.t.Helper()
	var all v1alpha1.RedisExperimentList
	p.mustChange(p.client.List(context.Background(), &all))
	for i := range all.Items {
		if all.Items[i].Labels[v1alpha1.LabelSchedule] == name {
			runs = append(runs, all.Items[i].Name)
		}
	}
	return runs
}
