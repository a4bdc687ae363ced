package engine

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
)

// routes holds the topology that determines where requests go. A target without a tracked topology is a map of one shard.
type routes struct {
	tracker topology.Tracker // nil if the topology is not tracked: the target's addresses are used

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
