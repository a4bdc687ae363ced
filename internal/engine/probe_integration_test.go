//go:build integration

package engine

import (
	"testing"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestProbeFollowsADemotedPrimary: a primary that a failover demotes keeps its clients and refuses their writes, for as
// long as they stay. The probe reconnects: otherwise it would have no further success.
func TestProbeFollowsADemotedPrimary(t *testing.T) {
	t.Parallel()
	probing := func(iv *record.Interval) bool { return iv.Probe.OK > 0 && notDone(&iv.Probe.Counts) == 0 }
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
		w := watch(t, followPlan(plan.TopologyCluster, cluster.Addresses(), 300, 0))
		w.until("the probe has success", probing)
		cluster.Failover(cluster.Shards[0][1])
		w.until("the probe has success at the new primary", probing)
	})
	t.Run("replication", func(t *testing.T) {
		t.Parallel()
		replication := redistest.NewReplication(t, 1, redistest.Options{})
		w := watch(t, followPlan(plan.TopologyReplication, replication.Addresses(), 300, 0))
		w.until("the probe has success", probing)
		replication.FailoverTo(replication.Primary, replication.Replicas[0])
		w.until("the probe has success at the new primary", probing)
	})
}
