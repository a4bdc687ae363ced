package redisfault_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// dry makes a fault a dry run.
func dry(f *v1alpha1.RedisFault) { f.Spec.DryRun = true }

// checkDryRun checks that a dry run has planned everything, and that nothing of it is left but its status.
func checkDryRun(w *operatortest.World, f *v1alpha1.RedisFault, redis *operatortest.RedisSet) {
	w.T.Helper()
	s := &f.Status
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionComplete); c == nil ||
		c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonDryRun {
		w.T.Fatalf("complete: %+v", c)
	}
	if s.StartTime == nil || s.CompletionTime == nil || len(s.Targets) != 1 || s.Plan == nil || len(s.Plan.Steps) != 1 ||
		s.Plan.Steps[0].Action == "" || s.Plan.Trigger == "" {
		w.T.Errorf("targets %+v, plan %+v", s.Targets, s.Plan)
	}
	if s.Verdict != v1alpha1.VerdictInconclusive || s.InjectedAt != nil || s.Holding != nil || s.Effect != "" ||
		s.Impact != nil || len(s.Timeline) > 0 {
		w.T.Errorf("verdict %s, status %+v", s.Verdict, s)
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionInjected) ||
		!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReverted) {
		w.T.Errorf("conditions %+v", s.Conditions)
	}
	if len(f.Finalizers) > 0 {
		w.T.Errorf("finalizers %v", f.Finalizers)
	}
	if deleted := redis.PodsDeleted(); len(deleted) > 0 || redis.Hz("") != "10" {
		w.T.Errorf("pods deleted %v, hz %s", deleted, redis.Hz(""))
	}
}

// A dry run needs no load: it neither waits for one nor creates one. Its plan has the values of now.
func TestDryRunWithoutALoad(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(operatortest.NewFault("kill", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.DryRun, f.Spec.LoadTestRef = true, nil
			f.Spec.Target = &v1alpha1.RedisTarget{
				Addresses:   []string{redis.Address()},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			}
		}))
		f := w.FaultEnds("kill", 5*time.Second)
		checkDryRun(w, f, redis)
		if f.Status.LoadTest != "" || w.Read(&v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "kill-probe"}}) {
			w.T.Errorf("it has a load: %q", f.Status.LoadTest)
		}
		w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Suspend = true
		}))
		w.Create(operatortest.HzFault(dry))
		f = w.FaultEnds("break", 5*time.Second)
		checkDryRun(w, f, redis)
		if p := f.Status.Plan; p.Steps[0].Action != "CONFIG SET hz 50 at redis-0 (now hz 10)" ||
			p.Steps[0].Revert != "CONFIG SET hz 10" || p.End == "" || p.LatestEnd == nil ||
			!strings.Contains(p.Steps[0].ManualRevertCommand, "CONFIG SET hz 10") || f.Status.Targets[0].Revert == nil {
			w.T.Errorf("plan %+v, targets %+v", p, f.Status.Targets)
		}
	})
}

// A dry run neither waits for a fault on the same server, nor makes one wait, and warns of it.
func TestDryRunBesideAFault(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.HzFault(nil))
		w.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
		w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, dry))
		f := w.FaultEnds("kill", 5*time.Second)
		if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonDryRun ||
			!slices.ContainsFunc(f.Status.Warnings, func(text string) bool {
				return strings.Contains(text,
					"waiting for RedisFault break")
			}) {
			w.T.Errorf("%s, warnings %q", operatortest.Where(f.Status.Conditions), f.Status.Warnings)
		}
		plan := w.Fault("break").Status.Plan
		if plan == nil || len(plan.Steps) != 1 || plan.Steps[0].Revert != "CONFIG SET hz 10" {
			w.T.Errorf("the plan of a fault that is injected: %+v", plan)
		}
		var faults []v1alpha1.FaultSummary
		w.Until("the load names the fault that is injected", time.Minute, func() bool {
			faults = w.LoadTest("run").Status.Faults
			return len(faults) > 0
		}, func() string { return operatortest.Where(w.LoadTest("run").Status.Conditions) })
		if deleted := w.Redis.PodsDeleted(); len(deleted) > 0 || len(faults) != 1 || faults[0].Name != "break" {
			w.T.Errorf("pods deleted %v, faults of the load %+v", deleted, faults)
		}
	})
}

// What refuses a fault refuses its dry run, with the same reason; a held, aborted or late one is as any other.
func TestDryRunIsRefusedAsTheFault(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Suspend = true
		}))
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
			"late":    func(f *v1alpha1.RedisFault) { f.Spec.Suspend, f.Spec.Deadline = true, operatortest.Length(time.Second) },
		} {
			w.Create(operatortest.NewFault(name, "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
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
			if f := w.FaultEnds(name, time.Minute); operatortest.Reason(f.Status.Conditions) != want ||
				f.Status.StartTime != nil ||
				f.Status.Verdict == v1alpha1.VerdictPass {
				w.T.Errorf("%s: %s, verdict %s, want %s", name, operatortest.Where(f.Status.Conditions), f.Status.Verdict, want)
			}
		}
		w.FaultHasReason("held", time.Second, v1alpha1.ReasonSuspended)
		w.MustChange(operatortest.Change(w.Place, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "held"}},
			func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		checkDryRun(w, w.FaultEnds("held", 5*time.Second), redis)
	})
}

// The operator dies at each of its writes, and two act at once: a dry run ends as one, and injects nothing.
func TestDryRunSurvivesACrash(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 3; n++ {
		for _, after := range []bool{false, true} {
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Suspend = true
				}))
				var writes atomic.Int32
				operatortest.KeepRunning(w.Place, func(self func() *operatortest.Operator) operatortest.Spy {
					return operatortest.CrashAt(n, after, &writes, self)
				})
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(operatortest.HzFault(dry))
				checkDryRun(w, w.FaultEnds("break", 20*time.Second), redis)
			})
		}
	}
}
