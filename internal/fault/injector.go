// Package fault combines the families of faults, each of which is a subpackage, and observes what a
// fault does to the target.
package fault

import (
	"maps"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh"
	"github.com/redquake/redquake/internal/fault/config"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/failover"
	nodes "github.com/redquake/redquake/internal/fault/node"
	"github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/fault/podtemplate"
	"github.com/redquake/redquake/internal/fault/process"
	"github.com/redquake/redquake/internal/fault/resources"
	"github.com/redquake/redquake/internal/fault/scale"
	"github.com/redquake/redquake/internal/fault/volume"
)

// kinds are all faults that Redquake injects itself, and the one that others inject.
var kinds = merge(pod.Kinds, process.Kinds, failover.Kinds, volume.Kinds, nodes.Kinds, config.Kinds,
	scale.Kinds, resources.Kinds, podtemplate.Kinds, contract.Kinds{
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
