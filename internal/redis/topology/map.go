package topology

import (
	"bytes"
	"slices"
)

// Kind is the kind of a deployment's topology.
type Kind string

// The kinds. Detect finds which one a deployment is.
const (
	KindStandalone Kind = "Standalone" // one server, or one address in front of several
	// a primary and its replicas, found by ROLE; without automatic failover
	KindReplication Kind = "Replication"
	KindSentinel    Kind = "Sentinel" // a primary and its replicas, monitored by sentinels
	KindCluster     Kind = "Cluster"  // slots over several primaries
)

// SlotCount is the number of hash slots of a Redis Cluster.
const SlotCount = 16384

// noShard marks a slot that no shard serves.
const noShard = ^uint16(0)

// Map is the topology of a deployment at one instant. It is immutable: a change creates a new Map.
// Its fields must not be modified.
type Map struct {
	Kind    Kind
	Version uint64  // increases with every change of the map
	Shards  []Shard // never empty; one unless Kind is Cluster
	Problem string  // why the map may be wrong, such as two primaries at once; "" = it is reliable
	// which sentinels name which server as the primary, in words; "" = there are none, or none answers
	Named string

	slots   *[SlotCount]uint16 // shard number of each slot; nil = all keys belong to shard 0
	members []map[string]Node  // of each shard of a cluster: its nodes by ID, which identify it
	spare   []string           // primaries of a cluster without slots: a slot may move to them
}

// Shard is a primary and its replicas. It keeps its number (its index in Map.Shards) through
// failover and resharding: new shards are appended, and removed shards keep their number without
// slots.
type Shard struct {
	// the name that the sentinels monitor, or the node ID of the first primary in a cluster; otherwise
	// ""
	ID       string
	Primary  string   // host:port as a client dials it; "" = none is known
	Replicas []string // host:port each, sorted; those that are up
	Slots    int      // number of slots that it serves; 0 without a cluster
}

// SlotRange assigns the slots First to Last, inclusive, to a shard.
type SlotRange struct {
	First, Last uint16
	Shard       int // number in Map.Shards
}

// NewMap returns a map. ranges assign the slots of a cluster; other kinds have none. NewMap sets
// Shard.Slots.
func NewMap(kind Kind, version uint64, shards []Shard, ranges ...SlotRange) *Map {
	m := &Map{
		Kind:    kind,
		Version: version,
		Shards:  slices.Clone(shards),
	}
	if kind != KindCluster {
		return m
	}
	m.slots, m.members = emptySlots(), make([]map[string]Node, len(shards))
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

// ShardOf returns the number of the shard that serves a slot; false if none does. Without a cluster
// it is 0 for every slot.
func (m *Map) ShardOf(slot uint16) (int, bool) {
	if m.slots == nil {
		return 0, true
	}
	n := m.slots[slot%SlotCount]
	return int(n), n != noShard
}

// Unassigned is the number of slots that no shard serves; 0 without a cluster.
func (m *Map) Unassigned() int {
	if m.slots == nil {
		return 0
	}
	left := SlotCount
	for i := range m.Shards {
		left -= m.Shards[i].Slots
	}
	return left
}

// Primaries returns the addresses of all known primaries that, in a cluster, serve slots; in the
// order of the shards.
func (m *Map) Primaries() []string {
	var all []string
	for i := range m.Shards {
		s := &m.Shards[i]
		if s.Primary != "" && (m.slots == nil || s.Slots > 0) {
			all = append(all, s.Primary)
		}
	}
	return all
}

// Replicas returns the addresses of all replicas, in the order of the shards.
func (m *Map) Replicas() []string {
	var all []string
	for i := range m.Shards {
		all = append(all, m.Shards[i].Replicas...)
	}
	return all
}

// Same reports whether two maps are equal except for their version.
func (m *Map) Same(o *Map) bool {
	if m.Kind != o.Kind || m.Problem != o.Problem || m.Named != o.Named ||
		(m.slots == nil) != (o.slots == nil) {
		return false
	}
	if m.slots != nil && *m.slots != *o.slots {
		return false
	}
	return slices.EqualFunc(m.Shards, o.Shards, func(a, b Shard) bool {
		return a.ID == b.ID && a.Primary == b.Primary && a.Slots == b.Slots &&
			slices.Equal(a.Replicas, b.Replicas)
	})
}

// Clone returns a copy whose shards and slots may be modified.
func (m *Map) Clone() *Map {
	c := *m
	c.Shards = slices.Clone(m.Shards)
	if m.slots != nil {
		slots := *m.slots
		c.slots = &slots
	}
	return &c
}

// crcTable is of CRC-16/XMODEM: polynomial 0x1021, no reflection, as the Redis Cluster
// specification names it.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			high := crc & 0x8000
			crc <<= 1
			if high != 0 {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// SlotOf returns the cluster slot of a key: of its hash tag, the text between the first { and the
// next }, if that is not empty.
func SlotOf(key []byte) uint16 {
	if open := bytes.IndexByte(key, '{'); open >= 0 {
		if tag := bytes.IndexByte(key[open+1:], '}'); tag > 0 {
			key = key[open+1 : open+1+tag]
		}
	}
	var crc uint16
	for _, b := range key {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^b]
	}
	return crc % SlotCount
}
