package schedule_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// names are those of the runs of a history.
func names(e *v1alpha1.RedisExperimentSchedule) (all []string) {
	for _, run := range e.Status.History {
		all = append(all, run.Name)
	}
	return all
}

// Between runs a schedule shows the next time, and is as current as a CronJob.
func TestScheduleWaits(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.TimeZone = new(
				"Europe/Berlin")
		})
		due := scheduletest.Night(1).Add(-time.Hour)
		time.Sleep(time.Minute)
		e := scheduletest.Schedule(n.World.Place, "nightly")
		if st := e.Status; operatortest.Reason(st.Conditions) != v1alpha1.ReasonScheduled ||
			!st.NextScheduleTime.Time.Equal(due) ||
			st.Display.Next != "2000-01-01T03:00+01:00" || st.Display.Last != "" ||
			!strings.Contains(operatortest.Where(st.Conditions), "2000-01-01T03:00:00+01:00 (Europe/Berlin)") ||
			operatortest.KstatusOf(t, e.DeepCopy()) != "Current" {
			t.Errorf("%s; %+v; %+v; %s", operatortest.Where(st.Conditions), st, st.Display,
				operatortest.KstatusOf(t, e.DeepCopy()))
		}
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
		if st := e.Status; st.Display.Last != "2000-01-01T03:00+01:00" || !st.LastScheduleTime.Time.Equal(due) ||
			st.History[0].Name != scheduletest.NameOf("nightly", due) || st.Active != "" || st.LastSuccessfulTime == nil {
			t.Errorf("%+v", st)
		}
		run := n.Experiment(scheduletest.NameOf("nightly", due))
		if run.Labels[v1alpha1.LabelSchedule] != "nightly" || run.Labels["app.kubernetes.io/component"] != "scheduled" ||
			!metav1.IsControlledBy(run, e) || run.Annotations[v1alpha1.AnnotationScheduledAt] != "2000-01-01T02:00:00Z" {
			t.Errorf("%+v %+v", run.ObjectMeta, run.Spec)
		}
	})
}

// A schedule that cannot work says why, with the field, and goes on once that is mended.
func TestScheduleThatCannotWork(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		for name, c := range map[string]struct {
			change func(*v1alpha1.RedisExperimentSchedule)
			want   string
		}{
			"cron": {func(s *v1alpha1.RedisExperimentSchedule) { s.Spec.Schedule = "nightly" }, "spec.schedule: "},
			"zone": {func(s *v1alpha1.RedisExperimentSchedule) { s.Spec.TimeZone = new("Mars/Phobos") }, "spec.timeZone: "},
			"matrix": {
				func(s *v1alpha1.RedisExperimentSchedule) { s.Spec.Template.Spec.Matrix[0].Path = "client.latency" },
				"spec.template.spec.matrix[0]",
			},
			"one cell": {func(s *v1alpha1.RedisExperimentSchedule) {
				s.Name, s.Spec.Template.Spec.Matrix[0].Values = "one-cell", s.Spec.Template.Spec.Matrix[0].Values[:1]
			}, "spec.template.spec.matrix: "},
		} {
			s := scheduletest.NewSchedule(name, c.change)
			n.Create(s)
			name := s.Name
			s = scheduletest.ScheduleIs(n.World.Place, name, "it is invalid", time.Minute,
				func(s *v1alpha1.RedisExperimentSchedule) bool {
					return operatortest.Reason(s.Status.Conditions) == v1alpha1.ReasonInvalidSpec
				})
			ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Status != metav1.ConditionFalse || !strings.HasPrefix(ready.Message, c.want) ||
				operatortest.KstatusOf(t, s.DeepCopy()) != "Failed" {
				t.Errorf("%s: %+v, %s", name, ready, operatortest.KstatusOf(t, s.DeepCopy()))
			}
			n.MustChange(operatortest.Change(n.Place, s, func(s *v1alpha1.RedisExperimentSchedule) {
				s.Spec = scheduletest.NewSchedule(name, nil).Spec
			}))
			scheduletest.RunsHaveEnded(n.World.Place, name, 1, scheduletest.LongAfter)
			time.Sleep(time.Minute)
			if s := scheduletest.Schedule(n.World.Place,
				name); operatortest.Reason(s.Status.Conditions) != v1alpha1.ReasonScheduled ||
				operatortest.KstatusOf(t, s.DeepCopy()) != "Current" {
				t.Errorf("%s: once it is mended: %s, %s", name, operatortest.Where(s.Status.Conditions),
					operatortest.KstatusOf(t, s.DeepCopy()))
			}
		}
	})
}

