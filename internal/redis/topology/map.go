package topology

import "slices"

// Kind is how the servers of a deployment relate.
type Kind string

// The kinds. Detect finds which one a deployment is.
const (
	KindStandalone  Kind = "Standalone"  // one server, or one address that stands before several
	KindReplication Kind = "Replication" // a primary and its replicas, found by ROLE; nobody fails over by itself
	KindSentinel    Kind = "Sentinel"    // a primary and its replicas, watched by sentinels
	KindCluster     Kind = "Cluster"     // slots over several primaries
)

// SlotCount is the number of hash slots of a Redis Cluster.
const SlotCount = 16384

// noShard marks a slot that no shard serves.
const noShard = ^uint16(0)

// Map is how a deployment looked at one instant. It never changes: a change makes a new Map. What its fields refer to must not be written.
type Map struct {
	Kind    Kind
	Version uint64  // grows by at least one with every change of a run's map
	Shards  []Shard // never empty; one unless Kind is Cluster
	Problem string  // what keeps the map from being known for certain, such as two primaries at once; "" = nothing

	slots   *[SlotCount]uint16 // shard number of each slot; nil = all keys belong to shard 0
	members []map[string]Role  // of each shard of a cluster: its nodes by ID, by which it is known again
}

// Shard is a primary and its replicas. It keeps its number (its place in Map.Shards) for a whole run, through failover and resharding: a new
// shard comes at the end, and one that is gone keeps its number without slots.
type Shard struct {
	ID       string   // the name that the sentinels watch, or the node ID of the first primary seen in a cluster; "" else
	Primary  string   // host:port as a client dials it; "" = none known now
	Replicas []string // host:port each, sorted; those that seem to be up
	Slots    int      // how many slots it serves; 0 unless the map is a cluster's
}

// SlotRange gives the slots First to Last, both included, to a shard.
type SlotRange struct {
	First, Last uint16
	Shard       int // number in Map.Shards
}

// NewMap makes a map. ranges say who serves which slots of a cluster; other kinds have none. Shard.Slots is counted here.
func NewMap(kind Kind, version uint64, shards []Shard, ranges ...SlotRange) *Map {
	m := &Map{Kind: kind, Version: version, Shards: slices.Clone(shards)}
	if kind != KindCluster {
		return m
	}
	m.slots, m.members = emptySlots(), make([]map[string]Role, len(shards))
	for _, r := range ranges {
		for slot := int(r.First); slot <= int(r.Last); slot++ {
			m.slots[slot] = uint16(r.Shard)
		}
	}
	m.count()
	return m
}

func emptySlots() *[SlotCount]uint16 {
	var slots [SlotCount]uint16
	for i := range slots {
		slots[i] = noShard
	}
	return &slots
}

// count sets Slots of every shard.
func (m *Map) count() {
	for i := range m.Shards {
		m.Shards[i].Slots = 0
	}
	for _, n := range m.slots {
		if n != noShard {
			m.Shards[n].Slots++
		}
	}
}

// ShardOf is the number of the shard that serves a slot; false where none does. Without a cluster it is 0 for every slot.
func (m *Map) ShardOf(slot uint16) (int, bool) {
	if m.slots == nil {
		return 0, true
	}
	n := m.slots[slot%SlotCount]
	return int(n), n != noShard
}

// Primaries are the addresses of all primaries that are known now and, in a cluster, serve slots; in the order of the shards.
func (m *Map) Primaries() []string {
	var all []string
	for i := range m.Shards {
		if s := &m.Shards[i]; s.Primary != "" && (m.slots == nil || s.Slots > 0) {
			all = append(all, s.Primary)
		}
	}
	return all
}

// Replicas are the addresses of all replicas, in the order of the shards.
func (m *Map) Replicas() []string {
	var all []string
	for i := range m.Shards {
		all = append(all, m.Shards[i].Replicas...)
	}
	return all
}

// same says that two maps differ at most in their version.
func (m *Map) same(o *Map) bool {
	if m.Kind != o.Kind || m.Problem != o.Problem || (m.slots == nil) != (o.slots == nil) {
		return false
	}
	if m.slots != nil && *m.slots != *o.slots {
		return false
	}
	return slices.EqualFunc(m.Shards, o.Shards, func(a, b Shard) bool {
		return a.ID == b.ID && a.Primary == b.Primary && a.Slots == b.Slots && slices.Equal(a.Replicas, b.Replicas)
	})
}

// clone is a copy whose shards and slots may be written.
func (m *Map) clone() *Map {
	c := *m
	c.Shards = slices.Clone(m.Shards)
	if m.slots != nil {
		slots := *m.slots
		c.slots = &slots
	}
	return &c
}
