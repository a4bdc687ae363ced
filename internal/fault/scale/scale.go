// Package scale is the fault ReplicaScale.
package scale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
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

// Describe implements contract.Injector.
func (s *replicaScale) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(record scaleRecord) contract.Description {
		d := contract.Description{
			Action: fmt.Sprintf(
				"scale StatefulSet %s from %d to %d replicas, and wait until they are in sync, at most %s",
				record.StatefulSet, record.Replicas, record.Replicas+s.by, s.timeout),
			Revert: fmt.Sprintf("scale it to %d", record.Replicas),
		}
		if s.by < 0 {
			d.Action = fmt.Sprintf("scale StatefulSet %s from %d to %d replicas", record.StatefulSet,
				record.Replicas, record.Replicas+s.by)
			d.Revert += ", and wait until the replicas are in sync"
		}
		if record.Slot != nil {
			d.Revert += map[bool]string{
				true:  "; all nodes forget the added ones",
				false: "; the removed nodes join again",
			}[s.by > 0]
		}
		return d
	})
}

// scaleRecord is the record of a scaling: the state before it, and the progress so far, for an
// operator that restarts.
type scaleRecord struct {
	StatefulSet string `json:"statefulSet"` // its name
	UID         string `json:"uid"`         // of the StatefulSet
	Replicas    int32  `json:"replicas"`    // of the StatefulSet before
	// host:port of the selected server's primary, at first
	Primary   string `json:"primary"`
	Followers int    `json:"followers"` // how many replicas that primary listed
	Syncs     syncs  `json:"syncs"`     // of that primary, before
	// lowest slot of the selected server's shard; nil outside of a cluster
	Slot           *int       `json:"slot,omitempty"`
	RevertingSince *time.Time `json:"revertingSince,omitempty"`
	// the pods that are added or removed, by name
	Members map[string]member `json:"members,omitempty"`
}

// syncs counts those that a primary has served since it started.
type syncs struct {
	RunID   string `json:"runID"`
	Full    int64  `json:"full"`
	Partial int64  `json:"partial"`
}

// member is the state of one pod that is added or removed.
type member struct {
	Address string    `json:"address,omitempty"` // host:port of its server when it was observed last
	Nodes   []string  `json:"nodes,omitempty"`   // the IDs that it had as a node of a cluster
	Slot    *int      `json:"slot,omitempty"`    // lowest slot of its shard; nil outside of a cluster
	Came    time.Time `json:"came,omitzero"`     // observed first
	Synced  time.Time `json:"synced,omitzero"`   // observed in sync and ready first
	How     string    `json:"how,omitempty"`     // by which syncs
	Gone    time.Time `json:"gone,omitzero"`     // observed to be removed first

	// run_id of the process that was told never to become the primary
	Barred  string `json:"barred,omitempty"`
	Refused string `json:"refused,omitempty"` // why it could not be told
	Former  string `json:"former,omitempty"`  // what the setting was before
	// run_id of the process that was asked for it last
	FormerOf string `json:"formerOf,omitempty"`
	// of that process, before it was told; nil where it does not count its CONFIG REWRITEs
	Tally  *target.Tally `json:"tally,omitempty"`
	Lifted bool          `json:"lifted,omitempty"` // it has the former value again
	// why its configuration file may nevertheless say otherwise
	Doubt string `json:"doubt,omitempty"`

	Forgotten time.Time `json:"forgotten,omitzero"` // a node was made to forget it last
	Met       time.Time `json:"met,omitzero"`       // a node was made to meet it last
	Listed    time.Time `json:"listed,omitzero"`    // all nodes have listed it since
}

func (r *scaleRecord) setMember(pod string, m member) {
	if r.Members == nil {
		r.Members = map[string]member{}
	}
	r.Members[pod] = m
}

// pods are the names of all recorded pods that are added or removed.
func (r *scaleRecord) pods() []string {
	return slices.Sorted(maps.Keys(r.Members))
}
