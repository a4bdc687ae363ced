package redisfault

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
)

// sees is an injector with a given effect.
type sees struct {
	contract.Injector
	effect v1alpha1.Effect
}

func (s sees) Effect(context.Context, *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	return s.effect, "seen: " + string(s.effect)
}

// A server that does not answer the last check does not change a confirmed effect.
func TestConfirmedEffectStays(t *testing.T) {
	const confirmed, inconclusive, missing = v1alpha1.EffectConfirmed, v1alpha1.EffectInconclusive,
		v1alpha1.EffectNotObserved
	for _, tt := range []struct {
		name  string
		lasts time.Duration
		looks []v1alpha1.Effect
		want  v1alpha1.Effect
		lost  bool
	}{
		{"no answer at the end", 0, []v1alpha1.Effect{confirmed, inconclusive}, confirmed, false},
		{"a late answer", 0, []v1alpha1.Effect{inconclusive, confirmed}, confirmed, false},
		{"not observed any more", 0, []v1alpha1.Effect{confirmed, missing}, missing, false},
		{"no answer while it lasts", time.Minute, []v1alpha1.Effect{confirmed, inconclusive}, confirmed, false},
		{"lost while it lasts", time.Minute, []v1alpha1.Effect{confirmed, missing}, confirmed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &scope.Fault{Fault: &v1alpha1.RedisFault{}, Traits: contract.Traits{Lasts: tt.lasts}}
			injected := metav1.NewMicroTime(time.Now())
			s.Fault.Status.InjectedAt = &injected
			s.Fault.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0"}}
			for _, look := range tt.looks {
				s.Injector = sees{effect: look}
				confirm(t.Context(), s, time.Now())
			}
			status := &s.Fault.Status
			if status.Effect != tt.want || status.EffectEvidence != "seen: "+string(tt.want) ||
				(len(status.Timeline) > 0) != tt.lost {
				t.Errorf("%s: %q, timeline %+v; want %s", status.Effect, status.EffectEvidence, status.Timeline, tt.want)
			}
		})
	}
}

// A lasting fault that ended before anybody had checked its effect says so; what was seen stays, and without an
// injection there is nothing to see.
func TestUncheckedEffectIsInconclusive(t *testing.T) {
	for name, tc := range map[string]struct {
		injected bool
		before   v1alpha1.Effect
		want     v1alpha1.Effect
	}{
		"never checked":  {true, "", v1alpha1.EffectInconclusive},
		"confirmed":      {true, v1alpha1.EffectConfirmed, v1alpha1.EffectConfirmed},
		"never injected": {false, "", ""},
	} {
		s := &scope.Fault{
			Fault:    &v1alpha1.RedisFault{},
			Injector: fault.Unknown{},
			Traits:   contract.Traits{Lasts: time.Second},
		}
		s.Seen.InjectedAny, s.Fault.Status.Effect = tc.injected, tc.before
		(&Reconciler{Term: faultrun.NewRegistry(nil).NewTerm(), Clock: clock.RealClock{}}).settle(t.Context(), s)
		if status := &s.Fault.Status; status.Effect != tc.want || (status.EffectEvidence != "") != (tc.want != tc.before) {
			t.Errorf("%s: %q, %q; want %q", name, status.Effect, status.EffectEvidence, tc.want)
		}
	}
}
