package schedule_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// A slowdown from the 21st of 30 nights on: the comparison with the last run shows it in the 21st, the history names
// the 21st as the first run on the new level within 6 runs, and nothing is called anywhere else.
func TestScheduleFindsASlowdown(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(21), scheduletest.Night(1000))
		n.Begin(scheduletest.ToLast)
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 30, scheduletest.LongAfter)
		st, since := e.Status, scheduletest.NameOf("nightly", scheduletest.Night(21))
		for i, run := range st.History {
			if run.Name != scheduletest.NameOf("nightly", scheduletest.Night(i+1)) || run.Verdict != v1alpha1.VerdictPass {
				t.Errorf("run %d: %+v", i+1, run)
			}
			if wanted := map[int]int32{20: 2}[i]; run.Regressed != wanted { // both cells
				t.Errorf("run %d shows %d regressions, want %d: %s", i+1, run.Regressed, wanted, run.Message)
			}
		}
		if len(st.Changes) != 2 || st.Changes[0].Cell == st.Changes[1].Cell {
			t.Errorf("changes %+v, want one of each cell", st.Changes)
		}
		for _, c := range st.Changes {
			if c.Since != since || !c.Worse || c.Found > scheduletest.NameOf("nightly", scheduletest.Night(27)) ||
				c.Figure != "latencyP99" {
				t.Errorf("change %+v, want since %s", c, since)
			}
		}
		c := scheduletest.RegressedCondition(t, e.Status.Conditions)
		for _, part := range []string{
			"latency=5ms since " + since, "latencyP99 ", "% higher ",
			"than " + scheduletest.NameOf("nightly", scheduletest.Night(20)),
		} {
			if c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, part) {
				t.Errorf("condition %+v, want %q", c, part)
			}
		}
		events := eventsOf(n.World.Place, v1alpha1.EventExperimentRegressed)
		if len(events) != 1 || len(events["nightly"]) != 3 { // the comparison, and a change of each cell
			t.Errorf("events %+v", events)
		}
		t.Logf("%s\n%+v", c.Message, st.Changes)
	})
}

// A schedule of one cell has nothing to compare its first run with, which counts all the same: the others are compared
// with it.
func TestScheduleOfOneCell(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(3), scheduletest.Night(1000))
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
			scheduletest.ToLast(e)
			e.Spec.Template.Spec.Matrix[0].Values = e.Spec.Template.Spec.Matrix[0].Values[:1]
		})
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
		for i, run := range e.Status.History {
			if wanted := map[int]int32{2: 1}[i]; run.Verdict != v1alpha1.VerdictPass || run.Regressed != wanted {
				t.Errorf("run %d: %+v, want %d regressions", i+1, run, wanted)
			}
		}
		if c := scheduletest.RegressedCondition(t, e.Status.Conditions); c.Status != metav1.ConditionTrue {
			t.Errorf("%+v", c)
		}
	})
}

// Over 30 nights without any slowdown nothing is called.
func TestScheduleWithoutASlowdown(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Noise
		n.Begin(scheduletest.ToLast)
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 30, scheduletest.LongAfter)
		if st := e.Status; len(st.Changes) > 0 || len(eventsOf(n.World.Place, v1alpha1.EventExperimentRegressed)) > 0 {
			t.Errorf("changes %+v", st.Changes)
		}
		for _, run := range e.Status.History {
			if run.Regressed > 0 {
				t.Errorf("%+v", run)
			}
		}
		if c := scheduletest.RegressedCondition(t, e.Status.Conditions); c.Status != metav1.ConditionFalse {
			t.Errorf("%+v", c)
		}
		if e.Status.Verdict != v1alpha1.VerdictPass || e.Status.Results != "nightly-history" || e.Status.Active != "" ||
			e.Status.Skipped != 0 {
			t.Errorf("%+v", e.Status)
		}
	})
}

