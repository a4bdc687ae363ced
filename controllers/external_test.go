package controllers

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
)

// externalFault waits, from the 12th second of the load on, until something else breaks Redis.
func externalFault(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	return newFault("outage", "run", v1alpha1.FaultExternal, func(f *v1alpha1.RedisFault) {
		f.Spec.Select = v1alpha1.FaultSelector{}
		f.Spec.Trigger.After = length(12 * time.Second)
		if change != nil {
			change(f)
		}
	})
}

// awaitMark returns once the fault waits for its instant, and two seconds later.
func (w *world) awaitMark() *v1alpha1.RedisFault {
	w.t.Helper()
	f := w.faultHasReason("outage", time.Minute, v1alpha1.ReasonWaitingForMark)
	if f.Status.StartTime == nil || f.Status.InjectedAt != nil || f.Status.Holding != nil || f.Status.Plan == nil ||
		len(f.Status.Targets) > 0 {
		w.t.Errorf("while it waits: %+v", f.Status)
	}
	time.Sleep(2 * time.Second)
	return f
}

// annotate marks the fault.
func (w *world) annotate(value string) {
	w.t.Helper()
	w.mustChange(change(w.place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
		func(f *v1alpha1.RedisFault) {
			f.Annotations = map[string]string{v1alpha1.AnnotationMark: value}
		}))
}

// deletePod is what somebody does by kubectl; it returns when.
func (w *world) deletePod() time.Time {
	w.t.Helper()
	at := w.clock.Now()
	w.mustChange(w.client.Delete(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "redis-0"},
	}))
	return at
}

// checkExternal checks the figures of an outage that something else caused, against when that was and for how long the
// server was down.
func (w *world) checkExternal(f *v1alpha1.RedisFault, by v1alpha1.MarkSource, began time.Time, redis *redisSet) {
	w.t.Helper()
	s := &f.Status
	w.t.Logf("%s: marked by %s at %s, broken at %s; %s; timeline %v", where(s.Conditions), s.MarkedBy, s.InjectedAt, began,
		s.EffectEvidence, timelineOf(f))
	for _, e := range s.Timeline {
		w.t.Logf("%9s  %-18s  %s  %s", e.Offset.Duration(), e.Event, e.Object, e.Message)
	}
	if reason(s.Conditions) != v1alpha1.ReasonSucceeded || s.MarkedBy != by || s.Effect != v1alpha1.EffectConfirmed ||
		s.Impact == nil || s.InjectedOffset == nil {
		w.t.Fatalf("%s, marked by %s, effect %s (%s)", where(s.Conditions), s.MarkedBy, s.Effect, s.EffectEvidence)
	}
	if d := s.InjectedAt.Sub(began); d < -20*time.Millisecond || d > 20*time.Millisecond {
		w.t.Errorf("t0 is %s from when it broke", d)
	}
	if d := s.LoadStartTime.Add(s.InjectedOffset.Duration()).Sub(s.InjectedAt.Time); d < -time.Millisecond ||
		d > time.Millisecond {
		w.t.Errorf("t0 by the clock of the run is %s from t0", d)
	}
	i, down := s.Impact, redis.downTime()
	if d := i.Outage.Value.Duration() - down; d < 0 || d > 20*time.Millisecond || i.RecoveryTime == nil ||
		i.RecoveryTime.Value.Duration()-down > 100*time.Millisecond {
		w.t.Errorf("outage %+v, recovery %+v, the server was down for %s", i.Outage, i.RecoveryTime, down)
	}
	for _, event := range []string{"Marked", "PodDeleted", "ReplacementCreated", "FirstSuccess", "Recovered"} {
		if !slices.Contains(timelineOf(f), event) {
			w.t.Errorf("no event %s: %v", event, timelineOf(f))
		}
	}
	if s.Display.Target != "redis-0" || len(i.Phases) == 0 ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReverted) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInjected) {
		w.t.Errorf("display %+v, phases %+v, conditions %+v", s.Display, i.Phases, s.Conditions)
	}
	if s.Verdict != v1alpha1.VerdictPass {
		w.t.Errorf("verdict %s, doubts %+v", s.Verdict, i.Doubts)
	}
}

// Somebody deletes the pod, and says when by the annotation: before or after the load has shown it.
func TestExternalByAnnotation(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"at once": 0, "after 100 ms": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				startOperator(w.place, spy{})
				w.create(longRun(redis.address()))
				w.create(externalFault(nil))
				w.awaitMark()
				began := w.deletePod()
				time.Sleep(late)
				w.annotate(began.UTC().Format(time.RFC3339Nano))
				f := w.faultEnds("outage", time.Minute)
				w.checkExternal(f, v1alpha1.MarkedByAnnotation, began, redis)
				if deleted := redis.podsDeleted(); len(deleted) != 1 {
					w.t.Errorf("pods deleted %v", deleted)
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
		inWorld(t, func(w *world) {
			redis := w.startRedis("")
			w.kubelet.Start()
			o := startOperator(w.place, spy{})
			w.create(longRun(redis.address()))
			w.create(externalFault(nil))
			f := w.awaitMark()
			if restarts {
				o.Crash()
				o.stop()
				time.Sleep(time.Second)
				startOperator(w.place, spy{})
				time.Sleep(3 * time.Second)
			}
			began := w.deletePod()
			ended := w.faultEnds("outage", time.Minute)
			w.checkExternal(ended, v1alpha1.MarkedByLoad, began, redis)
			if !ended.Status.StartTime.Equal(f.Status.StartTime) {
				w.t.Errorf("the wait began at %s, then at %s", f.Status.StartTime, ended.Status.StartTime)
			}
		})
	}
}

