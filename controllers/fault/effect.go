package fault

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/target"
)

// confirmBeforeRevert is the last chance to see the effect. That it is not there proves nothing now: an operator that died may have begun to revert it.
func (s *scope) confirmBeforeRevert(ctx context.Context, now time.Time) {
	status := &s.fault.Status
	before := status.Effect
	s.confirm(ctx, now)
	if status.Effect == v1alpha1.EffectNotObserved && before != v1alpha1.EffectNotObserved {
		status.Effect = v1alpha1.EffectInconclusive
	}
}

// confirm asks Redis and the cluster what the fault did, all targets at once. Confirmed needs every one.
func (s *scope) confirm(ctx context.Context, now time.Time) {
	status := &s.fault.Status
	ctx, cancel := context.WithTimeout(ctx, target.AskTimeout)
	defer cancel()
	effects, evidence := make([]v1alpha1.Effect, len(status.Targets)), make([]string, len(status.Targets))
	var asking errgroup.Group
	asking.SetLimit(16)
	for i := range status.Targets {
		asking.Go(func() error {
			effects[i], evidence[i] = s.injector.Effect(ctx, &status.Targets[i])
			return nil
		})
	}
	_ = asking.Wait() // each target has its own
	effect := v1alpha1.EffectConfirmed
	switch {
	case slices.Contains(effects, v1alpha1.EffectNotObserved):
		effect = v1alpha1.EffectNotObserved
	case slices.Contains(effects, v1alpha1.EffectInconclusive):
		effect = v1alpha1.EffectInconclusive
	}
	text := state.Truncate(strings.Join(evidence, "; "), 1024)
	// It was there: what is seen now may only be its loss, and a server that does not answer now takes nothing back.
	if status.Effect == v1alpha1.EffectConfirmed && (s.traits.Lasts > 0 || effect == v1alpha1.EffectInconclusive) {
		if effect == v1alpha1.EffectNotObserved {
			appendEvent(status, now, eventEffectLost, status.Targets[0].Pod, text)
		}
		return
	}
	if status.Effect != effect {
		log.FromContext(ctx).Info("Effect seen", "faultType", s.fault.Spec.Action.Type, "effect", effect, "evidence", text)
	}
	status.Effect, status.EffectEvidence = effect, text
}
