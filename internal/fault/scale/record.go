package scale

import (
	"maps"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/target"
)

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