// An annotation that cannot be used is shown, and corrected by another one. "now" is when the operator reads it.
func TestExternalWithABadAnnotation(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(externalFault(func(f *v1alpha1.RedisFault) {
			f.Annotations = map[string]string{
				v1alpha1.AnnotationMark: "now",
			}
		}))
		w.faultHasReason("outage", time.Minute, v1alpha1.ReasonInvalidMark)
		w.mustChange(change(w.place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
			func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		w.awaitMark()
		for _, value := range []string{
			"yesterday", w.clock.Now().Add(time.Hour).Format(time.RFC3339Nano),
			w.clock.Now().Add(-time.Hour).Format(time.RFC3339Nano),
		} {
			w.annotate(value)
			w.until("the value "+value+" is refused", 5*time.Second, func() bool {
				f := w.fault("outage")
				c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionComplete)
				return c.Reason == v1alpha1.ReasonInvalidMark && strings.Contains(c.Message, v1alpha1.AnnotationMark) &&
					strings.Contains(c.Message, value)
			}, func() string { return where(w.fault("outage").Status.Conditions) })
		}
		began := w.deletePod()
		w.annotate("now")
		f := w.faultEnds("outage", time.Minute)
		w.checkExternal(f, v1alpha1.MarkedByAnnotation, began, redis)
	})
}

// Nothing breaks Redis: the fault fails, or is ended before.
func TestExternalIsNeverMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RedisFault)
		act    func(w *world)
		want   string
	}{
		"too long": {func(f *v1alpha1.RedisFault) {
			f.Spec.Action.External = &v1alpha1.External{WaitFor: *length(5 * time.Second)}
		}, nil, v1alpha1.ReasonNotMarked},
		"past deadline": {func(f *v1alpha1.RedisFault) {
			f.Spec.Deadline = length(25 *
				time.Second)
		}, nil, v1alpha1.ReasonDeadlineExceeded},
		"load ended": {nil, nil, v1alpha1.ReasonLoadTestEnded},
		"dry run":    {dry, nil, v1alpha1.ReasonDryRun},
		"nothing to see": {func(f *v1alpha1.RedisFault) {
			f.Spec.RecoveryDeadline = *length(12 *
				time.Second)
		}, func(w *world) { w.annotate("now") }, v1alpha1.ReasonSucceeded},
		"aborted": {nil, func(w *world) {
			w.mustChange(change(w.place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "outage"}},
				func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		}, v1alpha1.ReasonAborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				startOperator(w.place, spy{})
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration = length(
						50 * time.Second)
				}))
				w.create(externalFault(tc.change))
				if tc.act != nil {
					w.awaitMark()
					tc.act(w)
				}
				f := w.faultEnds("outage", 2*time.Minute)
				if reason(f.Status.Conditions) != tc.want || f.Status.Verdict == v1alpha1.VerdictPass {
					w.t.Errorf("%s, verdict %s, want %s", where(f.Status.Conditions), f.Status.Verdict, tc.want)
				}
				if marked := f.Status.InjectedAt != nil; marked != (name == "nothing to see") ||
					marked && f.Status.Effect != v1alpha1.EffectNotObserved {
					w.t.Errorf("t0 %v, effect %s (%s)", f.Status.InjectedAt, f.Status.Effect, f.Status.EffectEvidence)
				}
				if deleted := redis.podsDeleted(); len(deleted) != 0 {
					w.t.Errorf("pods deleted %v", deleted)
				}
			})
		})
	}
}

// What a fault on the same load causes is not taken for something else, and a fault that waits keeps no other from
// being injected.
func TestExternalBesideAFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(externalFault(nil))
		w.awaitMark()
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(4 * time.Second)}
		}))
		kill := w.faultEnds("kill", time.Minute)
		if f := w.fault("outage"); reason(f.Status.Conditions) != v1alpha1.ReasonWaitingForMark {
			w.t.Fatalf("after the fault %s: %s", where(kill.Status.Conditions), where(f.Status.Conditions))
		}
		time.Sleep(15 * time.Second)
		began := w.deletePod()
		f := w.faultEnds("outage", time.Minute)
		if d := f.Status.InjectedAt.Sub(began); f.Status.MarkedBy != v1alpha1.MarkedByLoad || d < -20*time.Millisecond ||
			d > 20*time.Millisecond {
			w.t.Errorf("%s: marked by %s, %s from when it broke", where(f.Status.Conditions), f.Status.MarkedBy, d)
		}
	})
}
