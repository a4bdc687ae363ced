//go:build integration

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestCleanRunsLoseNothing: in runs without faults no acknowledged write is lost, and none is missing at a replica.
// TestHealthyCluster has those of a cluster.
func TestCleanRunsLoseNothing(t *testing.T) {
	t.Parallel()
	single := redistest.NewServer(t, redistest.Options{})
	replication := redistest.NewReplication(t, 1, redistest.Options{})
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		cleanRuns(t, plan.TopologyStandalone, []string{single.Address()}, 0)
	})
	t.Run("replication", func(t *testing.T) {
		t.Parallel()
		cleanRuns(t, plan.TopologyReplication, replication.Addresses(), 1)
	})
}

func cleanRuns(t *testing.T, topology plan.Topology, addresses []string, replicas int) {
	for i := range 4 {
		p := followPlan(topology, addresses, 1500, 200*time.Millisecond)
		p.Workload.Keyspace.Prefill = false
		p.Run, p.Verify = fmt.Sprintf("clean-%d", i), &plan.Verify{Share: 1}
		if i%2 == 1 {
			p.Shape, p.Verify.Share = plan.Shape{Users: 8, Requests: 1000}, 0.3
		}
		r := prepared(t, p)
		_, wait := inBackground(t, t.Context(), r)
		o, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Verify(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		written := float64(o.sum.OK) * p.Verify.Share
		if v.Lost != 0 || o.lost != 0 || v.Unread != "" || v.FailedPresent != 0 || v.ReplicaMissing != 0 ||
			v.Replicas != replicas ||
			float64(v.Acked) < 0.9*written || float64(v.Acked) > 1.1*written || o.sum.OK == 0 {
			t.Errorf("%s, run %d: %+v; %s", topology, i, *v, describe(o))
		}
	}
}
