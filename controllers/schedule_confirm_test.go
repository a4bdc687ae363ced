package controllers

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// withConfirm is a schedule whose second run is slower, as all after it.
func withConfirm(n *nights, change func(*v1alpha1.RedisExperimentSchedule)) *v1alpha1.RedisExperimentSchedule {
	n.takes = slower(2*time.Millisecond, night(2), night(1000))
	return newSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
		e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last", Confirm: true}
		e.Spec.SuccessfulRunsHistoryLimit, e.Spec.FailedRunsHistoryLimit = new(int32(9)), new(int32(9))
		if change != nil {
			change(e)
		}
	})
}

// abortRun ends a run by hand once it has a load test.
func (n *nights) abortRun(name string) {
	n.t.Helper()
	n.until(name+" runs", longAfter, func() bool { return len(n.runsOf(name)) > 0 }, func() string {
		return where(n.schedule("nightly").Status.Conditions)
	})
	n.mustChange(change(n.place, n.experiment(name), func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
}

// A repetition that is aborted is made up for by another one.
func TestRepetitionIsRepeated(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t, second := n.t, nameOf("nightly", night(2))
		startOperator(n.place, spy{})
		n.create(withConfirm(n, lasting(time.Hour)))
		n.abortRun(second + "c")
		e := n.runsHaveEnded("nightly", 3, longAfter)
		if is := regressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionUnknown ||
			is.Reason != v1alpha1.ReasonConfirming ||
			!strings.Contains(is.Message, "could not tell: 1, the last one "+second+"c: Aborted: ") {
			t.Errorf("%+v", is)
		}
		e = n.runsHaveEnded("nightly", 4, longAfter)
		if got := names(e)[1:]; !slices.Equal(got, []string{second, second + "c", second + "d"}) ||
			e.Status.History[3].Confirms != second {
			t.Errorf("%+v", e.Status.History)
		}
		if is := regressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
			is.Reason != v1alpha1.ReasonRegressed || !strings.Contains(is.Message, "since "+second+": ") {
			t.Errorf("%+v", is)
		}
	})
}

// A regression of which no repetition can tell is called all the same, and does not vanish: it ends as others do.
func TestRegressionThatCannotBeConfirmed(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t, second := n.t, nameOf("nightly", night(2))
		startOperator(n.place, spy{})
		n.create(withConfirm(n, lasting(time.Hour)))
		n.takes = slower(2*time.Millisecond, night(2), night(4))
		for _, letter := range []string{"c", "d", "e"} {
			n.abortRun(second + letter)
		}
		for run, want := range []metav1.ConditionStatus{
			5: metav1.ConditionTrue,
			6: metav1.ConditionTrue,
			7: metav1.ConditionTrue,
			8: metav1.ConditionFalse,
		} {
			if run < 5 {
				continue
			}
			is := regressedCondition(t, n.runsHaveEnded("nightly", run, longAfter).Status.Conditions)
			if is.Status != want || want == metav1.ConditionTrue &&
				(is.Reason != v1alpha1.ReasonUnconfirmed || !strings.Contains(is.Message, "since "+second+": ") ||
					!strings.Contains(is.Message, "(not confirmed: "+second+"e: Aborted: ")) {
				t.Errorf("after run %d: %+v", run, is)
			}
		}
		if events := n.eventsOf(v1alpha1.EventExperimentRegressed); len(events["nightly"]) != 1 {
			t.Errorf("%+v", events)
		}
	})
}

// With Replace, a run that is due awaits the end of a repetition.
func TestRepetitionIsNotReplaced(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t := n.t
		startOperator(n.place, spy{})
		n.create(withConfirm(n, func(e *v1alpha1.RedisExperimentSchedule) {
			lasting(14 * time.Hour)(e) // the repetition lasts until the morning after
			e.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace
		}))
		second, third := nameOf("nightly", night(2)), nameOf("nightly", night(3))
		e := n.runsHaveEnded("nightly", 4, longAfter)
		h := e.Status.History
		if got := names(e)[1:]; !slices.Equal(got, []string{second, second + "c", third}) ||
			h[2].Verdict != v1alpha1.VerdictPass || e.Status.Skipped != 0 {
			t.Errorf("%+v, skipped %d", h, e.Status.Skipped)
		}
		if is := regressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
			is.Reason != v1alpha1.ReasonRegressed {
			t.Errorf("%+v", is)
		}
	})
}

// A repetition that cannot be created is said, and tried again ever more seldom. The schedule goes on: its next run,
// against the same earlier one, confirms.
func TestScheduleWithoutARepetition(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t, second, third := n.t, nameOf("nightly", night(2)), nameOf("nightly", night(3))
		var refused atomic.Int32
		startOperator(n.place, refusing(&refused, func(name string) bool { return strings.HasSuffix(name, "c") }))
		n.create(withConfirm(n, nil))
		n.runsHaveEnded("nightly", 2, longAfter)
		time.Sleep(time.Hour)
		e := n.schedule("nightly")
		if text := where(e.Status.Conditions); reason(e.Status.Conditions) != v1alpha1.ReasonRefused ||
			!strings.Contains(text, second+"c") || !strings.Contains(text, "exceeded quota") {
			t.Errorf("%s", text)
		}
		if is := regressedCondition(t, e.Status.Conditions); is.Reason != v1alpha1.ReasonConfirming {
			t.Errorf("%+v", is)
		}
		e = n.runsHaveEnded("nightly", 3, 24*time.Hour)
		if last := e.Status.History[2]; last.Name != third || last.StartTime.Sub(night(3)) > time.Minute ||
			e.Status.Skipped != 0 {
			t.Errorf("%+v", e.Status)
		}
		if to := n.experiment(third).Spec.CompareTo; to == nil || to.Run != nameOf("nightly", night(1)) {
			t.Errorf("%+v", to)
		}
		if is := regressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
			!strings.Contains(is.Message, "since "+second+": ") {
			t.Errorf("%+v", is)
		}
		if tried := refused.Load(); tried < 20 || tried > 200 {
			t.Errorf("it was tried %d times in a day", tried)
		}
	})
}

// A run that is refused is tried again, ever more seldom, until it could not start in time any more.
func TestScheduledRunIsRefused(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t := n.t
		var refused atomic.Int32
		startOperator(n.place, refusing(&refused, func(name string) bool { return name == nameOf("nightly", night(1)) }))
		n.create(newSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.StartingDeadlineSeconds = new(
				int64(3600))
		}))
		e := n.scheduleIs("nightly", "a run is skipped", longAfter, func(e *v1alpha1.RedisExperimentSchedule) bool {
			return e.Status.Skipped == 1
		})
		if tried, late := refused.Load(),
			time.Since(night(1)); tried < 8 || tried > 20 || late < time.Hour || late > time.Hour+time.Minute {
			t.Errorf("it was tried %d times in %s", tried, late)
		}
		if reason(e.Status.Conditions) != v1alpha1.ReasonScheduled {
			t.Errorf("%s", where(e.Status.Conditions))
		}
		if got := names(n.runsHaveEnded("nightly", 1, longAfter)); !slices.Equal(got, []string{nameOf("nightly", night(2))}) {
			t.Errorf("ran %v", got)
		}
	})
}
