//go:build integration

package controllers

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// clusterKinds are those that work differently in a Redis Cluster.
var clusterKinds = []crashKind{
	{
		name:  "Failover in a cluster",
		fault: v1alpha1.FaultFailover,
		needs: needsCluster,
		scene: clustered,
		spec:  failsOver(v1alpha1.FailoverPlain),
	},
	{
		name:  "Failover in a cluster, Force",
		fault: v1alpha1.FaultFailover,
		needs: needsCluster,
		scene: clustered,
		spec:  failsOver(v1alpha1.FailoverForce),
	},
	{
		name:  "Failover in a cluster, Takeover",
		fault: v1alpha1.FaultFailover,
		needs: needsCluster,
		scene: clustered,
		spec:  failsOver(v1alpha1.FailoverTakeover),
	},
	{
		name:  "ReplicaScale in a cluster, one more",
		fault: v1alpha1.FaultReplicaScale,
		needs: needsCluster,
		scene: clusterFleet,
		spec:  scales(1),
	},
	{
		name:  "ReplicaScale in a cluster, one less",
		fault: v1alpha1.FaultReplicaScale,
		needs: needsCluster,
		scene: clusterFleet,
		spec:  scales(-1),
	},
}

// A server can be elected again only after four times cluster-node-timeout, at least 4 s: a fault that fails back
// earlier has no effect.
const (
	electionTimeout = time.Second
	untilReelection = 4*electionTimeout + 500*time.Millisecond
)

func failsOver(mode v1alpha1.FailoverMode) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		if !spec.DryRun {
			await.Pass(untilReelection, "a server is not elected again before")
		}
		spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverCluster, Mode: mode}
	}
}

// clustered is the scene of a cluster of three primaries with a replica each.
func clustered(p *place) scene {
	set := redistest.NewCluster(p.t, 3, 1, redistest.ClusterOptions{NodeTimeout: electionTimeout})
	addresses := p.podsOf(set.Servers())
	target := redisPods(set.Addresses()...)
	target.Topology = v1alpha1.TopologyCluster
	return scene{target: target, shows: func() map[string]string { return serversShow(addresses) }}
}

// clusterFleet is the scene of a StatefulSet of four servers in a cluster: three primaries, and redis-3 a replica of
// redis-0.
func clusterFleet(p *place) scene {
	return clusterFleetOf(nil)(p)
}

// clusterFleetOf is such a scene with a changed StatefulSet.
func clusterFleetOf(change func(*fleet, *appsv1.StatefulSet)) func(*place) scene {
	return func(p *place) scene {
		f := startFleet(p, 4, func(f *fleet, set *appsv1.StatefulSet) {
			f.clustered = true
			if change != nil {
				change(f, set)
			}
		})
		target := redisPods(f.address(0), f.address(1), f.address(2))
		target.Topology = v1alpha1.TopologyCluster
		return scene{target: target, shows: f.shows, primary: f.primaryOf, asksAPI: true}
	}
}

// formCluster creates a cluster of the servers, which have just started for the first time.
func (f *fleet) formCluster() error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	at := func(ordinal int) *goredis.Client {
		c := goredis.NewClient(&goredis.Options{Addr: f.address(ordinal), DisableIdentity: true})
		f.t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return redistest.FormCluster(ctx, [][]*goredis.Client{{at(0), at(3)}, {at(1)}, {at(2)}})
}

// inSync returns the roles of a fleet if all replicas are in sync.
func (f *fleet) inSync(replicas int32) string {
	primaries := 1
	if f.clustered {
		primaries = 3
	}
	return fmt.Sprintf("%d primary, %d replicas in sync", primaries, int(replicas)-primaries)
}
