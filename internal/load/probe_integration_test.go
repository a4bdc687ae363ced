//go:build integration

package load

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestProbeFollowsADemotedPrimary: a primary that a failover demotes keeps its clients and refuses their writes, for as long as they stay. The probe leaves.
func TestProbeFollowsADemotedPrimary(t *testing.T) {
	const length, at = 8 * time.Second, 2 * time.Second
	cluster := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	replication := redistest.NewReplication(t, 1, redistest.Options{})
	for name, d := range map[string]struct {
		plan *Plan
		fail func()
	}{
		"cluster": {followPlan(TopologyCluster, cluster.Addresses(), 300, length), func() { cluster.Failover(cluster.Shards[0][1]) }},
		"replication": {followPlan(TopologyReplication, replication.Addresses(), 300, length), func() {
			replication.FailoverTo(replication.Primary, replication.Replicas[0])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o, r := duringRun(t, d.plan, at, d.fail)
			defer r.forgetDeployment()
			if gap := longestGap(o.probeGaps); gap > (length-at)/2 {
				t.Errorf("the probe had no success for %s, the load for %s", gap, longestGap(o.gaps))
			}
			if o.probe.OK == 0 {
				t.Error("the probe had no success")
			}
		})
	}
}
