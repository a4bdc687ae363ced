//go:build integration

package scale

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// newClusterStage creates a cluster in one StatefulSet: redis-0 to redis-2 are primaries, redis-3 to redis-5 their
// replicas.
func newClusterStage(
	t *testing.T, start func(c *redistest.Cluster, pod string) *redistest.Server,
) (*scaleStage, *redistest.Cluster) {
	t.Helper()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
	var servers []*redistest.Server
	for i := range 2 {
		for _, shard := range c.Shards {
			servers = append(servers, shard[i])
		}
	}
	return newScaleStage(t, func(pod string) *redistest.Server { return start(c, pod) }, servers...), c
}

// withAddedNode is a cluster of six nodes to which a fault has added one.
func withAddedNode(t *testing.T) (*scaleStage, *redistest.Cluster, *v1alpha1.RedisFaultSpec, *v1alpha1.FaultTarget) {
	t.Helper()
	s, c := newClusterStage(t, func(c *redistest.Cluster, _ string) *redistest.Server { return c.AddNode() })
	spec := scaleBy(1)
	_, target := s.Aim(spec)
	s.inject(spec, target)
	waitForNodes(t, c, 7)
	return s, c, spec, target
}

// waitForNodes waits until all running nodes list this number of nodes, none of them failed.
func waitForNodes(t *testing.T, c *redistest.Cluster, want int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("all know %d nodes", want), func() error {
		for _, s := range c.Servers() {
			if !s.Running() {
				continue
			}
			text := strings.ReplaceAll(s.Do("cluster", "nodes").(string), ",nofailover", "") // of added nodes
			if n := strings.Count(text, "\n"); n != want || strings.Contains(text, "fail") || strings.Contains(text, "noaddr") {
				return fmt.Errorf("%s lists %d nodes:\n%s", s.Address(), n, text)
			}
		}
		return nil
	})
}

// expectNodes checks how many nodes all running ones list now. On a busy machine some may be suspected of a failure
// (PFAIL) at this instant.
func expectNodes(t *testing.T, c *redistest.Cluster, want int) {
	t.Helper()
	for _, s := range c.Servers() {
		if !s.Running() {
			continue
		}
		if text := s.Do("cluster", "nodes").(string); strings.Count(text, "\n") != want {
			t.Errorf("%s lists other than %d nodes:\n%s", s.Address(), want, text)
		}
	}
}

// waitForGossip waits until every node has received this number of further gossip messages from the others.
func waitForGossip(t *testing.T, c *redistest.Cluster, messages int) {
	t.Helper()
	received := func(s *redistest.Server) int {
		return int(redis.ParseInfo(s.Do("cluster", "info").(string)).Int("cluster_stats_messages_received"))
	}
	before := map[*redistest.Server]int{}
	for _, s := range c.Servers() {
		if s.Running() {
			before[s] = received(s)
		}
	}
	for s := range before {
		await.Until(t, s.Address()+" gets messages", func() error {
			if n := received(s) - before[s]; n < messages {
				return fmt.Errorf("only %d", n)
			}
			return nil
		})
	}
}

func TestReplicaScaleClusterAdd(t *testing.T) { redistest.Each(t, testReplicaScaleClusterAdd) }

func testReplicaScaleClusterAdd(t *testing.T) {
	t.Parallel()
	s, c := newClusterStage(t, func(c *redistest.Cluster, _ string) *redistest.Server { return c.AddNode() })
	spec := scaleBy(2)
	spec.Select.Shard = new(int32(1))
	injector, target := s.Aim(spec)
	s.inject(spec, target)
	s.expectReplicas(8)
	waitForNodes(t, c, 8)
	faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectConfirmed, "redis-7")
	if got := c.Shards[1][0].Info("connected_slaves"); got != "3" {
		t.Errorf("shard 1 has %s replicas, want 3", got)
	}
	s.follows(injector, target, "ReplicaAdded redis-6", "ReplicaAdded redis-7", "ReplicaSynced redis-6",
		"ReplicaSynced redis-7")
	s.revert(spec, target)
	s.expectReplicas(6)
	waitForNodes(t, c, 6)
	waitForGossip(t, c, 12)
	waitForNodes(t, c, 6)
	c.WaitHealthy()
	s.follows(injector, target, "ReplicaAdded redis-6", "ReplicaAdded redis-7", "ReplicaRemoved redis-6",
		"ReplicaRemoved redis-7", "ReplicaSynced redis-6", "ReplicaSynced redis-7")
}

