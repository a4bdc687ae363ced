package controllers

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

func timelineOf(f *v1alpha1.RedisFault) []string {
	var names []string
	for _, e := range f.Status.Timeline {
		names = append(names, e.Event)
	}
	return names
}

// checkExactImpact compares the measured impact with the time during which no server answered: 200 requests/s and a
// probe of 100/s measure it to within the time between two of them.
func checkExactImpact(t *testing.T, f *v1alpha1.RedisFault, down time.Duration) {
	t.Helper()
	st := &f.Status
	if st.Effect != v1alpha1.EffectConfirmed || st.InjectedAt == nil || st.Impact == nil {
		t.Fatalf("effect %s (%s), injected %v, impact %+v", st.Effect, st.EffectEvidence, st.InjectedAt, st.Impact)
	}
	i := st.Impact
	if i.Outage == nil || i.Outages == nil || i.Outages.Probe == nil || i.RecoveryTime == nil {
		t.Fatalf("impact %+v", i)
	}
	t.Logf("down for %s: outage %+v, probe's %+v, recovery %+v, dip %s, %d errors; %v", down, *i.Outage, *i.Outages.Probe,
		*i.RecoveryTime, i.Dip.Value, i.Errors, timelineOf(f))
	for name, figure := range map[string]*v1alpha1.BoundedDuration{
		"outage":         &i.Outage.BoundedDuration,
		"probe's outage": i.Outages.Probe,
	} {
		if d := figure.Value.Duration() - down; d < 0 || d > 20*time.Millisecond {
			t.Errorf("%s is %+v, the server was down for %s", name, figure, down)
		}
	}
	// Throughput is what it was in the first interval after the outage.
	if d := i.RecoveryTime.Value.Duration() - down; !i.Recovered || d < 0 || d > 100*time.Millisecond {
		t.Errorf("recovered %v after %+v, the server was down for %s", i.Recovered, i.RecoveryTime, down)
	}
	if !slices.IsSortedFunc(st.Timeline, func(a, b v1alpha1.TimelineEvent) int { return a.At.Compare(b.At.Time) }) {
		t.Errorf("the timeline is not in order: %v", timelineOf(f))
	}
}

// Impossible faults fail with a reason, and nothing is injected.
func TestImpossibleFaultsFail(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(38 * time.Second)
		}))
		p.create(newLoadTest("short", redis.address(), nil))
		selecting := func(app string) *v1alpha1.RedisTarget {
			return &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
		}
		for name, change := range map[string]func(*v1alpha1.RedisFault){
			"no-load":    func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "gone" },
			"no-pod":     func(f *v1alpha1.RedisFault) { f.Spec.Target = selecting("none") },
			"no-replica": func(f *v1alpha1.RedisFault) { f.Spec.Select.Role = v1alpha1.RoleReplica },
		} {
			f := newFault(name, "run", v1alpha1.FaultPodKill, change)
			f.Spec.Trigger.Timeout.Duration = 30 * time.Second
			p.create(f)
		}
		p.create(newFault("not-steady", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{
				SteadyFor: length(time.Hour),
				Timeout:   metav1.Duration{Duration: 2 * time.Second},
			}
		}))
		p.create(newFault("too-late", "short", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(time.Hour)
		}))
		p.create(newFault("addresses", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Target = &v1alpha1.RedisTarget{Addresses: []string{redis.address()}}
		}))
		p.create(newFault("held", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }))
		held := p.faultHasReason("held", 30*time.Second, v1alpha1.ReasonSuspended)
		if got := kstatusOf(t, held); got != status.CurrentStatus {
			t.Errorf("a held fault is %s to kstatus", got)
		}
		p.mustChange(change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "held"}},
			func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		if f := p.faultEnds("held", 10*time.Second); reason(f.Status.Conditions) != v1alpha1.ReasonAborted {
			t.Errorf("held, aborted: %s", where(f.Status.Conditions))
		}
		for name, want := range map[string]struct{ reason, message string }{
			"no-load":    {v1alpha1.ReasonLoadTestNotFound, "gone"},
			"no-pod":     {v1alpha1.ReasonNoTarget, "spec.target.podSelector"},
			"no-replica": {v1alpha1.ReasonNoTarget, "redis-0 is Primary"},
			"not-steady": {v1alpha1.ReasonNotSteady, "spec.trigger.timeout"},
			"too-late":   {v1alpha1.ReasonLoadTestEnded, "short"},
			"addresses":  {v1alpha1.ReasonNoTarget, "podSelector"},
		} {
			f := p.faultEnds(name, 60*time.Second)
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != want.reason ||
				!strings.Contains(c.Message, want.message) {
				t.Errorf("%s: %+v, want %s with %q", name, c, want.reason, want.message)
			}
			if got := kstatusOf(t, f); got != status.FailedStatus {
				t.Errorf("%s is %s to kstatus", name, got)
			}
			if len(f.Status.Targets) != 0 || f.Status.InjectedAt != nil || f.Status.CompletionTime == nil {
				t.Errorf("%s: targets %+v, injected %v, over at %v", name, f.Status.Targets, f.Status.InjectedAt,
					f.Status.CompletionTime)
			}
		}
		if deleted := redis.podsDeleted(); len(deleted) != 0 {
			t.Errorf("pods deleted: %v", deleted)
		}
	})
}

