//go:build integration

package stage

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// ClusterKinds are those that work differently in a Redis Cluster.
var ClusterKinds = []Kind{
	{
		Name:  "Failover in a cluster",
		Fault: v1alpha1.FaultFailover,
		needs: NeedsCluster,
		Scene: clustered,
		Spec:  failsOver(v1alpha1.FailoverPlain),
	},
	{
		Name:  "Failover in a cluster, Force",
		Fault: v1alpha1.FaultFailover,
		needs: NeedsCluster,
		Scene: clustered,
		Spec:  failsOver(v1alpha1.FailoverForce),
	},
	{
		Name:  "Failover in a cluster, Takeover",
		Fault: v1alpha1.FaultFailover,
		needs: NeedsCluster,
		Scene: clustered,
		Spec:  failsOver(v1alpha1.FailoverTakeover),
	},
	{
		Name:  "ReplicaScale in a cluster, one more",
		Fault: v1alpha1.FaultReplicaScale,
		needs: NeedsCluster,
		Scene: ClusterFleet,
		Spec:  Scales(1),
	},
	{
		Name:  "ReplicaScale in a cluster, one less",
		Fault: v1alpha1.FaultReplicaScale,
		needs: NeedsCluster,
		Scene: ClusterFleet,
		Spec:  Scales(-1),
	},
}

// A server can be elected again only after four times cluster-node-timeout, at least 4 s: a fault
// that fails back earlier has no effect.
const (
	electionTimeout = time.Second
	untilReelection = 4*electionTimeout + 500*time.Millisecond
)

func failsOver(mode v1alpha1.FailoverMode) func(*operatortest.Place, *v1alpha1.RedisFaultSpec) {
	return func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		if !spec.DryRun {
			await.Pass(untilReelection, "a server is not elected again before")
		}
		spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverCluster, Mode: mode}
	}
}

// clustered is the scene of a cluster of three primaries with a replica each.
func clustered(p *operatortest.Place) Scene {
	set := redistest.NewCluster(p.T, 3, 1, redistest.ClusterOptions{NodeTimeout: electionTimeout})
	addresses := PodsOf(p, set.Servers())
	target := RedisPods(set.Addresses()...)
	target.Topology = v1alpha1.TopologyCluster
	return Scene{Target: target, Shows: func() map[string]string { return ServersShow(addresses) }}
}

// ClusterFleet is the scene of a StatefulSet of four servers in a cluster: three primaries, and
// redis-3 a replica of redis-0.
func ClusterFleet(p *operatortest.Place) Scene {
	return ClusterFleetOf(nil)(p)
}

// ClusterFleetOf is such a scene with a changed StatefulSet.
func ClusterFleetOf(change func(*Fleet, *appsv1.StatefulSet)) func(*operatortest.Place) Scene {
	return func(p *operatortest.Place) Scene {
		f := StartFleet(p, 4, func(f *Fleet, set *appsv1.StatefulSet) {
			f.clustered = true
			if change != nil {
				change(f, set)
			}
		})
		target := RedisPods(f.Address(0), f.Address(1), f.Address(2))
		target.Topology = v1alpha1.TopologyCluster
		return Scene{
			Target:  target,
			Shows:   f.Shows,
			Primary: f.PrimaryOf,
			AsksAPI: true,
		}
	}
}

// formCluster creates a cluster of the servers, which have just started for the first time.
func (f *Fleet) formCluster() error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	at := func(ordinal int) *goredis.Client {
		c := goredis.NewClient(&goredis.Options{Addr: f.Address(ordinal), DisableIdentity: true})
		f.T.Cleanup(func() { _ = c.Close() })
		return c
	}
	return redistest.FormCluster(ctx, [][]*goredis.Client{{at(0), at(3)}, {at(1)}, {at(2)}})
}

// inSync returns the roles of a fleet if all replicas are in sync.
func (f *Fleet) inSync(replicas int32) string {
	primaries := 1
	if f.clustered {
		primaries = 3
	}
	return fmt.Sprintf("%d primary, %d replicas in sync", primaries, int(replicas)-primaries)
}
