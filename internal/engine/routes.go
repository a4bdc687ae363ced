package engine

import (
	"slices"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
)

// routes says where the run's requests go. Every deployment is a map: one address that stands for all of it is a map of one shard.
type routes struct {
	tracker topology.Tracker // nil where there is nothing to follow: the target's addresses are used as they are

}

// one is the map of a target that is used as it is.
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

// rotated is the list from entry number on, and round.
func rotated(list []string, number int64) []string {
	if len(list) == 0 {
		return nil
	}
	first := int(number % int64(len(list)))
	return slices.Concat(list[first:], list[:first])
}

// place is where a request goes: the primary of a shard or its replicas, or one server by its address.
type place struct {
	shard   int
	replica bool
	address string // "" = as the map says
}

// renewEvery bounds how often a connection is made anew because its server turned out to be no primary, nanoseconds.
const renewEvery = int64(100 * time.Millisecond)