// Abort and deletion end a recorded fault, and its finalizer is removed.
func TestFaultAbortAndDelete(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				14 * time.Second)
		}))
		p.create(newFault("abort", "run", v1alpha1.FaultPodKill, nil))
		p.create(newFault("delete", "run", v1alpha1.FaultProcessCrash, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(6 * time.Second)
			f.Finalizers = []string{"example.com/held"} // not ours: the object remains after ours was removed
		}))
		p.create(newFault("early", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(
				time.Hour)
		}))
		named := func(name string) *v1alpha1.RedisFault {
			return &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		p.faultHasReason("early", 20*time.Second, v1alpha1.ReasonWaitingForTime)
		p.mustChange(p.client.Delete(t.Context(), p.fault("early")))
		p.until("an unrecorded fault is removed", 5*time.Second, func() bool { return !p.read(named("early")) },
			func() string { return "" })

		p.faultHasReason("abort", 20*time.Second, v1alpha1.ReasonObserving)
		p.mustChange(change(p, named("abort"), func(f *v1alpha1.RedisFault) {
			f.Spec.Abort = true
			f.Spec.TTLSecondsAfterFinished = new(int32(1))
		}))
		p.until("an aborted fault is over, and deleted by its TTL", 10*time.Second,
			func() bool { return !p.read(named("abort")) }, func() string { return where(p.fault("abort").Status.Conditions) })

		f := p.faultHasReason("delete", 20*time.Second, v1alpha1.ReasonObserving)
		p.mustChange(p.client.Delete(t.Context(), f))
		p.until("our finalizer is removed", 5*time.Second, func() bool {
			return slices.Equal(p.fault("delete").Finalizers, []string{"example.com/held"})
		}, func() string { return strings.Join(p.fault("delete").Finalizers, " ") })
		p.mustChange(change(p, named("delete"), func(f *v1alpha1.RedisFault) { f.Finalizers = nil }))
		p.until("a deleted fault is removed", 5*time.Second, func() bool { return !p.read(named("delete")) }, func() string {
			return ""
		})
		if deleted := redis.podsDeleted(); len(deleted) != 1 {
			t.Errorf("pods deleted: %v, want one", deleted)
		}
		p.testEnds("run", 60*time.Second)
	})
}

// A fault without a target waits half a minute for one. What its trigger withholds in between does not count.
func TestWaitForATargetBeginsAnewWithTheTrigger(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(longRun(redis.address()))
		p.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(4 * time.Second)}
			f.Spec.Target = &v1alpha1.RedisTarget{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "cache"}},
			}
			f.Spec.Select.Pick = v1alpha1.PickRandom
		}))
		p.faultHasReason("kill", time.Minute, v1alpha1.ReasonNoTarget)
		redis.silence()
		f := p.faultHasReason("kill", time.Minute, v1alpha1.ReasonWaitingForSteady)
		if f.Status.Seed == nil {
			t.Error("the seed of the random selection is not in the status")
		}
		seed := f.Status.Seed
		time.Sleep(40 * time.Second)
		p.mustChange(change(p, redisPodOf(p), func(pod *corev1.Pod) {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "tier",
				"cache")
		}))
		redis.resume()
		if f := p.faultEnds("kill", 3*time.Minute); f.Status.InjectedAt == nil || !reflect.DeepEqual(f.Status.Seed, seed) {
			t.Errorf("%s, seed %v, was %v", where(f.Status.Conditions), f.Status.Seed, seed)
		}
	})
}
