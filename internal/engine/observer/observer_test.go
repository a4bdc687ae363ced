package observer

import (
	"testing"

	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/redis/track"
)

// A reading names the shard of its server, of a cluster alone.
func TestShardOfAnObservedServer(t *testing.T) {
	t.Parallel()
	shards := []topology.Shard{
		{Primary: "a:1", Replicas: []string{"b:1"}},
		{Primary: "c:1", Replicas: []string{"d:1", "e:1"}},
	}
	for _, c := range []struct {
		kind    topology.Kind
		address string
		want    int64
	}{
		{topology.KindCluster, "a:1", 1},
		{topology.KindCluster, "e:1", 2},
		{topology.KindCluster, "gone:1", 0},
		{topology.KindSentinel, "a:1", 0},
	} {
		one := &observed{Observer: &Observer{Routes: &route.Routes{}}, place: route.Place{Address: c.address}}
		one.Routes.Tracker = track.Fixed(topology.NewMap(c.kind, 1, shards))
		if got := one.shard(); got != c.want {
			t.Errorf("%s at %s: %d, want %d", c.kind, c.address, got, c.want)
		}
	}
	alone := &observed{Observer: &Observer{Routes: &route.Routes{}}}
	if got := alone.shard(); got != 0 {
		t.Errorf("without a topology: %d", got)
	}
}