// An added node that lost its volume has a new ID; the old ID stays in the node lists, and is identified by its
// address.
func TestReplicaScaleClusterForgetsAllNodes(t *testing.T) {
	redistest.Each(t, testReplicaScaleClusterForgetsAllNodes)
}

func testReplicaScaleClusterForgetsAllNodes(t *testing.T) {
	t.Parallel()
	s, c, spec, target := withAddedNode(t)
	// The record of its ID is lost, and the node is killed, before the revert.
	record := faulttest.Recorded[scaleRecord](t, target)
	m := record.Members["redis-6"]
	m.Nodes = nil
	record.setMember("redis-6", m)
	faulttest.Save(t, target, record)
	s.servers["redis-6"].Kill()
	s.revert(spec, target)
	waitForNodes(t, c, 6)
}

// A node that is down while the others forget an added one would tell them of it when it is back: the revert waits.
func TestReplicaScaleClusterForgetsAtNodesThatWereDown(t *testing.T) {
	redistest.Each(t, testReplicaScaleClusterForgetsAtNodesThatWereDown)
}

func testReplicaScaleClusterForgetsAtNodesThatWereDown(t *testing.T) {
	t.Parallel()
	s, c, spec, target := withAddedNode(t)
	down := s.servers["redis-5"]
	down.Kill()
	await.Until(t, "the others know that a node is down", func() error {
		text := c.Shards[0][0].Do("cluster", "nodes").(string)
		for line := range strings.Lines(text) {
			flags := strings.Split(strings.Fields(line)[2], ",")
			if slices.Contains(flags, "fail") {
				return nil
			}
		}
		return errors.New(text)
	})
	await.Until(t, "all others have forgotten the added node", func() error {
		progress, err := s.Reborn(spec).Revert(t.Context(), target)
		s.settle()
		switch {
		case err != nil:
			return err
		case progress.Complete():
			t.Fatal("it is reverted without the node that is down")
		case !strings.Contains(progress.Message, "redis-5"):
			return errors.New(progress.Message)
		}
		return nil
	})
	down.Restart()
	s.revert(spec, target)
	waitForNodes(t, c, 6)
}

func TestReplicaScaleClusterRemove(t *testing.T) { redistest.Each(t, testReplicaScaleClusterRemove) }

func testReplicaScaleClusterRemove(t *testing.T) {
	t.Parallel()
	for name, comesBack := range map[string]func(
		c *redistest.Cluster, stopped map[string]*redistest.Server, pod string,
	) *redistest.Server{
		"its volume comes back": func(_ *redistest.Cluster, stopped map[string]*redistest.Server,
			pod string,
		) *redistest.Server {
			stopped[pod].Restart()
			return stopped[pod]
		},
		"another node comes": func(c *redistest.Cluster, _ map[string]*redistest.Server, _ string) *redistest.Server {
			return c.AddNode()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopped := map[string]*redistest.Server{}
			s, c := newClusterStage(t, func(c *redistest.Cluster, pod string) *redistest.Server {
				return comesBack(c, stopped,
					pod)
			})
			for pod, server := range s.servers {
				stopped[pod] = server
			}
			spec := scaleBy(-2)
			_, target := s.Aim(spec)
			s.inject(spec, target)
			s.expectReplicas(4)
			waitForNodes(t, c, 4)
			faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectConfirmed, "no longer lists redis-5")
			s.revert(spec, target)
			s.expectReplicas(6)
			waitForNodes(t, c, 6)
			waitForGossip(t, c, 60) // nothing that a node says makes another one forget
			expectNodes(t, c, 6)
			for _, shard := range c.Shards { // each came back to its own shard
				if got := shard[0].Info("connected_slaves"); got != "1" {
					t.Errorf("%s has %s replicas, want 1", shard[0].Address(), got)
				}
			}
			faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectNotObserved, "still has 6")
		})
	}
}

func TestReplicaScaleClusterRefusesPrimary(t *testing.T) {
	t.Parallel()
	s, _ := newClusterStage(t, nil)
	_, _, err := s.TryAim(scaleBy(-4))
	if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonBlastRadius ||
		!strings.Contains(problem.Message, "redis-2 is a primary") {
		t.Errorf("%+v", problem)
	}
}
