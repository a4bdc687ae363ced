package redisfault

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/conditions"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/timeline"
)

// confirmBeforeRevert checks the effect for the last time. A missing effect is inconclusive: a
// process that ended may have begun the revert.
func confirmBeforeRevert(ctx context.Context, s *scope.Fault, now time.Time) {
	status := &s.Fault.Status
	before := status.Effect
	confirm(ctx, s, now)
	if status.Effect == v1alpha1.EffectNotObserved && before != v1alpha1.EffectNotObserved {
		status.Effect = v1alpha1.EffectInconclusive
	}
}

// concludeEffect says so where nobody has checked the effect: the fault had ended before the first
// check.
func concludeEffect(s *scope.Fault) {
	status := &s.Fault.Status
	if status.Effect == "" && s.Seen.InjectedAny {
		status.Effect = v1alpha1.EffectInconclusive
		status.EffectEvidence = "the fault ended before its effect was checked"
	}
}

// confirm checks the effect of the fault in Redis and in the cluster.
func confirm(ctx context.Context, s *scope.Fault, now time.Time) {
	status := &s.Fault.Status
	if s.Traits.External {
		figures.ConfirmExternal(s)
		return
	}
	effect, text := look(ctx, s)
	if s.Seen.Setting {
		defer conditions.SetHeld(s, effect, text, status.Effect == v1alpha1.EffectConfirmed)
	}
	// A confirmed effect of a lasting fault can only be lost; a server that does not answer does not
	// change that it was confirmed.
	if status.Effect == v1alpha1.EffectConfirmed &&
		(s.Traits.Lasts > 0 || effect == v1alpha1.EffectInconclusive) {
		if effect == v1alpha1.EffectNotObserved {
			timeline.Append(status, now, timeline.EffectLost, status.Targets[0].Pod, text)
		}
		return
	}
	if status.Effect != effect {
		log.FromContext(ctx).Info("Checked the effect", "faultType", s.Fault.Spec.Action.Type, "effect",
			effect, "evidence", text)
	}
	status.Effect, status.EffectEvidence = effect, text
}

// look asks Redis and the cluster for the effect on all targets at once. It is confirmed if it is
// on every target.
func look(ctx context.Context, s *scope.Fault) (v1alpha1.Effect, string) {
	ctx, cancel := context.WithTimeout(ctx, confine.AskTimeout)
	defer cancel()
	status, ask := &s.Fault.Status, s.Injector.Effect
	holder, ok := s.Injector.(contract.Holder)
	if ok && s.Seen.Setting && status.Effect == v1alpha1.EffectConfirmed {
		ask = holder.Held
	}
	effects := make([]v1alpha1.Effect, len(status.Targets))
	evidence := make([]string, len(status.Targets))
	var checks errgroup.Group
	checks.SetLimit(16)
	for i := range status.Targets {
		checks.Go(func() error {
			effects[i], evidence[i] = ask(ctx, &status.Targets[i])
			return nil
		})
	}
	_ = checks.Wait() // no check returns an error
	done := halfDone(s, effects)
	effect := v1alpha1.EffectConfirmed
	switch {
	case slices.Contains(effects, v1alpha1.EffectNotObserved) && done != "":
		effect = v1alpha1.EffectInconclusive // it is there, and not as asked
	case slices.Contains(effects, v1alpha1.EffectNotObserved):
		effect = v1alpha1.EffectNotObserved
	case slices.Contains(effects, v1alpha1.EffectInconclusive):
		effect = v1alpha1.EffectInconclusive
	}
	return effect, digest.Truncate(done+strings.Join(evidence, "; "), 1024)
}

// halfDone says that a fault was injected on some targets and not on others; "" = otherwise. What a
// fault that stays does not show any more on a target, it has lost there.
func halfDone(s *scope.Fault, effects []v1alpha1.Effect) string {
	targets, hit, injected := s.Fault.Status.Targets, 0, 0
	for i := range targets {
		was := targets[i].InjectedAt != nil
		if was {
			injected++
		}
		if effects[i] == v1alpha1.EffectConfirmed || was && effects[i] != v1alpha1.EffectNotObserved {
			hit++
		}
	}
	if s.Traits.Lasts > 0 && injected == len(targets) {
		return ""
	}
	return scope.HalfDone(&s.Fault.Spec, hit, len(targets))
}
