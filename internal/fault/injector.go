// Package fault breaks Redis and reverts that: the kinds of faults, the choice of their targets, and the guards before them.
package fault

import (
	"maps"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh"
	"github.com/redquake/redquake/internal/fault/contract"
)

// kinds are all that Redquake itself injects, from every family.
var kinds = merge(podKinds, processKinds, failoverKinds, volumeKinds, nodeKinds, configKinds, scaleKinds, resourcesKinds)

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
		return newChaosMesh(spec, deps)
	}
	return kinds.For(spec, deps)
}

// Types are all types of faults that this operator can inject, by either engine.
func Types() []v1alpha1.FaultType {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(kinds)), chaosmesh.Types()...))))
}
