package controllers

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
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
	inNights(t, func(n *nights) {
		t := n.t
		n.takes = slower(2*time.Millisecond, night(1), night(1000))
		startOperator(n.place, spy{})
		n.create(once("before", nil))
		n.experimentEnds("before", time.Hour)
		n.create(once("same", against("before")))
		same := n.experimentEnds("same", time.Hour)
		n.create(once("running", func(e *v1alpha1.RedisExperiment) { e.Spec.Suspend = true }))
		n.create(once("aborted", func(e *v1alpha1.RedisExperiment) {
			e.Spec.Template.Spec.Load.Duration = length(time.Hour /
				8)
		}))
		n.until("aborted has figures", time.Hour, func() bool {
			p := n.experiment("aborted").Status.Progress
			return p != nil && p.Finished > 5
		}, func() string { return where(n.experiment("aborted").Status.Conditions) })
		n.mustChange(change(n.place, n.experiment("aborted"), func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
		time.Sleep(4 * time.Hour)
		if is := regressedCondition(t, same.Status.Conditions); is.Status != metav1.ConditionFalse ||
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
			n.create(once(name, c.change))
			e := n.experimentEnds(name, time.Hour)
			if is := regressedCondition(t, e.Status.Conditions); is.Status != c.is || !strings.Contains(is.Message, c.message) ||
				e.Status.Verdict != c.verdict || (e.Status.Earlier == nil) != (c.is == metav1.ConditionUnknown) {
				t.Errorf("%s: %+v, verdict %s", name, is, e.Status.Verdict)
			}
		}
		if events := n.eventsOf(v1alpha1.EventExperimentRegressed); len(events) != 1 || len(events["slow"]) != 1 {
			t.Errorf("%+v", events)
		}
	})
}

// Real loads, as the controller of load tests measures them: a slowdown in the second run of a schedule.
func TestScheduleOfLoads(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.LookEvery, w.lookEvery = time.Hour, time.Hour
		w.kubelet.Start()
		w.redis.Take(slower(2*time.Millisecond, night(2), night(1000)))
		operator := startOperator(w.place, spy{})
		w.create(newSchedule("loads", func(s *v1alpha1.RedisExperimentSchedule) {
			toLast(s)
			s.Spec.Template.Spec.Template.Spec.Target.Addresses = []string{redis.address()}
		}))
		e := w.runsHaveEnded("loads", 2, longAfter)
		if h := e.Status.History; h[0].Regressed != 0 || h[1].Regressed != 2 || h[1].Verdict != v1alpha1.VerdictPass {
			w.t.Errorf("%+v", h)
		}
		time.Sleep(time.Minute)
		exported := operator.exported(w.t)
		if regressed, runs := exported.sum("redquake_schedule_regressed"),
			exported.sum("redquake_schedule_runs_total"); regressed != 1 || runs != 2 ||
			exported["redquake_schedule_regressed"] == nil {
			w.t.Errorf("regressed %v, runs %v", regressed, runs)
		}
		w.mustChange(w.client.Delete(w.t.Context(), e))
		time.Sleep(time.Hour)
		if left := slices.Concat(operator.exported(w.t)["redquake_schedule_info"],
			operator.exported(w.t)["redquake_schedule_runs_total"]); len(left) > 0 {
			w.t.Errorf("series of a deleted schedule: %v", left)
		}
	})
}
