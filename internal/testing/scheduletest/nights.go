package scheduletest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/sim"
)

// HookPath is the secret part of the URL of a receiver.
const HookPath = "/services/s3cretT0KEN"

// Hook is a Secret with the URL of a receiver.
func Hook(url string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"},
		Data:       map[string][]byte{"url": []byte(url + "\n")},
	}
}

// Notifies lets a schedule notify the receiver that Hook names.
func Notifies(e *v1alpha1.RedisExperimentSchedule) {
	ToLast(e)
	e.Spec.Notify = &v1alpha1.Notification{
		URLSecretRef: v1alpha1.SecretKeyReference{Name: "chat", Key: "url"},
	}
}

// HistoryOf is the ConfigMap with the history of a schedule, of which only the name is known.
func HistoryOf(schedule string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: schedule + "-history"}}
}

// Nights is a world of schedules. Its load tests are a stand-in's: they take their duration and
// give the figures that they are to give, without load pods. An operator is the controller of
// experiments alone.
type Nights struct {
	*operatortest.World
	Takes func(start time.Time) time.Duration // each request, beside the added latency; nil = no time
}

// InNights runs a test in its own world, in which only nights matter.
func InNights(t *testing.T, test func(*Nights)) {
	t.Helper()
	operatortest.InWorld(t, func(w *operatortest.World) {
		n := &Nights{World: w}
		// nothing happens in between
		w.LookEvery, w.Kubelet.LookEvery, w.Kubelet.SweepEvery = 6*time.Hour, 6*time.Hour, time.Minute
		w.Operate = n.startExperiments
		w.Kubelet.Start() // which collects garbage
		w.StandIn("load tests", 6*time.Hour, n.load, &v1alpha1.RedisLoadTestList{})
		test(n)
	})
}

// Begin starts an operator, and creates the schedule nightly.
func (n *Nights) Begin(change func(*v1alpha1.RedisExperimentSchedule)) *operatortest.Operator {
	n.T.Helper()
	o := operatortest.StartOperator(n.Place, operatortest.Spy{})
	n.Create(NewSchedule("nightly", change))
	return o
}

// startExperiments starts an operator that reconciles experiments only.
func (n *Nights) startExperiments(s operatortest.Spy) *operatortest.Operator {
	n.T.Helper()
	o := operatortest.NewOperator(n.Clock.Now)
	through := interceptor.NewClient(n.Client, o.Intercept(s))
	of := controllers.NewReconcilers(controllers.Settings{
		Clock:  &n.Clock,
		Notify: notify.Client{Hosts: egress.Hosts{"10.0.0.7"}, Dial: n.Network.Dial},
	}, through, through, interceptor.NewClient(n.Client, o.InterceptLive()),
		func(string) events.EventRecorder { return operatortest.Recorder{Client: n.Client} })
	of.Experiments.Restored, of.Schedules.Restored = nil, nil
	itself := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	o.End = sim.Run(n.T, n.Client, n.Namespace, append(operatortest.OfSchedules(of), sim.Controller{
		Reconciler: of.Experiments,
		Limiter:    controllers.ControllerOptions().RateLimiter,
		Workers:    controllers.ControllerOptions().MaxConcurrentReconciles,
		Watches: []sim.Source{
			{Kind: &v1alpha1.RedisExperimentList{}, Map: itself},
			{Kind: &v1alpha1.RedisLoadTestList{}, Map: operatortest.OwnedBy("RedisExperiment")},
		},
	})...)
	return o
}

