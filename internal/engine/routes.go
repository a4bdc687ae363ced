package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/redis/topology"
)

// routes holds the topology that determines where requests go, and dials to it. A target without a tracked topology is a map of one shard.
type routes struct {
	tracker topology.Tracker // nil if the topology is not tracked: the target's addresses are used
	dialer  *dial.Dialer     // of the target's addresses
}

// standaloneMap is the map of a target whose topology is not tracked.
var standaloneMap = topology.NewMap(topology.KindStandalone, 0, []topology.Shard{{}})

func (r *routes) current() *topology.Map {
	if r.tracker == nil {
		return standaloneMap
	}
	return r.tracker.Map()
}

func (r *routes) refresh(why string) {
	if r.tracker != nil {
		r.tracker.Refresh(why)
	}
}

// rotated returns the list rotated to begin with entry number.
func rotated(list []string, number int64) []string {
	if len(list) == 0 {
		return nil
	}
	first := int(number % int64(len(list)))
	return slices.Concat(list[first:], list[:first])
}

// place is a destination of requests: the primary or the replicas of a shard, or one server by its address.
type place struct {
	shard   int
	replica bool
	address string // "" = according to the topology map
}

// renewEvery is the minimum time between two replacements of a connection because its server is no primary, nanoseconds.
const renewEvery = int64(100 * time.Millisecond)

// shardTag returns a hash tag "{n}" whose slot belongs to the shard; false if the shard serves no slot.
func shardTag(m *topology.Map, shard int) (string, bool) {
	if m.Shards[shard].Slots == 0 {
		return "", false
	}
	for i := range 1 << 20 {
		tag := fmt.Sprintf("{%d}", i)
		if s, ok := m.ShardOf(topology.SlotOf([]byte(tag))); ok && s == shard {
			return tag, true
		}
	}
	return "", false
}

// shardOrNone returns a function that maps a slot to its shard; below 0 if no shard serves the slot.
func shardOrNone(m *topology.Map) func(slot uint16) int {
	return func(slot uint16) int {
		if shard, ok := m.ShardOf(slot); ok {
			return shard
		}
		return -1
	}
}
