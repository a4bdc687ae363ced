//go:build integration

package engine

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// followPlan is a load of a whole deployment with this duration.
func followPlan(topology plan.Topology, addresses []string, rate float64, length time.Duration) *plan.Plan {
	p := realPlan("")
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

// primary returns the shard's current primary according to the load's topology map.
func (w *watched) primary(shard int) string {
	return w.runner.run.Routes.Current().Shards[shard].Primary
}

// follows waits until the load uses a new primary of the shard, and expects no error from then on.
func (w *watched) follows(shard int, before string) {
	w.t.Helper()
	w.until("another primary is known", func(*record.Interval) bool {
		p := w.primary(shard)
		return p != "" &&
			p != before
	})
	w.until("all is well with the new primary", serving)
}

// TestHealthyCluster runs all checks that need a cluster without faults, on one cluster.
func TestHealthyCluster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	for name, what := range map[string]func(*testing.T, *redistest.Cluster){
		"ledger of a clean run":               ledgerOfACleanRun,
		"every server is observed":            everyServerIsObserved,
		"go-redis":                            goRedisOnACluster,
		"reads go to replicas":                readsGoToReplicasOfACluster,
		"keys in different slots are refused": keysInDifferentSlotsAreRefused,
		"clean runs": func(t *testing.T, c *redistest.Cluster) {
			cleanRuns(t, plan.TopologyCluster,
				c.Addresses(), 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			what(t, c)
		})
	}
}

func TestSentinelFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	w := watch(t, sentinelPlan(s, 500, 0))
	w.until("the load runs", serving)
	s.Failover()
	w.follows(0, s.Primary.Address())
	w.end()
}

func TestKilledPrimaryUnderSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t, 2, redistest.SentinelOptions{})
	p := sentinelPlan(s, 500, 0)
	p.Client.RequestTimeout = 2 * time.Second // what queues meanwhile is dropped
	w := watch(t, p)
	w.until("the load runs", serving)
	s.Primary.Kill()
	down := w.until("nothing is served before somebody was elected", func(iv *record.Interval) bool {
		return iv.FirstOK < 0
	})
	w.follows(0, s.Primary.Address())
	covers(t, "load", w.end().gaps, down, down+int64(p.Interval))
}

// TestClusterFailoverUnderLoad: a graceful failover is followed without an error, but for what the old primary itself
// answers on a slow machine, until it has heard who has its slots now.
func TestClusterFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	clusterFailover(t, redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{}))
}

// TestFailoverOfAnIPv6Cluster: MOVED names "::1:7001" there, without brackets.
func TestFailoverOfAnIPv6Cluster(t *testing.T) { redistest.Each(t, testFailoverOfAnIPv6Cluster) }

func testFailoverOfAnIPv6Cluster(t *testing.T) {
	t.Parallel()
	redistest.NeedsIPv6(t)
	clusterFailover(t, redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{Options: redistest.Options{Host: "::1"}}))
}

// TestFailoverOfAClusterThatTellsNoAddress: MOVED names ":7001", or "?:7001" of a node that has no name to announce.
func TestFailoverOfAClusterThatTellsNoAddress(t *testing.T) {
	redistest.Each(t, testFailoverOfAClusterThatTellsNoAddress)
}

func testFailoverOfAClusterThatTellsNoAddress(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"unknown-endpoint", "hostname"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			clusterFailover(t, redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{
				Options: redistest.Options{Config: []string{"cluster-preferred-endpoint-type " + kind}},
			}))
		})
	}
}

