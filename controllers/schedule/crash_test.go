package schedule_test

import (
	"fmt"
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

// The operator ends just before or after each of its writes for a schedule, in one world at some of them, in another
// one at others. Another process continues: no run is lost, none is twice, and they do not overlap.
func TestScheduleSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	const worlds = 5
	for n := range int32(worlds) {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("every write %d of %d after %v", n+1, worlds, after), func(t *testing.T) {
				t.Parallel()
				crashing(t, func(write int32) bool { return write%worlds == n }, after)
			})
		}
	}
}

// crashing lets the operator end at some of the writes of a schedule's steps.
func crashing(t *testing.T, at func(write int32) bool, after bool) {
	t.Helper()
	var writes, crashes atomic.Int32
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(2), scheduletest.Night(1000))
		operatortest.KeepRunning(n.Place, func(self func() *operatortest.Operator) operatortest.Spy {
			of := func(w operatortest.Write) bool { // the schedule's, and of its runs
				name := w.Object.GetName()
				_, itself := w.Object.(*v1alpha1.RedisExperimentSchedule)
				_, run := w.Object.(*v1alpha1.RedisExperiment)
				return name == "nightly-history" || itself || run && w.Verb != "patch-status"
			}
			die := func(w operatortest.Write) {
				if of(w) && at(writes.Add(1)) {
					crashes.Add(1)
					self().Crash()
				}
			}
			if after {
				return operatortest.Spy{After: die}
			}
			return operatortest.Spy{Before: func(w operatortest.Write) error {
				if die(w); self().Dead() {
					return operatortest.ErrDead
				}
				return nil
			}}
		})
		n.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: "last", Confirm: true}
			e.Spec.SuccessfulRunsHistoryLimit = new(int32(1))
		}))
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 4, scheduletest.LongAfter)
		n.Until("one run is kept", time.Hour, func() bool { return len(scheduledRuns(n.World.Place, "nightly")) == 1 },
			func() string {
				return fmt.Sprint(scheduledRuns(n.World.Place, "nightly"))
			})
		e = scheduletest.Schedule(n.World.Place, e.Name)
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		want := []string{
			scheduletest.NameOf("nightly", scheduletest.Night(1)), second, second + "c",
			scheduletest.NameOf("nightly", scheduletest.Night(3)),
		}
		if got := names(e); !slices.Equal(got, want) || e.Status.Skipped != 0 {
			t.Errorf("ran %v, want %v; skipped %d", got, want, e.Status.Skipped)
		}
		for i, run := range e.Status.History {
			if i > 0 && run.StartTime.Before(e.Status.History[i-1].StartTime) {
				t.Errorf("%+v", e.Status.History)
			}
			if run.Verdict != v1alpha1.VerdictPass {
				t.Errorf("%+v", run)
			}
		}
		if c := scheduletest.RegressedCondition(t, e.Status.Conditions); c.Status != metav1.ConditionTrue ||
			!strings.Contains(c.Message, "since "+second+":") {
			t.Errorf("%+v", c)
		}
		if writes.Load() < 20 || crashes.Load() < 4 {
			t.Errorf("%d crashes at %d writes", crashes.Load(), writes.Load())
		}
		t.Logf("%d crashes at %d writes", crashes.Load(), writes.Load())
	})
}
