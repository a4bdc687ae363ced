// Package scale is the fault ReplicaScale.
package scale

import (
	"cmp"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Kinds are the faults of the number of replicas.
var Kinds = contract.Kinds{
	v1alpha1.FaultReplicaScale: newReplicaScale,
}

// Events of a scaling in addition to those of the pods.
const (
	eventReplicaAdded   = "ReplicaAdded"   // its pod was observed first
	eventReplicaSynced  = "ReplicaSynced"  // its primary lists it as online, and its pod is ready
	eventReplicaRemoved = "ReplicaRemoved" // its pod was removed, and no node of a cluster lists it
)

// defaultSyncTimeout is the default of spec.action.replicaScale.syncTimeout.
const defaultSyncTimeout = 5 * time.Minute

// replicaScale changes the number of replicas of the StatefulSet that runs the selected server,
// waits until added replicas are in sync, and reverts that. A StatefulSet adds and removes the pods
// with the highest ordinals. A primary is never removed.
type replicaScale struct {
	contract.Deps
	mode    v1alpha1.SelectMode
	by      int32
	timeout time.Duration // for each direction
	lasts   time.Duration
	now     func() time.Time
}

func newReplicaScale(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.ReplicaScale, v1alpha1.ReplicaScale{})
	return &replicaScale{
		Deps:    deps,
		by:      given.By,
		mode:    spec.Select.Mode,
		lasts:   spec.Stays(),
		timeout: cmp.Or(given.SyncTimeout.Duration, defaultSyncTimeout),
		now:     time.Now,
	}
}

func (s *replicaScale) Traits() contract.Traits {
	return contract.Traits{
		Takes: s.timeout + time.Minute,
		Lasts: s.lasts,
		Whole: true,
	}
}
