package redisfault_test

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
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// Impossible faults fail with a reason, and nothing is injected.
func TestImpossibleFaultsFail(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Lasting(38 * time.Second)}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.NewLoadTest("short", p.Redis.Address(), nil))
		selecting := func(app string) *v1alpha1.RedisTarget {
			return &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
		}
		for name, change := range map[string]func(*v1alpha1.RedisFault){
			"no-load":    func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "gone" },
			"no-pod":     func(f *v1alpha1.RedisFault) { f.Spec.Target = selecting("none") },
			"no-replica": func(f *v1alpha1.RedisFault) { f.Spec.Select.Role = v1alpha1.RoleReplica },
		} {
			f := operatortest.NewFault(name, "run", v1alpha1.FaultPodKill, change)
			f.Spec.Trigger.Timeout.Duration = 30 * time.Second
			p.Create(f)
		}
		p.Create(operatortest.NewFault("not-steady", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{
				SteadyFor: operatortest.Length(time.Hour),
				Timeout:   metav1.Duration{Duration: 2 * time.Second},
			}
		}))
		p.Create(operatortest.NewFault("too-late", "short", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(time.Hour)
		}))
		p.Create(operatortest.NewFault("addresses", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Target = &v1alpha1.RedisTarget{Addresses: []string{p.Redis.Address()}}
		}))
		p.Create(operatortest.NewFault("held", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Suspend = true
		}))
		held := p.FaultHasReason("held", 30*time.Second, v1alpha1.ReasonSuspended)
		if got := operatortest.KstatusOf(t, held); got != status.CurrentStatus {
			t.Errorf("a held fault is %s to kstatus", got)
		}
		p.MustChange(operatortest.Change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "held"}},
			func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		if f := p.FaultEnds("held", 10*time.Second); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonAborted {
			t.Errorf("held, aborted: %s", operatortest.Where(f.Status.Conditions))
		}
		for name, want := range map[string]struct{ reason, message string }{
			"no-load":    {v1alpha1.ReasonLoadTestNotFound, "gone"},
			"no-pod":     {v1alpha1.ReasonNoTarget, "spec.target.podSelector"},
			"no-replica": {v1alpha1.ReasonNoTarget, "redis-0 is Primary"},
			"not-steady": {v1alpha1.ReasonNotSteady, "spec.trigger.timeout"},
			"too-late":   {v1alpha1.ReasonLoadTestEnded, "short"},
			"addresses":  {v1alpha1.ReasonNoTarget, "podSelector"},
		} {
			f := p.FaultEnds(name, 60*time.Second)
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != want.reason ||
				!strings.Contains(c.Message, want.message) {
				t.Errorf("%s: %+v, want %s with %q", name, c, want.reason, want.message)
			}
			if got := operatortest.KstatusOf(t, f); got != status.FailedStatus {
				t.Errorf("%s is %s to kstatus", name, got)
			}
			if len(f.Status.Targets) != 0 || f.Status.InjectedAt != nil || f.Status.CompletionTime == nil {
				t.Errorf("%s: targets %+v, injected %v, over at %v", name, f.Status.Targets, f.Status.InjectedAt,
					f.Status.CompletionTime)
			}
		}
		if deleted := p.Redis.PodsDeleted(); len(deleted) != 0 {
			t.Errorf("pods deleted: %v", deleted)
		}
	})
}

// Abort and deletion end a recorded fault, and its finalizer is removed.
func TestFaultAbortAndDelete(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Lasting(14 * time.Second)}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.NewFault("abort", "run", v1alpha1.FaultPodKill, nil))
		p.Create(operatortest.NewFault("delete", "run", v1alpha1.FaultProcessCrash, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(6 * time.Second)
			f.Finalizers = []string{"example.com/held"} // not ours: the object remains after ours was removed
		}))
		p.Create(operatortest.NewFault("early", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(
				time.Hour)
		}))
		named := func(name string) *v1alpha1.RedisFault {
			return &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		p.FaultHasReason("early", 20*time.Second, v1alpha1.ReasonWaitingForTime)
		p.MustChange(p.Client.Delete(t.Context(), p.Fault("early")))
		p.Until("an unrecorded fault is removed", 5*time.Second, func() bool { return !p.Read(named("early")) },
			func() string { return "" })

		p.FaultHasReason("abort", 20*time.Second, v1alpha1.ReasonObserving)
		p.MustChange(operatortest.Change(p, named("abort"), func(f *v1alpha1.RedisFault) {
			f.Spec.Abort = true
			f.Spec.TTLSecondsAfterFinished = new(int32(1))
		}))
		p.Until("an aborted fault is over, and deleted by its TTL", 10*time.Second,
			func() bool { return !p.Read(named("abort")) },
			func() string { return operatortest.Where(p.Fault("abort").Status.Conditions) })

		f := p.FaultHasReason("delete", 20*time.Second, v1alpha1.ReasonObserving)
		p.MustChange(p.Client.Delete(t.Context(), f))
		p.Until("our finalizer is removed", 5*time.Second, func() bool {
			return slices.Equal(p.Fault("delete").Finalizers, []string{"example.com/held"})
		}, func() string { return strings.Join(p.Fault("delete").Finalizers, " ") })
		p.MustChange(operatortest.Change(p, named("delete"), func(f *v1alpha1.RedisFault) { f.Finalizers = nil }))
		p.Until("a deleted fault is removed", 5*time.Second, func() bool { return !p.Read(named("delete")) }, func() string {
			return ""
		})
		if deleted := p.Redis.PodsDeleted(); len(deleted) != 1 {
			t.Errorf("pods deleted: %v, want one", deleted)
		}
		p.TestEnds("run", 60*time.Second)
	})
}

// A fault without a target waits half a minute for one. What its trigger withholds in between does not count.
func TestWaitForATargetBeginsAnewWithTheTrigger(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
			f.Spec.Target = &v1alpha1.RedisTarget{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "cache"}},
			}
			f.Spec.Select.Pick = v1alpha1.PickRandom
		}))
		p.FaultHasReason("kill", time.Minute, v1alpha1.ReasonNoTarget)
		p.Redis.Silence()
		f := p.FaultHasReason("kill", time.Minute, v1alpha1.ReasonWaitingForSteady)
		if f.Status.Seed == nil {
			t.Error("the seed of the random selection is not in the status")
		}
		seed := f.Status.Seed
		time.Sleep(40 * time.Second)
		p.MustChange(operatortest.Change(p, operatortest.RedisPodOf(p), func(pod *corev1.Pod) {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "tier",
				"cache")
		}))
		p.Redis.Resume()
		if f := p.FaultEnds("kill", 3*time.Minute); f.Status.InjectedAt == nil || !reflect.DeepEqual(f.Status.Seed, seed) {
			t.Errorf("%s, seed %v, was %v", operatortest.Where(f.Status.Conditions), f.Status.Seed, seed)
		}
	})
}