// load brings the load tests nearer to their ends.
func (n *Nights) load(ctx context.Context) error {
	for {
		var all v1alpha1.RedisLoadTestList
		err := n.Client.List(ctx, &all, client.InNamespace(n.Namespace))
		if err != nil {
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
func (n *Nights) endLoad(ctx context.Context, test *v1alpha1.RedisLoadTest) error {
	before := test.DeepCopy()
	st := &test.Status
	st.StartTime = new(metav1.NewMicroTime(test.CreationTimestamp.Time))
	st.CompletionTime = new(metav1.NowMicro())
	end := state.Summary{Complete: true, Reason: v1alpha1.ReasonSucceeded}
	st.Verdict = v1alpha1.VerdictPass
	if test.Spec.Abort {
		end.Reason, st.Verdict = v1alpha1.ReasonAborted, v1alpha1.VerdictInconclusive
	}
	latency := test.Spec.Client.AddedLatency.Duration
	if n.Takes != nil {
		latency += n.Takes(st.StartTime.Time)
	}
	of := v1alpha1.DurationOf(latency)
	st.Summary = &v1alpha1.LoadSummary{
		Requests:   100,
		Throughput: "100",
		ErrorRate:  "0",
		Latency:    &v1alpha1.LatencySummary{P50: of, P99: of, P999: of},
	}
	state.SetSummary(&st.Conditions, test.Generation, end)
	return n.Client.Status().Patch(ctx, test, client.MergeFrom(before))
}

// NewSchedule runs every night at 3:00: two cells, four times each, a second long.
func NewSchedule(
	name string, change func(*v1alpha1.RedisExperimentSchedule),
) *v1alpha1.RedisExperimentSchedule {
	s := &v1alpha1.RedisExperimentSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.RedisExperimentScheduleSpec{
			Schedule: "0 3 * * *", Template: v1alpha1.ExperimentTemplate{Spec: Once("", nil).Spec},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

// Once is an experiment as the runs of NewSchedule are.
func Once(name string, change func(*v1alpha1.RedisExperiment)) *v1alpha1.RedisExperiment {
	return operatortest.NewExperiment(name, "10.0.0.2:6379", func(e *v1alpha1.RedisExperiment) {
		e.Spec.Template.Spec.Load.Duration = operatortest.Length(time.Second)
		e.Spec.LoadTestsHistoryLimit = new(int32(1))
		e.Spec.Matrix[0].Values = []intstr.IntOrString{intstr.FromString("5ms"), intstr.FromString("6ms")}
		e.Spec.Compare.Margins = map[string]v1alpha1.Percentage{"latencyP99": "10%"}
		if change != nil {
			change(e)
		}
	})
}

// Night is the scheduled time of the n-th run of NewSchedule: the world begins on 2000-01-01, 0:00
// UTC.
func Night(n int) time.Time {
	return time.Date(2000, 1, n, 3, 0, 0, 0, time.UTC)
}

// NameOf is the name of the run of a schedule at an instant.
func NameOf(schedule string, at time.Time) string {
	return fmt.Sprintf("%s-%d", schedule, at.Unix()/60)
}

// Noise is from 0 to 200 us for each load, the same in each test.
func Noise(start time.Time) time.Duration {
	random := rand.New(rand.NewPCG(1, uint64(start.UnixMilli())))
	return time.Duration(random.Int64N(200)) * time.Microsecond
}

// Slower is noise and, from one instant to another one, so much more.
func Slower(by time.Duration, from, to time.Time) func(time.Time) time.Duration {
	return func(start time.Time) time.Duration {
		if start.Before(from) || !start.Before(to) {
			return Noise(start)
		}
		return Noise(start) + by
	}
}

// Schedule reads a schedule.
func Schedule(p *operatortest.Place, name string) *v1alpha1.RedisExperimentSchedule {
	p.T.Helper()
	s := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Read(s)
	return s
}

// RunsHaveEnded waits until the history of a schedule has so many runs.
func RunsHaveEnded(
	p *operatortest.Place, name string, n int, within time.Duration,
) *v1alpha1.RedisExperimentSchedule {
	p.T.Helper()
	return ScheduleIs(p, name, fmt.Sprintf("%d runs have ended", n), within,
		func(s *v1alpha1.RedisExperimentSchedule) bool {
			return len(s.Status.History) >= n
		})
}

// ScheduleIs waits for a status of a schedule.
func ScheduleIs(p *operatortest.Place,
	name, what string, within time.Duration, is func(*v1alpha1.RedisExperimentSchedule) bool,
) *v1alpha1.RedisExperimentSchedule {
	p.T.Helper()
	var s *v1alpha1.RedisExperimentSchedule
	p.Until(what, within, func() bool {
		s = Schedule(p, name)
		return is(s)
	}, func() string {
		return fmt.Sprintf("%s, %+v", operatortest.Where(s.Status.Conditions),
			s.Status)
	})
	return s
}

// RegressedCondition is the condition Regressed, which must exist.
func RegressedCondition(t *testing.T, conditions []metav1.Condition) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionRegressed)
	if c == nil {
		t.Fatalf("there is no condition Regressed in %+v", conditions)
	}
	return *c
}

// ToLast lets a schedule compare its runs with the last one.
func ToLast(e *v1alpha1.RedisExperimentSchedule) {
	e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last"}
}

// LongAfter is later than all that is to be kept for some time.
const LongAfter = 60 * 24 * time.Hour
