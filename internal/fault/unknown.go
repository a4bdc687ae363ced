package fault

import (
	"context"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Unknown is the injector of a type that this version does not support: every method returns the
// problem.
type Unknown struct{ Problem error }

// Traits are none.
func (u Unknown) Traits() contract.Traits {
	return contract.Traits{}
}

// Preflight returns the problem.
func (u Unknown) Preflight(context.Context, *v1alpha1.FaultTarget) error {
	return u.Problem
}

// Describe returns the problem.
func (u Unknown) Describe(*v1alpha1.FaultTarget) contract.Description {
	return contract.Description{Action: "nothing: " + u.Problem.Error()}
}

// Begun returns the problem.
func (u Unknown) Begun(context.Context, *v1alpha1.FaultTarget) (bool, error) {
	return false, u.Problem
}

// Inject returns the problem.
func (u Unknown) Inject(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	return contract.Progress{}, u.Problem
}

// Revert returns the problem: the version that injected the fault has to revert it.
func (u Unknown) Revert(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	return contract.Progress{}, u.Problem
}

// Effect is inconclusive.
func (u Unknown) Effect(context.Context, *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	return v1alpha1.EffectInconclusive, u.Problem.Error()
}

// ManualRevertCommand refers to the version that supports the type.
func (u Unknown) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return "run the version of the operator that injected this fault: it can revert it"
}