// A step that fails for hours is shown: runs are not created, or not recorded. Once it succeeds, the schedule goes on.
func TestScheduleSaysWhatFails(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "nightly-history",
		errors.New("exceeded quota: maps"))
	for name, c := range map[string]struct {
		fails  func(w operatortest.Write) error
		reason string
		want   string
	}{
		"a webhook": {func(w operatortest.Write) error {
			if _, is := w.Object.(*v1alpha1.RedisExperiment); is && w.Verb == "create" {
				return apierrors.NewInternalError(errors.New("failed calling webhook"))
			}
			return nil
		}, v1alpha1.ReasonRetrying, "failed calling webhook"},
		"a quota": {func(w operatortest.Write) error {
			if w.Object.GetName() == "nightly-history" {
				return quota
			}
			return nil
		}, v1alpha1.ReasonRefused, "exceeded quota: maps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t := n.T
				var mended atomic.Bool
				var failed atomic.Int32
				operatortest.StartOperator(n.Place, operatortest.Spy{Before: func(w operatortest.Write) error {
					if mended.Load() {
						return nil
					}
					err := c.fails(w)
					if err != nil {
						failed.Add(1)
					}
					return err
				}})
				n.Create(scheduletest.NewSchedule("nightly", nil))
				time.Sleep(50 * time.Hour)
				s := scheduletest.Schedule(n.World.Place, "nightly")
				ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
				if ready.Status != metav1.ConditionFalse || ready.Reason != c.reason || !strings.Contains(ready.Message, c.want) ||
					operatortest.KstatusOf(t, s.DeepCopy()) != "InProgress" || s.Status.Display.Next != "" {
					t.Errorf("%+v, %s, next %q", ready, operatortest.KstatusOf(t, s.DeepCopy()), s.Status.Display.Next)
				}
				if events := eventsOf(n.World.Place, c.reason)["nightly"]; failed.Load() < 3 || len(events) != 1 {
					t.Errorf("%d attempts, events %q", failed.Load(), events)
				}
				mended.Store(true)
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
				time.Sleep(time.Minute)
				if s := scheduletest.Schedule(n.World.Place,
					"nightly"); operatortest.Reason(s.Status.Conditions) != v1alpha1.ReasonScheduled ||
					s.Status.Display.Next == "" {
					t.Errorf("once it is mended: %s, next %q", operatortest.Where(s.Status.Conditions), s.Status.Display.Next)
				}
			})
		})
	}
}

// A run that was refused all night is created soon in the next one, once it is accepted.
func TestRefusalEndsInTheNextNight(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		var refused atomic.Int32
		accepted := scheduletest.Night(2).Add(20 * time.Second)
		operatortest.StartOperator(n.Place, refusing(&refused, func(string) bool { return time.Now().Before(accepted) }))
		n.Create(scheduletest.NewSchedule("nightly", nil))
		s := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
		if run := s.Status.History[0]; run.Name != scheduletest.NameOf("nightly", scheduletest.Night(2)) ||
			run.StartTime.Sub(accepted) > time.Minute {
			t.Errorf("%s began at %s", run.Name, run.StartTime)
		}
		if tried := refused.Load(); tried > 400 {
			t.Errorf("it was tried %d times in a day", tried)
		}
	})
}

// A run that is due while another one has not ended is skipped and counted.
func TestScheduleForbids(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(lasting(30 * time.Hour))
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		if got, want := names(e), []string{
			scheduletest.NameOf("nightly", scheduletest.Night(1)),
			scheduletest.NameOf("nightly", scheduletest.Night(3)),
		}; !slices.Equal(got, want) || e.Status.Skipped != 2 {
			t.Errorf("ran %v, want %v; skipped %d", got, want, e.Status.Skipped)
		}
		if notes := eventsOf(n.World.Place, v1alpha1.EventRunSkipped)["nightly"]; len(notes) != 2 ||
			!strings.Contains(notes[0], "has not ended") {
			t.Errorf("%q", notes)
		}
	})
}

