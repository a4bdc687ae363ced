package schedule_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// withConfirm is a schedule whose second run is slower, as all after it.
func withConfirm(
	n *scheduletest.Nights, change func(*v1alpha1.RedisExperimentSchedule),
) *v1alpha1.RedisExperimentSchedule {
	n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(2), scheduletest.Night(1000))
	return scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
		e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last", Confirm: true}
		e.Spec.SuccessfulRunsHistoryLimit, e.Spec.FailedRunsHistoryLimit = new(int32(9)), new(int32(9))
		if change != nil {
			change(e)
		}
	})
}

// abortRun ends a run by hand once it has a load test.
func abortRun(n *scheduletest.Nights, name string) {
	n.T.Helper()
	n.Until(name+" runs", scheduletest.LongAfter, func() bool { return len(n.RunsOf(name)) > 0 }, func() string {
		return operatortest.Where(scheduletest.Schedule(n.World.Place, "nightly").Status.Conditions)
	})
	n.MustChange(operatortest.Change(n.Place, n.Experiment(name), func(e *v1alpha1.RedisExperiment) {
		e.Spec.Abort = true
	}))
}

// A repetition that is aborted is made up for by another one.
func TestRepetitionIsRepeated(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t, second := n.T, scheduletest.NameOf("nightly", scheduletest.Night(2))
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(withConfirm(n, lasting(time.Hour)))
		abortRun(n, second+"c")
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
		if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionUnknown ||
			is.Reason != v1alpha1.ReasonConfirming ||
			!strings.Contains(is.Message, "could not tell: 1, the last one "+second+"c: Aborted: ") {
			t.Errorf("%+v", is)
		}
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 4, scheduletest.LongAfter)
		if got := names(e)[1:]; !slices.Equal(got, []string{second, second + "c", second + "d"}) ||
			e.Status.History[3].Confirms != second {
			t.Errorf("%+v", e.Status.History)
		}
		if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
			is.Reason != v1alpha1.ReasonRegressed || !strings.Contains(is.Message, "since "+second+": ") {
			t.Errorf("%+v", is)
		}
	})
}

// A regression of which no repetition can tell is called all the same, and does not vanish: it ends as others do.
func TestRegressionThatCannotBeConfirmed(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t, second := n.T, scheduletest.NameOf("nightly", scheduletest.Night(2))
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(withConfirm(n, lasting(time.Hour)))
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(2), scheduletest.Night(4))
		for _, letter := range []string{"c", "d", "e"} {
			abortRun(n, second+letter)
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
			is := scheduletest.RegressedCondition(t,
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", run, scheduletest.LongAfter).Status.Conditions)
			if is.Status != want || want == metav1.ConditionTrue &&
				(is.Reason != v1alpha1.ReasonUnconfirmed || !strings.Contains(is.Message, "since "+second+": ") ||
					!strings.Contains(is.Message, "(not confirmed: "+second+"e: Aborted: ")) {
				t.Errorf("after run %d: %+v", run, is)
			}
		}
		if events := eventsOf(n.World.Place, v1alpha1.EventExperimentRegressed); len(events["nightly"]) != 1 {
			t.Errorf("%+v", events)
		}
	})
}

// With Replace, a run that is due awaits the end of a repetition.
func TestRepetitionIsNotReplaced(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(withConfirm(n, func(e *v1alpha1.RedisExperimentSchedule) {
			lasting(14 * time.Hour)(e) // the repetition lasts until the morning after
			e.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace
		}))
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		third := scheduletest.NameOf("nightly", scheduletest.Night(3))
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 4, scheduletest.LongAfter)
		h := e.Status.History
		if got := names(e)[1:]; !slices.Equal(got, []string{second, second + "c", third}) ||
			h[2].Verdict != v1alpha1.VerdictPass || e.Status.Skipped != 0 {
			t.Errorf("%+v, skipped %d", h, e.Status.Skipped)
		}
		if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
			is.Reason != v1alpha1.ReasonRegressed {
			t.Errorf("%+v", is)
		}
	})
}

// A repetition that cannot be created is said, and tried again ever more seldom. The schedule goes on: its next run,
// against the same earlier one, confirms.
func TestScheduleWithoutARepetition(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		third := scheduletest.NameOf("nightly", scheduletest.Night(3))
		var refused atomic.Int32
		operatortest.StartOperator(n.Place, refusing(&refused, func(name string) bool {
			return strings.HasSuffix(name,
				"c")
		}))
		n.Create(withConfirm(n, nil))
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		time.Sleep(time.Hour)
		e := scheduletest.Schedule(n.World.Place, "nightly")
		if text := operatortest.Where(
			e.Status.Conditions); operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonRefused ||
			!strings.Contains(text, second+"c") || !strings.Contains(text, "exceeded quota") {
			t.Errorf("%s", text)
		}
		if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Reason != v1alpha1.ReasonConfirming {
			t.Errorf("%+v", is)
		}
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, 24*time.Hour)
		if last := e.Status.History[2]; last.Name != third || last.StartTime.Sub(scheduletest.Night(3)) > time.Minute ||
			e.Status.Skipped != 0 {
			t.Errorf("%+v", e.Status)
		}
		if to := n.Experiment(third).Spec.CompareTo; to == nil ||
			to.Run != scheduletest.NameOf("nightly", scheduletest.Night(1)) {
			t.Errorf("%+v", to)
		}
		if is := scheduletest.RegressedCondition(t, e.Status.Conditions); is.Status != metav1.ConditionTrue ||
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
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		var refused atomic.Int32
		operatortest.StartOperator(n.Place,
			refusing(&refused, func(name string) bool { return name == scheduletest.NameOf("nightly", scheduletest.Night(1)) }))
		n.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.StartingDeadlineSeconds = new(
				int64(3600))
		}))
		e := scheduletest.ScheduleIs(n.World.Place, "nightly", "a run is skipped", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return e.Status.Skipped == 1
			})
		if tried, late := refused.Load(),
			time.Since(scheduletest.Night(1)); tried < 8 || tried > 20 || late < time.Hour || late > time.Hour+time.Minute {
			t.Errorf("it was tried %d times in %s", tried, late)
		}
		if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonScheduled {
			t.Errorf("%s", operatortest.Where(e.Status.Conditions))
		}
		if got := names(scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)); !slices.Equal(got,
			[]string{scheduletest.NameOf("nightly", scheduletest.Night(2))}) {
			t.Errorf("ran %v", got)
		}
	})
}
