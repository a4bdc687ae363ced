package fault

import (
	"context"
	"errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// External is the injector of a fault that somebody or something else injects: it breaks nothing,
// and has no targets.
type External struct{ contract.Instant }

// Traits say that nothing is injected.
func (External) Traits() contract.Traits {
	return contract.Traits{External: true}
}

// Preflight finds nothing to check.
func (External) Preflight(context.Context, *v1alpha1.FaultTarget) error {
	return nil
}

// Describe says that nothing is done.
func (External) Describe(*v1alpha1.FaultTarget) contract.Description {
	return contract.Description{Action: "nothing: something else breaks Redis"}
}

// Begun is false: nothing is injected.
func (External) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) {
	return false, nil
}

// Inject is an error: nothing is injected.
func (External) Inject(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	return contract.Progress{}, errors.New("a fault of type External injects nothing")
}

// Effect is inconclusive: the timeline and the load show it, not a target.
func (External) Effect(context.Context, *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	return v1alpha1.EffectInconclusive, "see the timeline"
}
