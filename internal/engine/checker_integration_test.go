//go:build integration

package engine

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// watchClosely is watch with many checks of the ledger.
func watchClosely(t *testing.T, p *plan.Plan) *watched {
	t.Helper()
	p.Shape.Duration = time.Minute
	r := prepared(t, p)
	r.checker.Every = 10 * time.Millisecond
	return watchPrepared(t, r)
}

// sum adds up the lost writes of the following intervals until the condition holds.
func (w *watched) sum(what string, ok func(lost []uint64, iv *record.Interval) bool) {
	w.t.Helper()
	var lost []uint64
	w.until(what, func(iv *record.Interval) bool {
		for shard, n := range iv.Lost {
			for len(lost) <= shard {
				lost = append(lost, 0)
			}
			lost[shard] += n
		}
		return ok(lost, iv)
	})
}

func checked(iv *record.Interval) bool { return len(iv.LedgerChecks) > 0 && iv.LedgerChecks[0].At > 0 }

// The record shows a loss within two seconds while the load goes on, at the usual pace of the checks. They are no
// requests of the load.
func TestLossIsSeenDuringTheLoad(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	p := followPlan(plan.TopologyStandalone, []string{server.Address()}, 500, 0)
	p.Verify = &plan.Verify{Share: 0.5}
	w := watch(t, p)
	w.until("the ledger was read", checked)
	key := w.runner.loops[0].Book.Key(0)
	for n := range 17 {
		server.Do("setbit", key, n, 0)
	}
	w.sum("the loss", func(lost []uint64, _ *record.Interval) bool { return total(lost) == 17 })
	w.until("another check", checked)
	reads := server.Calls("getrange")
	o := w.end()
	if o.lost != 17 || o.check.Failure != "" || reads == 0 ||
		reads > len(w.runner.loops)*(2+int(o.check.At/int64(time.Second))) {
		t.Errorf("%d lost, %d reads, %+v; %s", o.lost, reads, o.check, describe(o))
	}
	if replies := uint64(server.Calls("setbit") - 17 -
		len(w.runner.loops)); o.intervals[0].Connections != p.Client.Connections || o.sum.Sent < replies {
		t.Errorf("%d writes of the ledger, %s", replies, describe(o))
	}
	if v := verified(t, w.runner); v.Lost != 17 {
		t.Errorf("%d lost in the end", v.Lost)
	}
}

// The slot of a ledger is moved to another primary, and back, by MIGRATE: no write is taken for lost.
func TestLedgerMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 1000, 0)
	p.Verify = &plan.Verify{Share: 0.5}
	w := watchClosely(t, p)
	w.until("the ledger was read", checked)
	slot := int(w.runner.loops[0].Book.Slot(0))
	for i := range 3 {
		from, to := c.Owner(slot), c.Shards[(i+1)%3][0]
		if from == to {
			continue
		}
		finish := c.BeginMigration(slot, to)
		w.until("some checks", serving)
		for c.MigrateKeys(slot, from, to, 500) > 0 {
		}
		w.until("some checks", serving)
		finish()
		w.until("the ledger was read at its new primary", checked)
	}
	o := w.end()
	if v := verified(t, w.runner); v.Lost > 0 || v.Unread != "" || v.Acked == 0 || o.lost > 0 {
		t.Errorf("%+v; while it ran %d; %s", *v, o.lost, describe(o))
	}
}

// A failover of a healthy primary loses what it acknowledges until the load follows. What is found while the load runs
// is what is lost in the end.
func TestCheckedFailover(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	p := sentinelPlan(s, 2000, 0)
	p.Verify = &plan.Verify{Share: 0.5}
	w := watchClosely(t, p)
	w.until("the ledger was read", checked)
	before := s.Primary.Address()
	s.Failover()
	w.follows(0, before)
	w.until("the ledger was read at the new primary", checked)
	o := w.end()
	v := verified(t, w.runner)
	t.Logf("%d lost of %d, %d failed, %d unknown", v.Lost, v.Acked, v.Failed, v.Unknown)
	if v.Lost != o.lost || v.Unread != "" || o.check.Failure != "" {
		t.Errorf("%d found while it ran, %d in the end; %+v; %s", o.lost, v.Lost, o.check, describe(o))
	}
}
