//go:build integration

package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestCleanRunsLoseNothing: in 20 runs during which nothing happens no acknowledged write is told lost, and none is missing at a replica.
func TestCleanRunsLoseNothing(t *testing.T) {
	single := redistest.NewServer(t, redistest.Options{})
	replication := redistest.NewReplication(t, 1, redistest.Options{})
	cluster := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	runs := 0
	for _, d := range []struct {
		topology  plan.Topology
		addresses []string
		runs      int
		replicas  int
	}{
		{plan.TopologyStandalone, []string{single.Address()}, 6, 0},
		{plan.TopologyReplication, replication.Addresses(), 7, 1},
		{plan.TopologyCluster, cluster.Addresses(), 7, 3},
	} {
		for i := range d.runs {
			p := followPlan(d.topology, d.addresses, 1500, 500*time.Millisecond)
			p.Workload.Keyspace.Prefill = false
			p.Run, p.Verify = fmt.Sprintf("clean-%d", runs), &plan.Verify{Share: 1}
			p.Client.RequestTimeout = 5 * time.Second
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
			if v.Lost != 0 || v.Unread != "" || v.FailedPresent != 0 || v.ReplicaMissing != 0 || v.Replicas != d.replicas ||
				float64(v.Acked) < 0.9*written || float64(v.Acked) > 1.1*written || o.sum.OK == 0 {
				t.Errorf("%s, run %d: %+v; %s", d.topology, i, *v, describe(o))
			}
			runs++
		}
	}
	if runs != 20 {
		t.Errorf("%d runs, want 20", runs)
	}
}
