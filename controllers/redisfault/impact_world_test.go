package redisfault_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A pod kill under load, from steady throughput to recovery: the server is down for exactly 400 ms.
func TestImpactOfAPodKill(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Load(func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = operatortest.Length(40 * time.Second)
		test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("0%")}
	})}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: operatortest.Length(time.Millisecond)}
		}))
		f := w.FaultEnds("kill", time.Minute)
		operatortest.CheckExactImpact(w.T, f, w.Redis.DownTime())
		test := w.TestEnds("run", time.Minute)
		if f.Status.Impact.Errors != 80 || test.Status.Summary.Requests != 8000 || test.Status.Summary.Errors != 80 {
			w.T.Errorf("%d errors, summary %+v; want 80 of 8000", f.Status.Impact.Errors, test.Status.Summary)
		}
		want := []v1alpha1.FaultSummary{{
			Name:         "kill",
			Type:         v1alpha1.FaultPodKill,
			Verdict:      f.Status.Verdict,
			Outage:       &f.Status.Impact.Outage.Value,
			RecoveryTime: &f.Status.Impact.RecoveryTime.Value,
		}}
		if diff := cmp.Diff(want, test.Status.Faults); diff != "" {
			w.T.Errorf("the load's reference to the fault:\n%s", diff)
		}
		// The verdict of the load excludes the fault, and no other request failed.
		if o := test.Status.Objectives; test.Status.Verdict != v1alpha1.VerdictPass || len(o) != 1 || o[0].Actual != "0" {
			w.T.Errorf("verdict of the load %s, objectives %+v", test.Status.Verdict, o)
		}
		// The baseline was shorter than 10 s, so the verdict is Inconclusive, however long the outage.
		if o := f.Status.Objectives; f.Status.Verdict != v1alpha1.VerdictInconclusive || len(o) != 1 || o[0].Met == nil ||
			*o[0].Met {
			w.T.Errorf("verdict of the fault %s, objectives %+v", f.Status.Verdict, o)
		}
		if !slices.ContainsFunc(f.Status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == impact.BaselineTooShort
		}) {
			w.T.Errorf("doubts %+v", f.Status.Impact.Doubts)
		}
	})
}

// A process crash: the container is restarted in place.
func TestImpactOfAProcessCrash(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("s3cret")
		w.Kubelet.Start()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(operatortest.PasswordSecret())
		w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth, test.Spec.Load.Duration = operatortest.WithPassword(), operatortest.Length(35*time.Second)
		}))
		w.Create(operatortest.NewFault("crash", "run", v1alpha1.FaultProcessCrash, nil))
		f := w.FaultEnds("crash", time.Minute)
		operatortest.CheckExactImpact(w.T, f, redis.DownTime())
		if deleted := redis.PodsDeleted(); len(deleted) != 0 {
			w.T.Errorf("pods deleted: %v", deleted)
		}
		w.TestEnds("run", time.Minute)
	})
}

// A fault without a load creates its own load, and ends it.
func TestImpactWithoutALoad(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewFault("alone", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.LoadTestRef = nil
			f.Spec.Target = &v1alpha1.RedisTarget{
				Addresses:   []string{w.Redis.Address()},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			}
		}))
		f := w.FaultEnds("alone", time.Minute)
		operatortest.CheckExactImpact(w.T, f, w.Redis.DownTime())
		if !meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionRecovered) {
			w.T.Errorf("not recovered: %s", operatortest.Where(f.Status.Conditions))
		}
	})
}

