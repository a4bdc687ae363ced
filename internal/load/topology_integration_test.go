//go:build integration

package load

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/ledger"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/sample"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/topology"
)

// followPlan is a load of a whole deployment, for so long.
func followPlan(topology plan.Topology, addresses []string, rate float64, length time.Duration) *plan.Plan {
	p := testPlan("")
	p.Run = "follow"
	p.Target.Topology, p.Target.Addresses = topology, addresses
	p.Shape = plan.Shape{Rate: rate, Duration: length}
	p.Workload.Keyspace.Prefill = true
	p.Info = 0
	return p
}

func sentinelPlan(s *redistest.Sentinel, rate float64, length time.Duration) *plan.Plan {
	p := followPlan(plan.TopologySentinel, nil, rate, length)
	p.Target.Sentinel = &plan.Sentinel{Addresses: s.SentinelAddresses(), MasterName: redistest.MasterName}
	return p
}

// duringRun runs the plan and calls what at the instant after its start.
func duringRun(t *testing.T, p *plan.Plan, after time.Duration, what func()) (*outcome, *Runner) {
	t.Helper()
	r := prepared(t, p)
	start, wait := inBackground(t, t.Context(), r)
	time.Sleep(time.Until(start.Add(after)))
	what()
	o, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(describe(o))
	return o, r
}

// longestGap is the longest gap.
func longestGap(gaps []sample.Gap) time.Duration {
	var most time.Duration
	for _, g := range gaps {
		most = max(most, time.Duration(g.To-g.From))
	}
	return most
}

// shardGaps are the gaps of one shard.
func shardGaps(o *outcome, shard int) []sample.Gap {
	var gaps []sample.Gap
	for _, iv := range o.intervals {
		for _, g := range iv.ShardGaps {
			if g.Shard == shard {
				gaps = append(gaps, g.Gap)
			}
		}
	}
	return gaps
}

func TestSentinelFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	o, r := duringRun(t, sentinelPlan(s, 1000, 12*time.Second), 3*time.Second, s.Failover)
	defer r.forgetDeployment()
	if last := o.rate(100, 120, 100*time.Millisecond); last < 900 {
		t.Errorf("%.0f/s at the end, want 1000: the new primary was not followed", last)
	}
	if gap := longestGap(o.gaps); gap > 5*time.Second {
		t.Errorf("the longest gap is %s", gap)
	}
	addsUp(t, o)
}

func TestKilledPrimaryUnderSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	o, r := duringRun(t, sentinelPlan(s, 1000, 15*time.Second), 3*time.Second, s.Primary.Kill)
	defer r.forgetDeployment()
	if last := o.rate(130, 150, 100*time.Millisecond); last < 900 {
		t.Errorf("%.0f/s at the end, want 1000: the new primary was not followed", last)
	}
	// down-after is 1 s; nothing is served before somebody was elected.
	if gap := longestGap(o.gaps); gap < time.Second || gap > 9*time.Second {
		t.Errorf("the longest gap is %s", gap)
	}
	addsUp(t, o)
}

// TestClusterFailoverUnderLoad: a graceful failover is followed without an error.
func TestClusterFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	o, r := duringRun(t, followPlan(plan.TopologyCluster, c.Addresses(), 1500, 6*time.Second), 2*time.Second, func() { c.Failover(c.Shards[0][1]) })
	defer r.forgetDeployment()
	if o.sum.Fail > 0 || o.sum.OK < 8990 {
		t.Errorf("%s", describe(o))
	}
	if len(o.intervals[30].Shards) != 3 {
		t.Errorf("%d shards are recorded, want 3", len(o.intervals[30].Shards))
	}
	addsUp(t, o)
}

// TestDeadShardIsSeenByItself: the aggregate goes on, one shard has an outage.
func TestDeadShardIsSeenByItself(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{Options: redistest.Options{Config: []string{"cluster-require-full-coverage no"}}})
	o, r := duringRun(t, followPlan(plan.TopologyCluster, c.Addresses(), 1500, 14*time.Second), 3*time.Second, c.Shards[1][0].Kill)
	defer r.forgetDeployment()
	for shard, down := range []bool{false, true, false} {
		gap := longestGap(shardGaps(o, shard))
		if down && (gap < 1500*time.Millisecond || gap > 9*time.Second) || !down && gap > time.Second {
			t.Errorf("shard %d: the longest gap is %s, killed: %v", shard, gap, down)
		}
	}
	if gap := longestGap(o.gaps); gap > time.Second {
		t.Errorf("the aggregate has a gap of %s", gap)
	}
	if last := o.rate(120, 140, 100*time.Millisecond); last < 1350 {
		t.Errorf("%.0f/s at the end, want 1500", last)
	}
	addsUp(t, o)
}