// A run that is due ends the one that is under way. It is created once that one has ended, and is deleted.
func TestScheduleReplaces(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		first := scheduletest.NameOf("nightly", scheduletest.Night(1))
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		operatortest.StartOperator(n.Place, operatortest.Spy{Before: func(w operatortest.Write) error {
			if created, is := w.Object.(*v1alpha1.RedisExperiment); is && w.Verb == "create" && created.Name == second {
				if gone := !n.Read(&v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: first}}); !gone {
					t.Errorf("%s was created while %s existed", second, first)
				}
				for _, test := range n.RunsOf(first) {
					if !state.IsFinished(test.Status.Conditions) {
						t.Errorf("%s was created while %s ran", second, test.Name)
					}
				}
			}
			return nil
		}})
		n.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			lasting(30 * time.Hour)(e)
			e.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyReplace
		}))
		e := scheduletest.ScheduleIs(n.World.Place, "nightly", "the second run is active", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return e.Status.Active == second
			})
		h := e.Status.History
		if len(h) != 1 || h[0].Name != first || h[0].Verdict != v1alpha1.VerdictInconclusive ||
			!strings.HasPrefix(h[0].Message, "Aborted: ") || e.Status.Skipped != 0 {
			t.Errorf("%+v, skipped %d", h, e.Status.Skipped)
		}
	})
}

// After an absence the latest missed time alone has a run; the others are counted, and more than a hundred are said.
func TestScheduleAfterAnAbsence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*v1alpha1.RedisExperimentSchedule)
		absence time.Duration
		runs    []int // nights
		skipped int64
		why     string
	}{
		"three nights": {nil, 3 * 24 * time.Hour, []int{1, 4}, 2, "2 scheduled times were missed"},
		"a year":       {nil, 366 * 24 * time.Hour, []int{1, 367}, 100, "more than 100 scheduled times were missed"},
		"deadline": {func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.StartingDeadlineSeconds = new(
				int64(60))
		}, 2*24*time.Hour + 30*time.Minute, []int{1, 4}, 2, "startingDeadlineSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t := n.T
				o := n.Begin(c.change)
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
				o.Stop()
				time.Sleep(c.absence)
				operatortest.StartOperator(n.Place, operatortest.Spy{})
				e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
				var want []string
				for _, i := range c.runs {
					want = append(want, scheduletest.NameOf("nightly", scheduletest.Night(i)))
				}
				if got := names(e); !slices.Equal(got, want) || e.Status.Skipped != c.skipped {
					t.Errorf("ran %v, want %v; skipped %d, want %d", got, want, e.Status.Skipped, c.skipped)
				}
				if notes := eventsOf(n.World.Place, v1alpha1.EventRunSkipped)["nightly"]; len(notes) != 1 ||
					!strings.Contains(notes[0], c.why) {
					t.Errorf("%q", notes)
				}
			})
		})
	}
}

// A suspended schedule creates no run; once it goes on, the time that was missed last has one.
func TestScheduleIsSuspended(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) { e.Spec.Suspend = true })
		time.Sleep(50 * time.Hour)
		e := scheduletest.Schedule(n.World.Place, "nightly")
		if len(scheduledRuns(n.World.Place, "nightly")) > 0 ||
			!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionSuspended) || e.Status.Display.Next != "" {
			t.Errorf("%v, %s", scheduledRuns(n.World.Place, "nightly"), operatortest.Where(e.Status.Conditions))
		}
		n.MustChange(operatortest.Change(n.Place, e, func(e *v1alpha1.RedisExperimentSchedule) { e.Spec.Suspend = false }))
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, time.Hour)
		if got := names(e)[0]; got != scheduletest.NameOf("nightly", scheduletest.Night(2)) || e.Status.Skipped != 1 {
			t.Errorf("%+v", e.Status)
		}
	})
}

// A schedule that is suspended during a run is so all the time, also while the run is recorded and deleted.
func TestScheduleIsSuspendedDuringARun(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		var since atomic.Bool
		operatortest.StartOperator(n.Place, operatortest.Spy{Before: func(w operatortest.Write) error {
			if s, is := w.Object.(*v1alpha1.RedisExperimentSchedule); is && w.Verb == "patch-status" && since.Load() {
				if !meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionSuspended) ||
					operatortest.Reason(s.Status.Conditions) != v1alpha1.ReasonSuspended {
					t.Errorf("%s", operatortest.Where(s.Status.Conditions))
				}
			}
			return nil
		}})
		n.Create(scheduletest.NewSchedule("nightly", func(s *v1alpha1.RedisExperimentSchedule) {
			lasting(time.Hour)(s)
			s.Spec.SuccessfulRunsHistoryLimit = new(int32(0))
		}))
		s := scheduletest.ScheduleIs(n.World.Place, "nightly", "it runs", scheduletest.LongAfter,
			func(s *v1alpha1.RedisExperimentSchedule) bool {
				return s.Status.Active != ""
			})
		n.MustChange(operatortest.Change(n.Place, s, func(s *v1alpha1.RedisExperimentSchedule) { s.Spec.Suspend = true }))
		time.Sleep(time.Minute)
		since.Store(true)
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
		time.Sleep(time.Hour)
		if got := scheduledRuns(n.World.Place, "nightly"); len(got) > 0 {
			t.Errorf("runs %v", got)
		}
	})
}

