//go:build integration

package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// sentinelWorld is a primary with two replicas under three sentinels.
func sentinelWorld(t *testing.T) (*world, *redistest.Sentinel) {
	t.Helper()
	d := redistest.SharedSentinel(t)
	layout := func() (Layout, error) {
		reply, err := d.Sentinels[0].Client().
			Do(context.Background(), "sentinel", "get-master-addr-by-name", redistest.MasterName).StringSlice()
		if err != nil {
			return Layout{}, err
		}
		var l Layout
		for _, s := range d.Servers() {
			l.Nodes = append(l.Nodes, Node{Address: s.Address(), Primary: s.Address() == net.JoinHostPort(reply[0], reply[1])})
		}
		return l, nil
	}
	return newWorld(t, 2, layout), d
}

// demoted waits until the sentinels have made the old primary a replica.
func demoted(t *testing.T, d *redistest.Sentinel) {
	t.Helper()
	await.Until(t, "the old primary is a replica", func() error {
		if role := d.Primary.Info("role"); role != "slave" {
			return fmt.Errorf("it is %s", role)
		}
		return nil
	})
}

func TestSentinelFailoverLosesWritesWithoutErrors(t *testing.T) {
	redistest.Each(t, testSentinelFailoverLosesWritesWithoutErrors)
}

func testSentinelFailoverLosesWritesWithoutErrors(t *testing.T) {
	t.Parallel()
	untilLost(t, failoverWithoutErrors)
}

// untilLost does failovers of healthy primaries until one loses writes: where the writers get no CPU while there are
// two primaries, none are lost.
func untilLost(t *testing.T, failOver func(t *testing.T) (lost uint64)) {
	t.Helper()
	const most = 5
	for range most {
		if failOver(t) > 0 {
			return
		}
	}
	t.Errorf("%d failovers of a healthy primary lost nothing", most)
}

func failoverWithoutErrors(t *testing.T) (lost uint64) {
	w, d := sentinelWorld(t)
	w.load()
	w.writes(1000)
	d.FailoverAndWait()
	demoted(t, d)
	w.writes(1000)
	w.settled()
	r := w.verify()
	if r.Errors > r.Lost/20 {
		t.Errorf("%d errors while %d writes were lost: want none: this failure causes no errors", r.Errors, r.Lost)
	}
	if r.Replicas != 2 {
		t.Errorf("%d replicas were read", r.Replicas)
	}
	return r.Lost
}

func TestSentinelFailoverWithWritesPausedLosesNothing(t *testing.T) {
	redistest.Each(t, testSentinelFailoverWithWritesPausedLosesNothing)
}

func testSentinelFailoverWithWritesPausedLosesNothing(t *testing.T) {
	t.Parallel()
	w, d := sentinelWorld(t)
	w.within = 2 * time.Second // then a writer queries the primary again
	w.load()
	w.writes(1000)
	d.Primary.Do("client", "pause", 60_000, "write")
	d.FailoverAndWait()
	w.writes(1000) // at the new primary, and no command is pending at the old one
	d.Primary.Do("client", "unpause")
	demoted(t, d)
	w.writes(1000)
	w.settled()
	if r := w.verify(); r.Lost != 0 || r.Acked == 0 {
		t.Errorf("%+v", *r)
	}
}

// clusterWorld is three primaries with a replica each.
func clusterWorld(t *testing.T) (*world, *redistest.Cluster) {
	t.Helper()
	d := redistest.SharedCluster(t)
	return newWorld(t, 2, func() (Layout, error) { return clusterLayout(d.Shards[0][1]) }), d
}

// clusterLayout queries a node, which is initially a replica. Shards are numbered by the slots that they serve.
func clusterLayout(node *redistest.Server) (Layout, error) {
	text, err := node.Client().ClusterNodes(context.Background()).Result()
	if err != nil {
		return Layout{}, err
	}
	var l Layout
	shardByID, replicas := map[string]int{}, map[string]string{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		address, _, _ := strings.Cut(f[1], "@")
		if strings.Contains(f[2], "slave") {
			replicas[address] = f[3]
			continue
		}
		if len(f) < 9 {
			continue // a primary without slots
		}
		var first, last int
		if _, err := fmt.Sscanf(f[8], "%d-%d", &first, &last); err != nil {
			return Layout{}, err
		}
		shard := (first*3 + topology.SlotCount/2) / topology.SlotCount
		shardByID[f[0]] = shard
		l.Nodes = append(l.Nodes, Node{Address: address, Shard: shard, Primary: true})
	}
	for address, id := range replicas {
		if shard, ok := shardByID[id]; ok {
			l.Nodes = append(l.Nodes, Node{Address: address, Shard: shard})
		}
	}
	if len(l.Nodes) < 3 {
		return Layout{}, errors.New("the cluster is not whole")
	}
	l.ShardOf = func(slot uint16) int {
		for shard := range 3 {
			if int(slot) < topology.SlotCount*(shard+1)/3 {
				return shard
			}
		}
		return -1
	}
	return l, nil
}

func TestClusterFailoverLosesNothing(t *testing.T) {
	redistest.Each(t, testClusterFailoverLosesNothing)
}

func testClusterFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	w, d := clusterWorld(t)
	w.load()
	w.writes(1000)
	d.Failover(d.Shards[0][1])
	w.writes(1000)
	w.settled()
	r := w.verify()
	if r.Lost != 0 || r.Acked == 0 || r.Replicas != 3 {
		t.Errorf("%+v", *r)
	}
	for writer := range w.acked {
		for shard, numbers := range w.acked[writer] {
			if len(numbers) == 0 {
				t.Errorf("writer %d wrote nothing to shard %d", writer, shard)
			}
		}
	}
}