// What regressed ends with the second night at the old level.
func TestScheduleRecovers(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(3), scheduletest.Night(5))
		n.Begin(scheduletest.ToLast)
		for run, want := range map[int]metav1.ConditionStatus{1: metav1.ConditionUnknown} {
			if c := scheduletest.RegressedCondition(t,
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", run,
					scheduletest.LongAfter).Status.Conditions); c.Status != want {
				t.Errorf("after run %d: %+v", run, c)
			}
		}
		for run, want := range []metav1.ConditionStatus{
			2: metav1.ConditionFalse,
			3: metav1.ConditionTrue,
			4: metav1.ConditionTrue,
			5: metav1.ConditionTrue,
			6: metav1.ConditionFalse,
		} {
			if run < 2 {
				continue
			}
			if c := scheduletest.RegressedCondition(t,
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", run,
					scheduletest.LongAfter).Status.Conditions); c.Status != want {
				t.Errorf("after run %d: %+v, want %s", run, c, want)
			}
		}
	})
}

// With confirm, a regression is called only if the repetition of the run, compared with the same earlier one, shows it
// too.
func TestScheduleConfirms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until  time.Time // of the slowdown
		called bool
	}{
		"lasting": {scheduletest.Night(1000), true},
		"gone":    {scheduletest.Night(3).Add(8 * time.Second), false}, // before the repetition begins
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t := n.T
				n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(3), c.until)
				n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
					e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last", Confirm: true}
					e.Spec.SuccessfulRunsHistoryLimit = new(int32(9))
				})
				e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 5, scheduletest.LongAfter)
				third := scheduletest.NameOf("nightly", scheduletest.Night(3))
				h := e.Status.History
				if h[2].Name != third || h[2].Regressed != 2 || h[2].Confirms != "" {
					t.Errorf("%+v", h[2])
				}
				if again := h[3]; again.Name != third+"c" || again.Confirms != third || (again.Regressed > 0) != c.called {
					t.Errorf("%+v", again)
				}
				again := n.Experiment(third + "c")
				if to := again.Spec.CompareTo; to == nil || to.Run != scheduletest.NameOf("nightly", scheduletest.Night(2)) ||
					again.CreationTimestamp.Sub(scheduletest.Night(3)) > time.Minute {
					t.Errorf("the repetition was created at %s, %+v", again.CreationTimestamp, to)
				}
				if h[4].Name != scheduletest.NameOf("nightly", scheduletest.Night(4)) {
					t.Errorf("%+v", h[4])
				}
				is := scheduletest.RegressedCondition(t, e.Status.Conditions)
				if (is.Status == metav1.ConditionTrue) != c.called ||
					c.called && !strings.Contains(is.Message, "since "+third+":") {
					t.Errorf("%+v", is)
				}
				if events := eventsOf(n.World.Place, v1alpha1.EventExperimentRegressed); len(events["nightly"]) > 0 != c.called ||
					len(events) > 1 {
					t.Errorf("%+v", events)
				}
			})
		})
	}
}

// Runs with other cells are another history: they are compared with none before, and a level is theirs.
func TestScheduleWithOtherCells(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
			scheduletest.ToLast(e)
			e.Spec.Template.Spec.Objectives = &v1alpha1.ExperimentObjectives{NoRegression: true}
			e.Spec.SuccessfulRunsHistoryLimit = new(int32(9))
		})
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		n.MustChange(operatortest.Change(n.Place, scheduletest.Schedule(n.World.Place, "nightly"),
			func(e *v1alpha1.RedisExperimentSchedule) {
				e.Spec.Template.Spec.Matrix[0].Values[1].StrVal = "20ms"
			}))
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 4, scheduletest.LongAfter)
		for i, want := range []string{
			1: "",
			2: scheduletest.NameOf("nightly", scheduletest.Night(1)),
			3: "",
			4: scheduletest.NameOf("nightly", scheduletest.Night(3)),
		} {
			if i == 0 {
				continue
			}
			run := n.Experiment(scheduletest.NameOf("nightly", scheduletest.Night(i)))
			got := ""
			if run.Spec.CompareTo != nil {
				got = run.Spec.CompareTo.Run
			}
			if got != want || run.Status.Verdict != v1alpha1.VerdictPass || run.Spec.Objectives.NoRegression != (want != "") {
				t.Errorf("run %d is compared with %q, want %q; verdict %s", i, got, want, run.Status.Verdict)
			}
		}
	})
}
