// Package route tells where requests go: which servers a deployment has, where a shard is now, and
// what a redirection says. It dials to such a place.
package route

import (
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/redis/track"
)

// Routes holds the topology that determines where requests go, and dials to it. A target without a
// tracked topology is a map of one shard.
type Routes struct {
	Tracker track.Tracker // nil if the topology is not tracked: the target's addresses are used
	Dialer  *dial.Dialer  // of the target's addresses
}

// StandaloneMap is the map of a target whose topology is not tracked.
var StandaloneMap = topology.NewMap(topology.KindStandalone, 0, []topology.Shard{{}})

// Current returns the topology as it is known now.
func (r *Routes) Current() *topology.Map {
	if r.Tracker == nil {
		return StandaloneMap
	}
	return r.Tracker.Map()
}

// Refresh has the topology queried again soon, for a reason. It returns at once.
func (r *Routes) Refresh(why string) {
	if r.Tracker != nil {
		r.Tracker.Refresh(why)
	}
}

// Rotated returns the list rotated to begin with entry number.
func Rotated(list []string, number int64) []string {
	if len(list) == 0 {
		return nil
	}
	first := int(number % int64(len(list)))
	return slices.Concat(list[first:], list[:first])
}

// Place is a destination of requests: the primary or the replicas of a shard, or one server by its
// address.
type Place struct {
	Shard   int
	Replica bool
	Address string // "" = according to the topology map
}

// RenewEvery is the minimum time between two replacements of a connection because its server is no
// primary, nanoseconds.
const RenewEvery = int64(100 * time.Millisecond)

// ShardTag returns a hash tag "{n}" whose slot belongs to the shard; false if the shard serves no
// slot.
func ShardTag(m *topology.Map, shard int) (string, bool) {
	if m.Shards[shard].Slots == 0 {
		return "", false
	}
	for i := range 1 << 20 {
		tag := fmt.Sprintf("{%d}", i)
		s, ok := m.ShardOf(topology.SlotOf([]byte(tag)))
		if ok && s == shard {
			return tag, true
		}
	}
	return "", false
}

// ShardOrNone returns a function that maps a slot to its shard; below 0 if no shard serves the
// slot.
func ShardOrNone(m *topology.Map) func(slot uint16) int {
	return func(slot uint16) int {
		if shard, ok := m.ShardOf(slot); ok {
			return shard
		}
		return -1
	}
}