// TestSlotMovesUnderLoad: no error is counted for a followed MOVED or ASK.
func TestSlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 2000, 8*time.Second)
	p.Workload.Keyspace.Prefix, p.Workload.Keyspace.Keys = "{moves}:", 500 // all in one slot
	slot := int(topology.SlotOf([]byte("moves")))
	from := c.Owner(slot)
	var to *redistest.Server
	for _, s := range c.Servers() {
		if s != from {
			to = s
		}
	}
	o, r := duringRun(t, p, 2*time.Second, func() {
		finish := c.BeginMigration(slot, to)
		for range 10 {
			c.MigrateKeys(slot, from, to, 50)
			time.Sleep(100 * time.Millisecond)
		}
		for c.MigrateKeys(slot, from, to, 500) > 0 {
		}
		finish()
	})
	defer r.forgetDeployment()
	if o.sum.OK != o.sum.Due {
		t.Errorf("%s", describe(o))
	}
}

// TestReplicaComesAndGoes: reads go to whatever replicas there are.
func TestReplicaComesAndGoes(t *testing.T) {
	t.Parallel()
	s := redistest.NewReplication(t, 1, redistest.Options{})
	p := followPlan(plan.TopologyReplication, s.Addresses(), 1000, 9*time.Second)
	p.Workload.Commands = []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}}
	p.Client.ReadFrom = plan.ReadAny
	var added *redistest.Server
	reads := func(s *redistest.Server) string { return s.Info("keyspace_hits") }
	o, r := duringRun(t, p, 2*time.Second, func() {
		added = s.AddReplica(s.Primary)
		time.Sleep(4 * time.Second)
		if reads(added) == "0" {
			t.Error("nobody read from the replica that was added")
		}
		s.RemoveReplica(added)
	})
	defer r.forgetDeployment()
	if reads(s.Replicas[0]) == "0" || reads(s.Primary) == "0" {
		t.Errorf("%s reads at the primary, %s at the replica", reads(s.Primary), reads(s.Replicas[0]))
	}
	if o.sum.OK < o.sum.Due*95/100 {
		t.Errorf("%s", describe(o))
	}
	addsUp(t, o)
}

// TestLedgerOfACleanRun finds nothing lost; every ledger write is one that the record counts.
func TestLedgerOfACleanRun(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 2000, 2*time.Second)
	p.Verify = &plan.Verify{Share: 0.25}
	_, r := duringRun(t, p, time.Second, func() {})
	result := verified(t, r)
	if result.Acked != 1000 || result.Lost != 0 || result.Failed+result.Unknown != 0 {
		t.Errorf("%+v", result)
	}
}

// TestLedgerFindsAPlantedLoss: bits that are cleared behind its back.
func TestLedgerFindsAPlantedLoss(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	p := testPlan(server.Address())
	p.Shape = plan.Shape{Users: 10, Requests: 20_000}
	p.Verify = &plan.Verify{Share: 0.5}
	r := prepared(t, p)
	o, sink := collect(t)
	if err := r.Run(t.Context(), time.Now(), sink); err != nil {
		t.Fatal(err)
	}
	key := r.run.loops[0].book.Key(0)
	for n := 100; n < 137; n++ {
		server.Do("setbit", key, n, 0)
	}
	result := verified(t, r)
	if result.Acked != 10_000 || result.Lost != 37 {
		t.Errorf("%+v; %s", result, describe(o))
	}
}

func verified(t *testing.T, r *Runner) *ledger.Result {
	t.Helper()
	result, err := r.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestEveryServerIsObserved: INFO comes from all nodes of a cluster.
func TestEveryServerIsObserved(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 500, 2*time.Second)
	p.Info = 200 * time.Millisecond
	o := runPlan(t, p)
	seen := map[string]int{}
	for _, s := range o.servers {
		seen[s.Address]++
	}
	if len(seen) != 6 {
		t.Errorf("readings by server: %v, want 6 servers", seen)
	}
}
