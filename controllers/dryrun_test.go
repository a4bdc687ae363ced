package controllers

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// dry makes a fault a dry run.
func dry(f *v1alpha1.RedisFault) { f.Spec.DryRun = true }

// checkDryRun checks that a dry run has planned everything, and that nothing of it is left but its status.
func (w *world) checkDryRun(f *v1alpha1.RedisFault, redis *redisSet) {
	w.t.Helper()
	s := &f.Status
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionComplete); c == nil ||
		c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonDryRun {
		w.t.Fatalf("complete: %+v", c)
	}
	if s.StartTime == nil || s.CompletionTime == nil || len(s.Targets) != 1 || s.Plan == nil || len(s.Plan.Steps) != 1 ||
		s.Plan.Steps[0].Action == "" || s.Plan.Trigger == "" {
		w.t.Errorf("targets %+v, plan %+v", s.Targets, s.Plan)
	}
	if s.Verdict != v1alpha1.VerdictInconclusive || s.InjectedAt != nil || s.Holding != nil || s.Effect != "" ||
		s.Impact != nil || len(s.Timeline) > 0 {
		w.t.Errorf("verdict %s, status %+v", s.Verdict, s)
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInjected) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReverted) {
		w.t.Errorf("conditions %+v", s.Conditions)
	}
	if len(f.Finalizers) > 0 {
		w.t.Errorf("finalizers %v", f.Finalizers)
	}
	if deleted := redis.podsDeleted(); len(deleted) > 0 || redis.hz("") != "10" {
		w.t.Errorf("pods deleted %v, hz %s", deleted, redis.hz(""))
	}
}

// A dry run needs no load: it neither waits for one nor creates one. Its plan has the values of now.
func TestDryRunWithoutALoad(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		startOperator(w.place, spy{})
		w.create(newFault("kill", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.DryRun, f.Spec.LoadTestRef = true, nil
			f.Spec.Target = &v1alpha1.RedisTarget{
				Addresses:   []string{redis.address()},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			}
		}))
		f := w.faultEnds("kill", 5*time.Second)
		w.checkDryRun(f, redis)
		if f.Status.LoadTest != "" || w.read(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "kill-probe"}}) {
			w.t.Errorf("it has a load: %q", f.Status.LoadTest)
		}
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
		w.create(hzFault(dry))
		f = w.faultEnds("break", 5*time.Second)
		w.checkDryRun(f, redis)
		if p := f.Status.Plan; p.Steps[0].Action != "CONFIG SET hz 50 at redis-0 (now hz 10)" ||
			p.Steps[0].Revert != "CONFIG SET hz 10" || p.End == "" || p.LatestEnd == nil ||
			!strings.Contains(p.Steps[0].ManualRevertCommand, "CONFIG SET hz 10") || f.Status.Targets[0].Revert == nil {
			w.t.Errorf("plan %+v, targets %+v", p, f.Status.Targets)
		}
	})
}

// A dry run neither waits for a fault on the same server, nor makes one wait, and warns of it.
func TestDryRunBesideAFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(hzFault(nil))
		w.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, dry))
		f := w.faultEnds("kill", 5*time.Second)
		if reason(f.Status.Conditions) != v1alpha1.ReasonDryRun ||
			!slices.ContainsFunc(f.Status.Warnings, func(text string) bool {
				return strings.Contains(text,
					"waiting for RedisFault break")
			}) {
			w.t.Errorf("%s, warnings %q", where(f.Status.Conditions), f.Status.Warnings)
		}
		plan := w.fault("break").Status.Plan
		if plan == nil || len(plan.Steps) != 1 || plan.Steps[0].Revert != "CONFIG SET hz 10" {
			w.t.Errorf("the plan of a fault that is injected: %+v", plan)
		}
		var faults []v1alpha1.FaultSummary
		w.until("the load names the fault that is injected", time.Minute, func() bool {
			faults = w.loadTest("run").Status.Faults
			return len(faults) > 0
		}, func() string { return where(w.loadTest("run").Status.Conditions) })
		if deleted := redis.podsDeleted(); len(deleted) > 0 || len(faults) != 1 || faults[0].Name != "break" {
			w.t.Errorf("pods deleted %v, faults of the load %+v", deleted, faults)
		}
	})
}

// What refuses a fault refuses its dry run, with the same reason; a held, aborted or late one is as any other.
func TestDryRunIsRefusedAsTheFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
		for name, change := range map[string]func(*v1alpha1.RedisFault){
			"no-load":    func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "gone" },
			"no-replica": func(f *v1alpha1.RedisFault) { f.Spec.Select.Role = v1alpha1.RoleReplica },
			"no-setting": func(f *v1alpha1.RedisFault) {
				f.Spec.Action = v1alpha1.Action{
					Type:   v1alpha1.FaultConfig,
					Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"requirepass": "x"}},
				}
			},
			"held":    func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true },
			"aborted": func(f *v1alpha1.RedisFault) { f.Spec.Abort = true },
			"late":    func(f *v1alpha1.RedisFault) { f.Spec.Suspend, f.Spec.Deadline = true, length(time.Second) },
		} {
			w.create(newFault(name, "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				dry(f)
				change(f)
			}))
		}
		for name, want := range map[string]string{
			"no-load":    v1alpha1.ReasonLoadTestNotFound,
			"no-replica": v1alpha1.ReasonNoTarget,
			"no-setting": v1alpha1.ReasonInvalidSpec,
			"aborted":    v1alpha1.ReasonAborted,
			"late":       v1alpha1.ReasonDeadlineExceeded,
		} {
			if f := w.faultEnds(name, time.Minute); reason(f.Status.Conditions) != want || f.Status.StartTime != nil ||
				f.Status.Verdict == v1alpha1.VerdictPass {
				w.t.Errorf("%s: %s, verdict %s, want %s", name, where(f.Status.Conditions), f.Status.Verdict, want)
			}
		}
		w.faultHasReason("held", time.Second, v1alpha1.ReasonSuspended)
		w.mustChange(change(w.place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "held"}},
			func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		w.checkDryRun(w.faultEnds("held", 5*time.Second), redis)
	})
}

// The operator dies at each of its writes, and two act at once: a dry run ends as one, and injects nothing.
func TestDryRunSurvivesACrash(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 3; n++ {
		for _, after := range []bool{false, true} {
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true }))
				var writes atomic.Int32
				keepRunning(w.place, func(self func() *operator) spy { return crashAt(n, after, &writes, self) })
				startOperator(w.place, spy{})
				w.create(hzFault(dry))
				w.checkDryRun(w.faultEnds("break", 20*time.Second), redis)
			})
		}
	}
}
