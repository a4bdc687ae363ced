package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// keptDown is a pod kill that also deletes the replacements until its time is over. It ends with the operator process: there is nothing to
// revert.
type keptDown struct {
	Kill
	lasts time.Duration
}

var _ contract.Keeper = keptDown{}

func (k keptDown) Traits() contract.Traits {
	traits := k.Kill.Traits()
	traits.Lasts = k.lasts
	return traits
}

// Preflight also records the controller whose pods are replacements.
func (k keptDown) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := k.Kill.Preflight(ctx, target); err != nil {
		return err
	}
	pod, err := k.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	return contract.Save(target, ReplacedRecord{Controller: ControllerOf(pod)})
}

// Inject kills the pod, unless its replacements could not be found.
func (k keptDown) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	if _, _, err := contract.Load[ReplacedRecord](target); err != nil {
		return contract.Progress{}, err
	}
	return k.Kill.Inject(ctx, target)
}

// Keep deletes every replacement at once.
func (k keptDown) Keep(ctx context.Context, target *v1alpha1.FaultTarget) error {
	found, err := k.pods(ctx, target)
	if err != nil {
		return err
	}
	var failed error
	for i := range found {
		failed = errors.Join(failed, Remove(ctx, k.Deps, &found[i]))
	}
	return failed
}

// Effect is not observed where a replacement serves.
func (k keptDown) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	found, err := k.pods(ctx, target)
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	for i := range found {
		if found[i].Status.PodIP == "" {
			continue
		}
		if _, err := k.Servers.Ask(ctx, k.Address(&found[i]), k.Login); err == nil {
			return v1alpha1.EffectNotObserved, fmt.Sprintf("the replacement %s (%s) serves", found[i].Name, found[i].UID)
		}
	}
	return k.Kill.Effect(ctx, target)
}

// pods are the replacements that exist now.
func (k keptDown) pods(ctx context.Context, target *v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	record, _, err := contract.Load[ReplacedRecord](target)
	if err != nil {
		return nil, err
	}
	return Replacements(ctx, k.Deps, target, record.Controller)
}