func clusterFailover(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	w := watch(t, followPlan(plan.TopologyCluster, c.Addresses(), 1000, 0))
	w.until("the load runs", serving)
	before := c.Shards[0][0].Address()
	shard := w.shardOf(before)
	c.Failover(c.Shards[0][1])
	w.follows(shard, before)
	w.until("three shards are recorded", func(iv *record.Interval) bool { return len(iv.Shards) == 3 })
	// Every server names the others in its own way.
	for _, at := range c.Servers() {
		for _, key := range []string{"a", "b", "c", "d", "e", "f"} { // of all shards
			err := at.Client().Do(t.Context(), "get", key).Err()
			if err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
				continue
			}
			to := route.ParseRedirection([]byte(err.Error()), at.Address())
			if to == nil || c.Find(to.To) == nil || !w.runner.run.Routes.Tracker.Moved(to.Slot, to.To) {
				t.Errorf("%s answers %v: read as %+v", at.Address(), err, to)
			}
		}
	}
	if o := w.end(); o.sum.Fail > o.sum.Errors[record.ClassClusterDown] || o.sum.Errors[record.ClassReset] > 0 {
		t.Errorf("%s\n%q", describe(o), w.runner.ErrorSamples())
	}
	if n := len(w.runner.run.Routes.Current().Shards); n != 3 {
		t.Errorf("the load knows %d shards of 3", n)
	}
}

// TestDeadShardHasAGapOfItsOwn: one shard has an outage while the aggregate has none.
func TestDeadShardHasAGapOfItsOwn(t *testing.T) { redistest.Each(t, testDeadShardHasAGapOfItsOwn) }

func testDeadShardHasAGapOfItsOwn(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{
		Options: redistest.Options{Config: []string{"cluster-require-full-coverage no"}},
	})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 1000, 0)
	p.Client.RequestTimeout = 2 * time.Second // what queues meanwhile is dropped
	w := watch(t, p)
	w.until("the load runs", serving)
	dead := c.Shards[1][0].Address()
	shard := w.shardOf(dead)
	c.Shards[1][0].Kill()
	down := w.until("the others serve while one is down", func(iv *record.Interval) bool {
		for i := range iv.Shards {
			if up := iv.Shards[i].OK > 0; up == (i == shard) {
				return false
			}
		}
		return len(iv.Shards) == 3
	})
	w.follows(shard, dead)
	o := w.end()
	covers(t, "the dead shard", shardGaps(o, shard), down, down+int64(p.Interval))
	covers(t, "the probe of the dead shard", probeShardGaps(o, shard), down, down+int64(p.Interval))
	for i := range 3 {
		if g := longest(probeShardGaps(o, i)); i != shard && g.From <= down && g.To >= down+int64(p.Interval) {
			t.Errorf("the probe of shard %d has a gap %+v, though only shard %d was down", i, g, shard)
		}
		if g := longest(shardGaps(o, i)); i != shard && g.From <= down && g.To >= down+int64(p.Interval) {
			t.Errorf("shard %d has a gap %+v, though only shard %d was down", i, g, shard)
		}
	}
}

// shardOf is the number of the shard whose primary has the address.
func (w *watched) shardOf(primary string) int {
	return slices.IndexFunc(w.runner.run.Routes.Current().Shards, func(s topology.Shard) bool {
		return s.Primary == primary
	})
}

// TestSlotMovesUnderLoad: no error is counted for a followed MOVED or ASK.
func TestSlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	p := followPlan(plan.TopologyCluster, c.Addresses(), 1000, 0)
	p.Workload.Keyspace.Prefix, p.Workload.Keyspace.Keys = "{moves}:", 500 // all in one slot
	slot := int(topology.SlotOf([]byte("moves")))
	from := c.Owner(slot)
	var to *redistest.Server
	for _, s := range c.Servers() {
		if s != from {
			to = s
		}
	}
	w := watch(t, p)
	w.until("the load runs", serving)
	finish := c.BeginMigration(slot, to)
	for range 5 { // the keys are split between two nodes
		c.MigrateKeys(slot, from, to, 50)
		w.until("both serve", serving)
	}
	for c.MigrateKeys(slot, from, to, 500) > 0 {
	}
	finish()
	w.until("the new owner serves", serving)
	if o := w.end(); o.sum.Fail > 0 || o.sum.Dropped > 0 {
		t.Errorf("%s", describe(o))
	}
}