// A setting that is held for 5 s without an effect on the clients has figures for this time, and its whole stay is in
// its window.
func TestImpactOfASettingThatIsHeld(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load: operatortest.Lasting(40 * time.Second),
		Faults: []*v1alpha1.RedisFault{operatortest.HzFault(func(f *v1alpha1.RedisFault) {
			f.Spec.Duration, f.Spec.Trigger.After = operatortest.Length(5*time.Second), operatortest.Length(12*time.Second)
		})},
	}.Run(t, func(w *operatortest.World) {
		f := w.FaultEnds("break", time.Minute)
		active := f.Status.Impact.WhileActive
		if active == nil {
			w.T.Fatalf("no figures while it was active: %+v", f.Status.Impact)
		}
		if d := active.Length.Duration; d < 4900*time.Millisecond || d > 5*time.Second {
			w.T.Errorf("the figures cover %s, want 5 s in whole intervals", d)
		}
		if active.Throughput != "200" || active.Change != "0" || active.ErrorRate != "0" || active.ErrorRateChange != "0" ||
			active.LatencyP50 == nil ||
			active.LatencyP99 == nil || active.LatencyP99Change == "" || f.Status.Display.WhileActive == "" {
			w.T.Errorf("while it was active %+v, display %+v", active, f.Status.Display)
		}
		if f.Status.Verdict != v1alpha1.VerdictPass {
			w.T.Errorf("verdict %s, doubts %+v", f.Status.Verdict, f.Status.Impact.Doubts)
		}
		w.TestEnds("run", time.Minute)
	})
}

// A load with untilFaultsSettle ends when its last fault has settled, not at the end of its duration or of the
// extension.
func TestLoadContinuesUntilFaultsSettle(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load: operatortest.Lasting(20*time.Second, operatortest.UntilFaultsSettle),
		Faults: []*v1alpha1.RedisFault{
			operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(18 * time.Second)}
			}),
		},
	}.Run(t, func(w *operatortest.World) {
		test := w.TestHasReason("run", time.Minute, v1alpha1.ReasonWaitingForFaults)
		if got := test.Status.Progress; got != 100 {
			w.T.Errorf("progress %d%% after the duration", got)
		}
		f := w.FaultEnds("kill", time.Minute)
		if !f.Status.Impact.Recovered || f.Status.Verdict != v1alpha1.VerdictPass {
			w.T.Errorf("recovered %v, verdict %s: %s", f.Status.Impact.Recovered, f.Status.Verdict,
				operatortest.Where(f.Status.Conditions))
		}
		test = w.TestEnds("run", time.Minute)
		if took := test.Status.CompletionTime.Sub(f.Status.SettledTime.Time); took < 0 || took > 10*time.Second {
			w.T.Errorf("the load ended %s after its fault had settled", took)
		}
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			test.Status.Verdict != v1alpha1.VerdictPass {
			w.T.Errorf("%s, verdict %s", operatortest.Where(test.Status.Conditions), test.Status.Verdict)
		}
	})
}

// A load that ends because its faults have settled reads its ledger back, as one that ends by itself does.
func TestLedgerOfALoadThatIsExtended(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load: operatortest.Lasting(20*time.Second, operatortest.Verifies, operatortest.UntilFaultsSettle),
		Faults: []*v1alpha1.RedisFault{
			operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
				f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(18 * time.Second)}
			}),
		},
	}.Run(t, func(w *operatortest.World) {
		f := w.FaultEnds("kill", 2*time.Minute)
		test := w.TestEnds("run", time.Minute)
		v := test.Status.Verification
		if v == nil || v.Unread != "" || v.LostWrites == nil || *v.LostWrites < 800 || *v.LostWrites > 1000 {
			w.T.Errorf("%s, verification %+v; want some 900 lost until the kill", operatortest.Where(test.Status.Conditions), v)
		}
		if lost := f.Status.Impact.LostWrites; lost == nil || *lost != *v.LostWrites {
			w.T.Errorf("lost writes of the fault: %v", lost)
		}
	})
}

// An abort ends such a load at once, also while it reads its ledger back.
func TestAbortOfALoadThatIsExtended(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load: operatortest.Lasting(20*time.Second, operatortest.Verifies, operatortest.UntilFaultsSettle),
	}.Run(t, func(w *operatortest.World) {
		f := operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(18 * time.Second)}
		})
		w.Create(f)
		test := w.TestHasReason("run", time.Minute, v1alpha1.ReasonWaitingForFaults)
		w.MustChange(operatortest.Change(w.Place, test, func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		test = w.TestEnds("run", 20*time.Second)
		if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonAborted || test.Status.Verification == nil ||
			test.Status.Verification.Unread == "" {
			w.T.Errorf("%s, verification %+v", operatortest.Where(test.Status.Conditions), test.Status.Verification)
		}
	})
}
