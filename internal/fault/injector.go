// Package fault breaks Redis and reverts that: the kinds of faults, the choice of their targets, and the guards before them.
package fault

import (
	"fmt"
	"maps"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// kinds holds for each type of fault what makes its injector.
var kinds = map[v1alpha1.FaultType]func(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector{
	v1alpha1.FaultPodKill:           newPodKill,
	v1alpha1.FaultProcessCrash:      newProcessCrash,
	v1alpha1.FaultFailover:          newFailover,
	v1alpha1.FaultVolumeAttachDelay: newVolumeAttachDelay,
	v1alpha1.FaultNodeLoss:          newNodeLoss,
	v1alpha1.FaultConfig:            newConfig,
	v1alpha1.FaultReplicaScale:      newReplicaScale,
	v1alpha1.FaultResources:         newResources,
	v1alpha1.FaultIOThreads:         newIOThreads,
	v1alpha1.FaultHang:              newHang,
	v1alpha1.FaultClientPause:       newClientPause,
	v1alpha1.FaultClientKill:        newClientKill,
	v1alpha1.FaultBackgroundSave:    newBackgroundSave,
}

// For returns the injector of a fault's type.
func For(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) (contract.Injector, error) {
	if spec.Engine == v1alpha1.EngineChaosMesh {
		return newChaosMesh(spec, deps)
	}
	make, known := kinds[spec.Action.Type]
	if !known {
		return nil, &problem.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf("spec.action.type: this operator knows no fault %q", spec.Action.Type), Lasting: true}
	}
	return make(spec, deps), nil
}

// Types are all types of faults that this operator can inject, by either engine.
func Types() []v1alpha1.FaultType {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(kinds)), chaosmesh.Types()...))))
}
