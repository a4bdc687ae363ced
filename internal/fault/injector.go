// Package fault combines the families of faults, each of which is a subpackage, and observes what a
// fault does to the target.
package fault

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh"
	"github.com/redquake/redquake/internal/fault/config"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/drain"
	"github.com/redquake/redquake/internal/fault/failover"
	"github.com/redquake/redquake/internal/fault/network"
	nodes "github.com/redquake/redquake/internal/fault/node"
	"github.com/redquake/redquake/internal/fault/operatoroutage"
	"github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/fault/podtemplate"
	"github.com/redquake/redquake/internal/fault/process"
	"github.com/redquake/redquake/internal/fault/resources"
	"github.com/redquake/redquake/internal/fault/scale"
	"github.com/redquake/redquake/internal/fault/volume"
)

// kinds are all faults that Redquake injects itself, and the one that others inject.
var kinds = merge(pod.Kinds, process.Kinds, failover.Kinds, volume.Kinds, nodes.Kinds, drain.Kinds,
	operatoroutage.Kinds, config.Kinds, scale.Kinds, resources.Kinds, podtemplate.Kinds, network.Kinds, contract.Kinds{
		v1alpha1.FaultExternal: func(*v1alpha1.RedisFaultSpec, contract.Deps) contract.Injector {
			return External{}
		},
	})

func merge(families ...contract.Kinds) contract.Kinds {
	all := contract.Kinds{}
	for _, family := range families {
		maps.Copy(all, family)
	}
	return all
}

// For returns the injector of a fault's type.
func For(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) (contract.Injector, error) {
	if spec.Engine == v1alpha1.EngineChaosMesh {
		return chaosmesh.New(spec, deps)
	}
	return kinds.For(spec, deps)
}

// TraitsOf are the traits of a fault; none for a type that is not supported.
func TraitsOf(spec *v1alpha1.RedisFaultSpec) contract.Traits {
	injector, err := For(spec, contract.Deps{})
	if err != nil {
		return contract.Traits{}
	}
	return injector.Traits()
}

// Types are all types of faults that this operator can inject, by either engine.
func Types() []v1alpha1.FaultType {
	return slices.Compact(slices.Sorted(
		slices.Values(append(slices.Collect(maps.Keys(kinds)), chaosmesh.Types()...))))
}

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
