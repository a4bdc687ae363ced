package redisfault_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// externalFault waits, from the 12th second of the load on, until something else breaks Redis.
func externalFault(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	return operatortest.NewFault("outage", "run", v1alpha1.FaultExternal, func(f *v1alpha1.RedisFault) {
		f.Spec.Select = v1alpha1.FaultSelector{}
		f.Spec.Trigger.After = operatortest.Length(12 * time.Second)
		if change != nil {
			change(f)
		}
	})
}

// awaitMark returns once the fault waits for its instant, and two seconds later.
func awaitMark(w *operatortest.World) *v1alpha1.RedisFault {
	w.T.Helper()
	f := w.FaultHasReason("outage", time.Minute, v1alpha1.ReasonWaitingForMark)
	if f.Status.StartTime == nil || f.Status.InjectedAt != nil || f.Status.Holding != nil || f.Status.Plan == nil ||
		len(f.Status.Targets) > 0 {
		w.T.Errorf("while it waits: %+v", f.Status)
	}
	time.Sleep(2 * time.Second)
	return f
}

// annotate marks the fault.
func annotate(w *operatortest.World, value string) {
	w.T.Helper()
	w.MustChange(operatortest.Change(w.Place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
		func(f *v1alpha1.RedisFault) {
			f.Annotations = map[string]string{v1alpha1.AnnotationMark: value}
		}))
}

// deletePod is what somebody does by kubectl; it returns when.
func deletePod(w *operatortest.World) time.Time {
	w.T.Helper()
	at := w.Clock.Now()
	w.MustChange(w.Client.Delete(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "redis-0"},
	}))
	return at
}

// checkExternal checks the figures of an outage that something else caused, against when that was and for how long the
// server was down.
func checkExternal(
	w *operatortest.World, f *v1alpha1.RedisFault, by v1alpha1.MarkSource, began time.Time, redis *operatortest.RedisSet,
) {
	w.T.Helper()
	s := &f.Status
	w.T.Logf("%s: marked by %s at %s, broken at %s; %s; timeline %v", operatortest.Where(s.Conditions), s.MarkedBy,
		s.InjectedAt, began,
		s.EffectEvidence, operatortest.TimelineOf(f))
	for _, e := range s.Timeline {
		w.T.Logf("%9s  %-18s  %s  %s", e.Offset.Duration, e.Event, e.Object, e.Message)
	}
	if operatortest.Reason(s.Conditions) != v1alpha1.ReasonSucceeded || s.MarkedBy != by ||
		s.Effect != v1alpha1.EffectConfirmed ||
		s.Impact == nil || s.InjectedOffset == nil {
		w.T.Fatalf("%s, marked by %s, effect %s (%s)", operatortest.Where(s.Conditions), s.MarkedBy, s.Effect,
			s.EffectEvidence)
	}
	if d := s.InjectedAt.Sub(began); d < -20*time.Millisecond || d > 20*time.Millisecond {
		w.T.Errorf("t0 is %s from when it broke", d)
	}
	if d := s.LoadStartTime.Add(s.InjectedOffset.Duration).Sub(s.InjectedAt.Time); d < -time.Millisecond ||
		d > time.Millisecond {
		w.T.Errorf("t0 by the clock of the run is %s from t0", d)
	}
	i, down := s.Impact, redis.DownTime()
	if d := i.Outage.Value.Duration - down; d < 0 || d > 20*time.Millisecond || i.RecoveryTime == nil ||
		i.RecoveryTime.Value.Duration-down > 100*time.Millisecond {
		w.T.Errorf("outage %+v, recovery %+v, the server was down for %s", i.Outage, i.RecoveryTime, down)
	}
	for _, event := range []string{"Marked", "PodDeleted", "ReplacementCreated", "FirstSuccess", "Recovered"} {
		if !slices.Contains(operatortest.TimelineOf(f), event) {
			w.T.Errorf("no event %s: %v", event, operatortest.TimelineOf(f))
		}
	}
	if s.Display.Target != "redis-0" || len(i.Phases) == 0 ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReverted) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInjected) {
		w.T.Errorf("display %+v, phases %+v, conditions %+v", s.Display, i.Phases, s.Conditions)
	}
	if s.Verdict != v1alpha1.VerdictPass {
		w.T.Errorf("verdict %s, doubts %+v", s.Verdict, i.Doubts)
	}
}

// Somebody deletes the pod, and says when by the annotation: before or after the load has shown it.
func TestExternalByAnnotation(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"at once": 0, "after 100 ms": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				w.Create(externalFault(nil))
				awaitMark(w)
				began := deletePod(w)
				time.Sleep(late)
				annotate(w, began.UTC().Format(time.RFC3339Nano))
				f := w.FaultEnds("outage", time.Minute)
				checkExternal(w, f, v1alpha1.MarkedByAnnotation, began, w.Redis)
				if deleted := w.Redis.PodsDeleted(); len(deleted) != 1 {
					w.T.Errorf("pods deleted %v", deleted)
				}
			})
		})
	}
}