// A run that somebody aborts is recorded, and the next one comes at its time. Once the schedule is deleted there are no
// more, and none is left.
func TestScheduleGoesOnAfterAnAbort(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(lasting(10 * time.Hour))
		first := scheduletest.NameOf("nightly", scheduletest.Night(1))
		second := scheduletest.NameOf("nightly", scheduletest.Night(2))
		e := scheduletest.ScheduleIs(n.World.Place, "nightly", "it runs", scheduletest.LongAfter,
			func(s *v1alpha1.RedisExperimentSchedule) bool {
				return s.Status.Active == first && len(n.RunsOf(first)) > 0
			})
		if ready := meta.FindStatusCondition(e.Status.Conditions,
			v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || ready.Reason != v1alpha1.ReasonRunning ||
			operatortest.KstatusOf(t, e.DeepCopy()) != "Current" {
			t.Errorf("while it runs: %+v, %s", ready, operatortest.KstatusOf(t, e.DeepCopy()))
		}
		abortRun(n, first)
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, time.Hour)
		if run := n.Experiment(first); operatortest.Reason(run.Status.Conditions) != v1alpha1.ReasonAborted ||
			!meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
			t.Errorf("%s; %s", operatortest.Where(run.Status.Conditions), operatortest.Where(e.Status.Conditions))
		}
		scheduletest.ScheduleIs(n.World.Place, "nightly", "it runs again", scheduletest.LongAfter,
			func(s *v1alpha1.RedisExperimentSchedule) bool {
				return s.Status.Active == second
			})
		n.MustChange(n.Client.Delete(t.Context(), e))
		time.Sleep(50 * time.Hour)
		if got := scheduledRuns(n.World.Place, "nightly"); len(got) > 0 {
			t.Errorf("runs %v of a deleted schedule", got)
		}
	})
}

// A clock that is set forward is noticed; one that is set back meets no time twice.
func TestScheduleWithAClockThatIsSet(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(nil)
		time.Sleep(time.Hour)
		n.Clock.Ahead.Store(int64(2 * time.Hour))
		began := time.Now()
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, time.Hour)
		if late := time.Since(began); late > 15*time.Minute {
			t.Errorf("the clock was set %s before", late)
		}
		n.Clock.Ahead.Store(-int64(time.Hour))
		time.Sleep(5 * time.Hour)
		if got := names(scheduletest.Schedule(n.World.Place, "nightly")); len(got) != 1 {
			t.Errorf("ran %v", got)
		}
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		if got, want := names(e), []string{
			scheduletest.NameOf("nightly", scheduletest.Night(1)),
			scheduletest.NameOf("nightly", scheduletest.Night(2)),
		}; !slices.Equal(got, want) || e.Status.Skipped != 0 {
			t.Errorf("ran %v, want %v; skipped %d", got, want, e.Status.Skipped)
		}
	})
}

// As many runs are kept as the limits say, by how they ended; the history has all.
func TestScheduleHistoryLimits(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(3), scheduletest.Night(1000))
		n.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.SuccessfulRunsHistoryLimit, e.Spec.FailedRunsHistoryLimit = new(int32(2)), new(int32(1))
			// from the second on; it outlives its object
			e.Spec.CompareTo = &v1alpha1.ScheduleComparison{Run: scheduletest.NameOf("nightly", scheduletest.Night(1))}
			e.Spec.Template.Spec.Objectives = &v1alpha1.ExperimentObjectives{NoRegression: true}
		}))
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 6, scheduletest.LongAfter)
		time.Sleep(time.Minute)
		want := []string{
			scheduletest.NameOf("nightly", scheduletest.Night(1)),
			scheduletest.NameOf("nightly", scheduletest.Night(2)), scheduletest.NameOf("nightly", scheduletest.Night(6)),
		}
		if got := scheduledRuns(n.World.Place, "nightly"); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
		for i, verdict := range []v1alpha1.Verdict{"Pass", "Pass", "Fail", "Fail", "Fail", "Fail"} {
			if run := e.Status.History[i]; run.Verdict != verdict {
				t.Errorf("%+v, want %s", run, verdict)
			}
		}
		if tests := n.RunsOf(scheduletest.NameOf("nightly", scheduletest.Night(4))); len(tests) > 0 {
			t.Errorf("%d load tests of a deleted run are there", len(tests))
		}
	})
}
