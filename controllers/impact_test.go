package controllers

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// A pod kill under load, from steady throughput to recovery: the server is down for exactly 400 ms.
func TestImpactOfAPodKill(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(40 * time.Second)
			test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("0%")}
		}))
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(4 * time.Second)}
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: length(time.Millisecond)}
		}))
		f := w.faultEnds("kill", time.Minute)
		checkExactImpact(w.t, f, redis.downTime())
		test := w.testEnds("run", time.Minute)
		if f.Status.Impact.Errors != 80 || test.Status.Summary.Requests != 8000 || test.Status.Summary.Errors != 80 {
			w.t.Errorf("%d errors, summary %+v; want 80 of 8000", f.Status.Impact.Errors, test.Status.Summary)
		}
		want := []v1alpha1.FaultSummary{{
			Name:         "kill",
			Type:         v1alpha1.FaultPodKill,
			Verdict:      f.Status.Verdict,
			Outage:       &f.Status.Impact.Outage.Value,
			RecoveryTime: &f.Status.Impact.RecoveryTime.Value,
		}}
		if diff := cmp.Diff(want, test.Status.Faults); diff != "" {
			w.t.Errorf("the load's reference to the fault:\n%s", diff)
		}
		// The verdict of the load excludes the fault, and no other request failed.
		if o := test.Status.Objectives; test.Status.Verdict != v1alpha1.VerdictPass || len(o) != 1 || o[0].Actual != "0" {
			w.t.Errorf("verdict of the load %s, objectives %+v", test.Status.Verdict, o)
		}
		// The baseline was shorter than 10 s, so the verdict is Inconclusive, however long the outage.
		if o := f.Status.Objectives; f.Status.Verdict != v1alpha1.VerdictInconclusive || len(o) != 1 || o[0].Met == nil ||
			*o[0].Met {
			w.t.Errorf("verdict of the fault %s, objectives %+v", f.Status.Verdict, o)
		}
		if !slices.ContainsFunc(f.Status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == impact.BaselineTooShort
		}) {
			w.t.Errorf("doubts %+v", f.Status.Impact.Doubts)
		}
	})
}

// A process crash: the container is restarted in place.
func TestImpactOfAProcessCrash(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("s3cret")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(passwordSecret())
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth, test.Spec.Load.Duration = withPassword(), length(35*time.Second)
		}))
		w.create(newFault("crash", "run", v1alpha1.FaultProcessCrash, nil))
		f := w.faultEnds("crash", time.Minute)
		checkExactImpact(w.t, f, redis.downTime())
		if deleted := redis.podsDeleted(); len(deleted) != 0 {
			w.t.Errorf("pods deleted: %v", deleted)
		}
		w.testEnds("run", time.Minute)
	})
}

// A fault without a load creates its own load, and ends it.
func TestImpactWithoutALoad(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newFault("alone", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.LoadTestRef = nil
			f.Spec.Target = &v1alpha1.RedisTarget{
				Addresses:   []string{redis.address()},
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			}
		}))
		f := w.faultEnds("alone", time.Minute)
		checkExactImpact(w.t, f, redis.downTime())
		if !meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionRecovered) {
			w.t.Errorf("not recovered: %s", where(f.Status.Conditions))
		}
	})
}

// A setting that is held for 5 s without an effect on the clients has figures for this time, and its whole stay is in
// its window.
func TestImpactOfASettingThatIsHeld(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				40 * time.Second)
		}))
		w.create(hzFault(func(f *v1alpha1.RedisFault) {
			f.Spec.Duration, f.Spec.Trigger.After = length(5*time.Second), length(12*time.Second)
		}))
		f := w.faultEnds("break", time.Minute)
		active := f.Status.Impact.WhileActive
		if active == nil {
			w.t.Fatalf("no figures while it was active: %+v", f.Status.Impact)
		}
		if d := active.Length.Duration(); d < 4900*time.Millisecond || d > 5*time.Second {
			w.t.Errorf("the figures cover %s, want 5 s in whole intervals", d)
		}
		if active.Throughput != "200" || active.Change != "0" || active.ErrorRate != "0" || active.ErrorRateChange != "0" ||
			active.LatencyP50 == nil ||
			active.LatencyP99 == nil || active.LatencyP99Change == "" || f.Status.Display.WhileActive == "" {
			w.t.Errorf("while it was active %+v, display %+v", active, f.Status.Display)
		}
		if f.Status.Verdict != v1alpha1.VerdictPass {
			w.t.Errorf("verdict %s, doubts %+v", f.Status.Verdict, f.Status.Impact.Doubts)
		}
		w.testEnds("run", time.Minute)
	})
}

// A load with untilFaultsSettle ends when its last fault has settled, not at the end of its duration or of the
// extension.
func TestLoadContinuesUntilFaultsSettle(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = length(20*time.Second), length(10*time.Minute)
		}))
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: length(18 * time.Second)}
		}))
		test := w.testHasReason("run", time.Minute, v1alpha1.ReasonWaitingForFaults)
		if got := test.Status.Progress; got != 100 {
			w.t.Errorf("progress %d%% after the duration", got)
		}
		f := w.faultEnds("kill", time.Minute)
		if !f.Status.Impact.Recovered || f.Status.Verdict != v1alpha1.VerdictPass {
			w.t.Errorf("recovered %v, verdict %s: %s", f.Status.Impact.Recovered, f.Status.Verdict, where(f.Status.Conditions))
		}
		test = w.testEnds("run", time.Minute)
		if took := test.Status.CompletionTime.Sub(f.Status.SettledTime.Time); took < 0 || took > 10*time.Second {
			w.t.Errorf("the load ended %s after its fault had settled", took)
		}
		if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || test.Status.Verdict != v1alpha1.VerdictPass {
			w.t.Errorf("%s, verdict %s", where(test.Status.Conditions), test.Status.Verdict)
		}
	})
}

// A load that ends because its faults have settled reads its ledger back, as one that ends by itself does.
func TestLedgerOfALoadThatIsExtended(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			verifies(test)
			test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = length(20*time.Second), length(10*time.Minute)
		}))
		w.create(newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: length(18 * time.Second)}
		}))
		f := w.faultEnds("kill", 2*time.Minute)
		test := w.testEnds("run", time.Minute)
		v := test.Status.Verification
		if v == nil || v.Unread != "" || v.LostWrites == nil || *v.LostWrites < 800 || *v.LostWrites > 1000 {
			w.t.Errorf("%s, verification %+v; want some 900 lost until the kill", where(test.Status.Conditions), v)
		}
		if lost := f.Status.Impact.LostWrites; lost == nil || *lost != *v.LostWrites {
			w.t.Errorf("lost writes of the fault: %v", lost)
		}
	})
}

// An abort ends such a load at once, also while it reads its ledger back.
func TestAbortOfALoadThatIsExtended(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			verifies(test)
			test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = length(20*time.Second), length(10*time.Minute)
		}))
		f := newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{After: length(18 * time.Second)}
		})
		w.create(f)
		test := w.testHasReason("run", time.Minute, v1alpha1.ReasonWaitingForFaults)
		w.mustChange(change(w.place, test, func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		test = w.testEnds("run", 20*time.Second)
		if reason(test.Status.Conditions) != v1alpha1.ReasonAborted || test.Status.Verification == nil ||
			test.Status.Verification.Unread == "" {
			w.t.Errorf("%s, verification %+v", where(test.Status.Conditions), test.Status.Verification)
		}
	})
}
