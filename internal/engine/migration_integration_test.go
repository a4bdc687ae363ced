//go:build integration

package engine

import (
	"testing"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Valkey 9 moves slots with all their keys at once. The load goes on at the new owner, and loses no write.
func TestAtomicSlotMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	redistest.With(t, redistest.Valkey9)
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	from, to := c.Shards[0][0], c.Shards[1][0]
	p := followPlan(plan.TopologyCluster, c.Addresses(), 1000, 0)
	p.Verify = &plan.Verify{Share: 0.5}
	w := watchClosely(t, p)
	w.until("the load runs", serving)
	from.Do("cluster", "migrateslots", "slotsrange", 0, 4000, "node", redistest.ID(to))
	await.Until(t, "the slots have moved", func() error {
		if c.Owner(0) != to || c.Owner(4001) != from {
			return errNoServers
		}
		return nil
	})
	w.until("both serve", serving)
	o := w.end()
	if o.sum.Fail > 0 || o.sum.Unknown > 0 || o.sum.Dropped > 0 {
		t.Errorf("%s", describe(o))
	}
	if v := verified(t, w.runner); v.Lost > 0 || v.Unread != "" || v.Acked == 0 || o.lost > 0 || o.check.At == 0 {
		t.Errorf("%+v; while it ran %d, %+v", *v, o.lost, o.check)
	}
}