// Without an annotation, t0 is the begin of the outage that the load shows, although it is shorter than an anomaly. The
// operator may have been killed before that.
func TestExternalByLoad(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		operatortest.Scenario{
			Load:   operatortest.LongRun,
			Faults: []*v1alpha1.RedisFault{externalFault(nil)},
		}.Run(t, func(w *operatortest.World) {
			f := awaitMark(w)
			if restarts {
				w.Operator.Crash()
				w.Operator.Stop()
				time.Sleep(time.Second)
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				time.Sleep(3 * time.Second)
			}
			began := deletePod(w)
			ended := w.FaultEnds("outage", time.Minute)
			checkExternal(w, ended, v1alpha1.MarkedByLoad, began, w.Redis)
			if !ended.Status.StartTime.Equal(f.Status.StartTime) {
				w.T.Errorf("the wait began at %s, then at %s", f.Status.StartTime, ended.Status.StartTime)
			}
		})
	}
}

// An annotation that cannot be used is shown, and corrected by another one. "now" is when the operator reads it.
func TestExternalWithABadAnnotation(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(externalFault(func(f *v1alpha1.RedisFault) {
			f.Annotations = map[string]string{
				v1alpha1.AnnotationMark: "now",
			}
		}))
		w.FaultHasReason("outage", time.Minute, v1alpha1.ReasonInvalidMark)
		w.MustChange(operatortest.Change(w.Place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
			func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		awaitMark(w)
		for _, value := range []string{
			"yesterday", w.Clock.Now().Add(time.Hour).Format(time.RFC3339Nano),
			w.Clock.Now().Add(-time.Hour).Format(time.RFC3339Nano),
		} {
			annotate(w, value)
			w.Until("the value "+value+" is refused", 5*time.Second, func() bool {
				f := w.Fault("outage")
				c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
				return c.Reason == v1alpha1.ReasonInvalidMark && strings.Contains(c.Message, v1alpha1.AnnotationMark) &&
					strings.Contains(c.Message, value)
			}, func() string { return operatortest.Where(w.Fault("outage").Status.Conditions) })
		}
		began := deletePod(w)
		annotate(w, "now")
		f := w.FaultEnds("outage", time.Minute)
		checkExternal(w, f, v1alpha1.MarkedByAnnotation, began, w.Redis)
	})
}

// Nothing breaks Redis: the fault fails, or is ended before.
func TestExternalIsNeverMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RedisFault)
		act    func(w *operatortest.World)
		want   string
	}{
		"too long": {func(f *v1alpha1.RedisFault) {
			f.Spec.Action.External = &v1alpha1.External{WaitFor: *operatortest.Length(5 * time.Second)}
		}, nil, v1alpha1.ReasonNotMarked},
		"past deadline": {func(f *v1alpha1.RedisFault) {
			f.Spec.Deadline = operatortest.Length(25 *
				time.Second)
		}, nil, v1alpha1.ReasonDeadlineExceeded},
		"load ended": {nil, nil, v1alpha1.ReasonLoadTestEnded},
		"dry run":    {dry, nil, v1alpha1.ReasonDryRun},
		"nothing to see": {func(f *v1alpha1.RedisFault) {
			f.Spec.RecoveryDeadline = *operatortest.Length(12 *
				time.Second)
		}, func(w *operatortest.World) { annotate(w, "now") }, v1alpha1.ReasonSucceeded},
		"aborted": {nil, func(w *operatortest.World) {
			w.MustChange(operatortest.Change(w.Place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
				func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		}, v1alpha1.ReasonAborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{
				Load:   operatortest.Lasting(50 * time.Second),
				Faults: []*v1alpha1.RedisFault{externalFault(tc.change)},
			}.Run(t, func(w *operatortest.World) {
				if tc.act != nil {
					awaitMark(w)
					tc.act(w)
				}
				f := w.FaultEnds("outage", 2*time.Minute)
				if operatortest.Reason(f.Status.Conditions) != tc.want || f.Status.Verdict == v1alpha1.VerdictPass {
					w.T.Errorf("%s, verdict %s, want %s", operatortest.Where(f.Status.Conditions), f.Status.Verdict, tc.want)
				}
				if marked := f.Status.InjectedAt != nil; marked != (name == "nothing to see") ||
					marked && f.Status.Effect != v1alpha1.EffectNotObserved {
					w.T.Errorf("t0 %v, effect %s (%s)", f.Status.InjectedAt, f.Status.Effect, f.Status.EffectEvidence)
				}
				if deleted := w.Redis.PodsDeleted(); len(deleted) != 0 {
					w.T.Errorf("pods deleted %v", deleted)
				}
			})
		})
	}
}

// What a fault on the same load causes is not taken for something else, and a fault that waits keeps no other from
// being injected.
func TestExternalBesideAFault(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(externalFault(nil))
		awaitMark(w)
		w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
		}))
		kill := w.FaultEnds("kill", time.Minute)
		if f := w.Fault("outage"); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonWaitingForMark {
			w.T.Fatalf("after the fault %s: %s", operatortest.Where(kill.Status.Conditions),
				operatortest.Where(f.Status.Conditions))
		}
		time.Sleep(15 * time.Second)
		began := deletePod(w)
		f := w.FaultEnds("outage", time.Minute)
		if d := f.Status.InjectedAt.Sub(began); f.Status.MarkedBy != v1alpha1.MarkedByLoad || d < -20*time.Millisecond ||
			d > 20*time.Millisecond {
			w.T.Errorf("%s: marked by %s, %s from when it broke", operatortest.Where(f.Status.Conditions), f.Status.MarkedBy, d)
		}
	})
}