// TestReadsFollowTheReplicas: reads follow the replicas that join and leave.
func TestReadsFollowTheReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.NewReplication(t, 1, redistest.Options{})
	p := followPlan(plan.TopologyReplication, s.Addresses(), 500, 0)
	p.Workload.Commands = []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}}
	p.Client.ReadFrom = plan.ReadAny
	w := watch(t, p)
	w.until("the load runs", serving)
	added := s.AddReplica(s.Primary)
	reads := func(s *redistest.Server) int {
		n, _ := strconv.Atoi(s.Info("keyspace_hits")) // "" before it answers
		return n
	}
	await.Until(t, "the replica that was added is read from", func() error {
		if reads(added) == 0 {
			return errNoServers
		}
		return nil
	})
	s.RemoveReplica(added)
	w.until("the others serve", serving)
	w.end()
	if reads(s.Replicas[0]) == 0 || reads(s.Primary) == 0 {
		t.Errorf("%d reads at the primary, %d at the replica", reads(s.Primary), reads(s.Replicas[0]))
	}
}

// Where the last replica leaves, the primary takes its reads: during the load, and if that happens while the load
// starts.
func TestReadsWithoutReplicas(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"during the load": true, "at its start": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.NewReplication(t, 1, redistest.Options{})
			p := followPlan(plan.TopologyReplication, s.Addresses(), 500, 0)
			p.Workload.Commands = []plan.Command{{Name: "get", Weight: 1, Words: []string{"GET", "{key}"}}}
			p.Client.ReadFrom = plan.ReadReplica
			p.Shape.Duration = time.Minute
			r, err := New(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Prepare(t.Context(), func(step string) {
				if !during && strings.HasPrefix(step, "establishing") {
					s.RemoveReplica(s.Replicas[0])
				}
			}); err != nil {
				t.Fatal(err)
			}
			w := watchPrepared(t, r)
			if during {
				w.until("the load runs", serving)
				s.RemoveReplica(s.Replicas[0])
			}
			w.until("the primary serves", serving)
			w.end()
			if hits := s.Primary.Info("keyspace_hits"); hits == "0" {
				t.Error("the primary has served no read")
			}
		})
	}
}

// ledgerOfACleanRun finds nothing lost; every ledger write is one that the record counts.
func ledgerOfACleanRun(t *testing.T, c *redistest.Cluster) {
	for _, driver := range []plan.Driver{plan.NativeDriver, plan.GoRedisDriver, plan.RueidisDriver} {
		p := followPlan(plan.TopologyCluster, c.Addresses(), 2000, time.Second)
		p.Verify, p.Client.Driver = &plan.Verify{Share: 0.25}, driver
		_, r := duringRun(t, p, 0, func() {})
		result := verified(t, r)
		if result.Acked != 500 || result.Lost != 0 || result.Failed+result.Unknown != 0 ||
			driver.IsLibrary() && (result.ExecutedTwice == nil || *result.ExecutedTwice != 0) {
			t.Errorf("%s: %+v", driver, result)
		}
	}
}

// TestLedgerFindsAPlantedLoss: cleared bits are reported as lost writes.
func TestLedgerFindsAPlantedLoss(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t, redistest.Options{})
	p := realPlan(server.Address())
	p.Shape = plan.Shape{Users: 10, Requests: 20_000}
	p.Verify = &plan.Verify{Share: 0.5}
	r := prepared(t, p)
	o, sink := collect(t)
	if err := r.Run(t.Context(), time.Now(), sink); err != nil {
		t.Fatal(err)
	}
	key := r.loops[0].Book.Key(0)
	for n := 100; n < 137; n++ {
		server.Do("setbit", key, n, 0)
	}
	result := verified(t, r)
	if result.Acked != 10_000 || result.Lost != 37 {
		t.Errorf("%+v; %s", result, describe(o))
	}
}

func verified(t *testing.T, r *Runner) *record.Ledger {
	t.Helper()
	result, err := r.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// everyServerIsObserved: INFO comes from all nodes of a cluster.
func everyServerIsObserved(t *testing.T, c *redistest.Cluster) {
	p := followPlan(plan.TopologyCluster, c.Addresses(), 100, 0)
	p.Info = 100 * time.Millisecond
	w := watch(t, p)
	seen := map[string]bool{}
	w.until("all six servers were read", func(iv *record.Interval) bool {
		for _, s := range iv.Servers {
			seen[s.Address] = true
		}
		return len(seen) == 6
	})
	w.end()
}
