package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

func against(run string) func(*v1alpha1.RedisExperiment) {
	return func(e *v1alpha1.RedisExperiment) {
		e.Spec.CompareTo, e.Spec.Objectives = &v1alpha1.EarlierRun{Run: run}, &v1alpha1.ExperimentObjectives{
			NoRegression: true,
		}
	}
}

// An experiment is compared with the one that it names. What is not there to compare with is unknown, and no failure.
func TestExperimentAgainstAnEarlierOne(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(1), scheduletest.Night(1000))
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(scheduletest.Once("before", nil))
		n.ExperimentEnds("before", time.Hour)
		n.Create(scheduletest.Once("same", against("before")))
		same := n.ExperimentEnds("same", time.Hour)
		n.Create(scheduletest.Once("running", func(e *v1alpha1.RedisExperiment) { e.Spec.Suspend = true }))
		n.Create(scheduletest.Once("aborted", func(e *v1alpha1.RedisExperiment) {
			e.Spec.Template.Spec.Load.Duration = operatortest.Length(time.Hour /
				8)
		}))
		n.Until("aborted has figures", time.Hour, func() bool {
			p := n.Experiment("aborted").Status.Progress
			return p != nil && p.Finished > 5
		}, func() string { return operatortest.Where(n.Experiment("aborted").Status.Conditions) })
		n.MustChange(operatortest.Change(n.Place, n.Experiment("aborted"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Abort = true
		}))
		time.Sleep(4 * time.Hour)
		if is := scheduletest.RegressedCondition(t, same.Status.Conditions); is.Status != metav1.ConditionFalse ||
			is.Reason != v1alpha1.ReasonNotRegressed || same.Status.Verdict != v1alpha1.VerdictPass ||
			len(same.Status.Earlier.Comparison) != 2 {
			t.Errorf("same: %+v, verdict %s", is, same.Status.Verdict)
		}
		others := func(e *v1alpha1.RedisExperiment) {
			against("before")(e)
			e.Spec.Matrix[0].Values = []intstr.IntOrString{intstr.FromString("7ms"), intstr.FromString("8ms")}
		}
		for name, c := range map[string]struct {
			change  func(*v1alpha1.RedisExperiment)
			is      metav1.ConditionStatus
			verdict v1alpha1.Verdict
			message string
		}{
			"slow": {
				against("before"), metav1.ConditionTrue, v1alpha1.VerdictFail,
				"2 of 2 comparisons with before: latency=5ms: latencyP99 ",
			},
			"alone":  {against("nobody"), metav1.ConditionUnknown, v1alpha1.VerdictPass, "there is no RedisExperiment nobody"},
			"others": {others, metav1.ConditionUnknown, v1alpha1.VerdictPass, "before has none of the cells"},
			"late": {
				against("aborted"), metav1.ConditionUnknown, v1alpha1.VerdictPass,
				"aborted has not run to its end (Aborted: ",
			},
			"early": {against("running"), metav1.ConditionUnknown, v1alpha1.VerdictPass, "running has not ended"},
		} {
			n.Create(scheduletest.Once(name, c.change))
			e := n.ExperimentEnds(name, time.Hour)
			if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Status != c.is ||
				!strings.Contains(is.Message, c.message) ||
				e.Status.Verdict != c.verdict || (e.Status.Earlier == nil) != (c.is == metav1.ConditionUnknown) {
				t.Errorf("%s: %+v, verdict %s", name, is, e.Status.Verdict)
			}
		}
		if events := eventsOf(n.World.Place, v1alpha1.EventExperimentRegressed); len(events) != 1 ||
			len(events["slow"]) != 1 {
			t.Errorf("%+v", events)
		}
	})
}

// Real loads, as the controller of load tests measures them: a slowdown in the second run of a schedule.
func TestScheduleOfLoads(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Kubelet.LookEvery, w.LookEvery = time.Hour, time.Hour
		w.Kubelet.Start()
		w.Servers.Take(scheduletest.Slower(2*time.Millisecond, scheduletest.Night(2), scheduletest.Night(1000)))
		operator := operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(scheduletest.NewSchedule("loads", func(s *v1alpha1.RedisExperimentSchedule) {
			scheduletest.ToLast(s)
			s.Spec.Template.Spec.Template.Spec.Target.Addresses = []string{redis.Address()}
		}))
		e := scheduletest.RunsHaveEnded(w.Place, "loads", 2, scheduletest.LongAfter)
		if h := e.Status.History; h[0].Regressed != 0 || h[1].Regressed != 2 || h[1].Verdict != v1alpha1.VerdictPass {
			w.T.Errorf("%+v", h)
		}
		time.Sleep(time.Minute)
		exported := operator.Exported(w.T)
		if regressed, runs := exported.Sum("redquake_schedule_regressed"),
			exported.Sum("redquake_schedule_runs_total"); regressed != 1 || runs != 2 ||
			exported["redquake_schedule_regressed"] == nil {
			w.T.Errorf("regressed %v, runs %v", regressed, runs)
		}
		w.MustChange(w.Client.Delete(w.T.Context(), e))
		time.Sleep(time.Hour)
		if left := slices.Concat(operator.Exported(w.T)["redquake_schedule_info"],
			operator.Exported(w.T)["redquake_schedule_runs_total"]); len(left) > 0 {
			w.T.Errorf("series of a deleted schedule: %v", left)
		}
	})
}
