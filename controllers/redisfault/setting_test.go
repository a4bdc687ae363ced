package redisfault

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/claims"
	"github.com/redquake/redquake/controllers/redisfault/conditions"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// settingInForce is a setting of the load test run that is complete on its target.
func settingInForce() *v1alpha1.RedisFault {
	at := metav1.NewMicroTime(time.Unix(1_800_000_000, 0))
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "setting", UID: "setting"}}
	f.Spec.Setting, f.Spec.LoadTestRef = true, &v1alpha1.LoadTestReference{Name: "run"}
	f.Status.StartTime, f.Status.InjectedAt, f.Status.Holding = &at, &at, new(true)
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", InjectedAt: &at, ActiveAt: &at}}
	return f
}

// A fault that waits for a setting is reconciled as soon as that is in force, although the setting still acts.
func TestSettingInForceWakesOthers(t *testing.T) {
	waiting := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kill", UID: "kill"}}
	waiting.Status.Waiting = &v1alpha1.WaitingFault{Since: metav1.NowMicro(), For: "setting"}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(waiting).Build()}
	setting := settingInForce()
	if woken := r.turns().WokenBy(t.Context(), setting); len(woken) != 1 || woken[0].Name != "kill" {
		t.Errorf("woken: %v", woken)
	}
	setting.Status.Targets[0].ActiveAt = nil
	if woken := r.turns().WokenBy(t.Context(), setting); len(woken) != 0 {
		t.Errorf("woken before the setting is complete: %v", woken)
	}
}

// isHolding is the index of the API server by status.holding.
func isHolding(o client.Object) []string {
	if h := o.(*v1alpha1.RedisFault).Status.Holding; h != nil && *h {
		return []string{"true"}
	}
	return nil
}

// What was recorded on the load after a setting is reverted before it: nothing earlier, of another load, or reverted
// already.
func TestLaterOnLoad(t *testing.T) {
	setting := settingInForce()
	for name, tc := range map[string]struct {
		change func(f *v1alpha1.RedisFault)
		later  bool
	}{
		"later": {func(*v1alpha1.RedisFault) {}, true},
		"earlier": {func(f *v1alpha1.RedisFault) {
			f.Status.StartTime = new(metav1.NewMicroTime(setting.Status.InjectedAt.Add(-time.Second)))
		}, false},
		"reverted":         {func(f *v1alpha1.RedisFault) { f.Status.Holding = nil }, false},
		"another load":     {func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "other" }, false},
		"a load of itself": {func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef = nil }, false},
		"elsewhere":        {func(f *v1alpha1.RedisFault) { f.Namespace = "bank" }, false},
	} {
		other := settingInForce()
		other.Name, other.UID, other.Spec.Setting = "kill", "kill", false
		other.Status.StartTime = new(metav1.NewMicroTime(setting.Status.InjectedAt.Add(time.Second)))
		tc.change(other)
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(setting.DeepCopy(), other).
			WithIndex(&v1alpha1.RedisFault{}, claims.Holding, isHolding).Build()
		found, err := (&Reconciler{APIReader: api}).laterOnLoad(t.Context(), setting)
		if err != nil || (found == "kill") != tc.later {
			t.Errorf("%s: %q, %v", name, found, err)
		}
	}
}

// The condition Held follows what is seen; that Redis does not answer counts only when the load has ended.
func TestHeldCondition(t *testing.T) {
	yes, no, unknown := v1alpha1.EffectConfirmed, v1alpha1.EffectNotObserved, v1alpha1.EffectInconclusive
	for name, tc := range map[string]struct {
		effects  []v1alpha1.Effect
		ended    bool // the last look is after the load
		status   metav1.ConditionStatus
		reason   string
		replaced bool
	}{
		"never seen": {
			[]v1alpha1.Effect{no, unknown},
			false,
			metav1.ConditionUnknown,
			v1alpha1.ReasonNotConfirmed,
			false,
		},
		"seen": {[]v1alpha1.Effect{unknown, yes}, false, metav1.ConditionTrue, v1alpha1.ReasonHeld, false},
		"lost": {[]v1alpha1.Effect{yes, no}, false, metav1.ConditionFalse, v1alpha1.ReasonSettingLost, false},
		"lost, and back": {
			[]v1alpha1.Effect{yes, no, yes},
			true,
			metav1.ConditionFalse,
			v1alpha1.ReasonSettingLost,
			false,
		},
		"no answer": {[]v1alpha1.Effect{yes, unknown}, false, metav1.ConditionTrue, v1alpha1.ReasonHeld, false},
		"no answer, lost": {
			[]v1alpha1.Effect{yes, no, unknown},
			false,
			metav1.ConditionFalse,
			v1alpha1.ReasonSettingLost,
			false,
		},
		"no answer at last": {
			[]v1alpha1.Effect{yes, unknown},
			true,
			metav1.ConditionUnknown,
			v1alpha1.ReasonNotConfirmed,
			false,
		},
		"there until the end": {[]v1alpha1.Effect{yes, yes}, true, metav1.ConditionTrue, v1alpha1.ReasonHeld, false},
		"lost, and replaced":  {[]v1alpha1.Effect{yes, no, yes}, true, metav1.ConditionTrue, v1alpha1.ReasonHeld, true},
	} {
		s := &scope.Fault{
			Fault: settingInForce(),
			Seen: lifecycle.Fault{
				Asked:     lifecycle.Asked{Setting: true},
				Injection: lifecycle.Injection{InjectedAny: true, InjectedAll: true},
			},
		}
		s.Fault.Spec.Action.Type = v1alpha1.FaultConfig
		if tc.replaced {
			s.Fault.Spec.Action.Type = v1alpha1.FaultReplicaScale
		}
		confirmed := false
		for i, effect := range tc.effects {
			if tc.ended && i == len(tc.effects)-1 {
				s.Fault.Status.HeldUntil = new(metav1.NowMicro())
			}
			conditions.SetHeld(s, effect, "evidence", confirmed)
			confirmed = confirmed || effect == yes
		}
		held := meta.FindStatusCondition(s.Fault.Status.Conditions, v1alpha1.ConditionHeld)
		if held == nil || held.Status != tc.status || held.Reason != tc.reason {
			t.Errorf("%s: %+v, want %s, %s", name, held, tc.status, tc.reason)
		}
		if doubts := figures.HeldDoubts(&s.Fault.Status); (len(doubts) == 0) != (tc.status == metav1.ConditionTrue) {
			t.Errorf("%s: doubts %v", name, doubts)
		}
	}
}

// Texts of what is seen before the load are not written: each write would be a reason to look again.
func TestTextsOfASettingAreNotWritten(t *testing.T) {
	r := &Reconciler{}
	before := settingInForce()
	s := &scope.Fault{
		Before: before,
		Fault:  before.DeepCopy(),
		Seen: lifecycle.Fault{
			Asked:     lifecycle.Asked{Setting: true},
			Injection: lifecycle.Injection{InjectedAny: true, InjectedAll: true},
		},
	}
	conditions.SetHeld(s, v1alpha1.EffectInconclusive, "PING takes 1ms", false)
	if !r.statusDue(s) {
		t.Error("a new condition is not written")
	}
	s.Before = s.Fault.DeepCopy()
	conditions.SetHeld(s, v1alpha1.EffectInconclusive, "PING takes 2ms", false)
	s.Fault.Status.EffectEvidence = "PING takes 2ms"
	if r.statusDue(s) {
		t.Error("another text is written")
	}
	conditions.SetHeld(s, v1alpha1.EffectConfirmed, "", false)
	if !r.statusDue(s) {
		t.Error("another condition is not written")
	}
}
