//go:build integration

package failover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// clusterStage is a cluster whose second shard has two replicas.
func clusterStage(t *testing.T) (*failoverStage, *redistest.Cluster) {
	t.Helper()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{
		Options: ctl("+cluster|myid +cluster|nodes +cluster|failover"),
	})
	c.AddReplica(1, c.Shards[1][0])
	return newFailoverStage(t, c.Servers()).asCtl(), c
}

func TestFailoverInCluster(t *testing.T) { redistest.Each(t, testFailoverInCluster) }

func testFailoverInCluster(t *testing.T) {
	t.Parallel()
	s, c := clusterStage(t)
	for _, tc := range []struct {
		method   v1alpha1.FailoverMethod
		mode     v1alpha1.FailoverMode
		sent     string
		wantText string
	}{
		{v1alpha1.FailoverAuto, "", "CLUSTER FAILOVER", "; coordinated"},
		{v1alpha1.FailoverCluster, v1alpha1.FailoverForce, "CLUSTER FAILOVER FORCE", "uncoordinated: FORCE"},
		{v1alpha1.FailoverCluster, v1alpha1.FailoverTakeover, "CLUSTER FAILOVER TAKEOVER", "uncoordinated: TAKEOVER"},
	} {
		t.Run(tc.sent, func(t *testing.T) {
			s.servers.log = nil
			spec := failingOver(tc.method, tc.mode)
			before := s.primaryOf(c.Shards[1])
			target := s.ready(spec, before)
			s.expectEffect(spec, target, v1alpha1.EffectNotObserved, before.Address())
			if begun, err := s.injector(spec).Begun(t.Context(), target); begun || err != nil {
				t.Errorf("begun before Inject: %t, %v", begun, err)
			}
			t.Logf("complete after %s", s.inject(spec, target))
			now := s.primaryOf(c.Shards[1])
			if now == before {
				t.Fatal("the old primary is the primary")
			}
			s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "the nodes name "+now.Address(),
				"instead of "+before.Address(), tc.wantText)
			again := target.DeepCopy()
			again.InjectedAt = nil
			s.inject(spec, again)
			if got := s.servers.sent("CLUSTER FAILOVER"); len(got) != 1 || got[0] != tc.sent {
				t.Errorf("sent %q, want %q once", got, tc.sent)
			}
			s.expectRevert(spec, target)
			c.WaitHealthy()
			var seen []string
			for _, one := range s.injector(spec).(contract.Follower).Follow(t.Context(), target) {
				seen = append(seen, one.Event+" "+one.Object)
			}
			want := []string{
				EventFailoverStarted + " " + s.pods[before.Address()],
				contract.EventPromoted + " " + s.pods[now.Address()], EventDemoted + " " + s.pods[before.Address()],
			}
			if fmt.Sprint(seen) != fmt.Sprint(want) {
				t.Errorf("seen %q, want %q", seen, want)
			}
		})
	}
}

// Replicas that connect through node ports are listed by their primary with an address that leads nowhere; the cluster
// knows what they announce.
func TestFailoverOfListedElsewhere(t *testing.T) { redistest.Each(t, testFailoverOfListedElsewhere) }

func testFailoverOfListedElsewhere(t *testing.T) {
	t.Parallel()
	options := ctl("+cluster|myid +cluster|nodes +cluster|failover")
	options.Config = append(options.Config, "replica-announce-ip 192.0.2.1")
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{Options: options})
	s := newFailoverStage(t, c.Servers()).asCtl()
	spec := failingOver(v1alpha1.FailoverAuto, "")
	before := s.primaryOf(c.Shards[0])
	if said := fmt.Sprint(before.Do("info", "replication")); !strings.Contains(said, "slave0:ip=192.0.2.1") {
		t.Fatalf("the primary does not list another address: %s", said)
	}
	target := s.ready(spec, before)
	s.inject(spec, target)
	now := s.primaryOf(c.Shards[0])
	if now == before {
		t.Fatal("the old primary is the primary")
	}
	s.expectEffect(spec, target, v1alpha1.EffectConfirmed, "the nodes name "+now.Address(), "instead of "+before.Address())
}

// Any node may be selected for a failover of its shard.
func TestFailoverOfAReplicasShard(t *testing.T) { redistest.Each(t, testFailoverOfAReplicasShard) }

func testFailoverOfAReplicasShard(t *testing.T) {
	t.Parallel()
	s, c := clusterStage(t)
	spec := failingOver(v1alpha1.FailoverAuto, "")
	target := s.ready(spec, c.Shards[1][1])
	other := s.ready(spec, c.Shards[1][2])
	s.inject(spec, target)
	now := s.primaryOf(c.Shards[1])
	if now == c.Shards[1][0] {
		t.Fatal("the old primary is the primary")
	}
	s.inject(spec, other) // of the same shard, recorded before the first: its failover has happened
	if s.primaryOf(c.Shards[1]) != now || len(s.servers.sent("CLUSTER FAILOVER")) != 1 {
		t.Errorf("failed over twice: sent %q", s.servers.log)
	}
	s.expectEffect(spec, other, v1alpha1.EffectConfirmed, now.Address())
}

func TestFailoverInClusterAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	s, c := clusterStage(t)
	for _, unsent := range []bool{true, false} {
		spec := failingOver(v1alpha1.FailoverAuto, "")
		before := s.primaryOf(c.Shards[1])
		target := s.ready(spec, before)
		s.servers = &crashingServers{Servers: s.Real, callsLeft: 1, unsent: unsent}
		if done, err := s.injectOnce(spec, target); done || err != nil || target.InjectedAt != nil {
			t.Fatalf("the operator did not crash: done %t, %v", done, err)
		}
		s.inject(spec, target)
		now := s.primaryOf(c.Shards[1])
		if now == before {
			t.Fatal("no failover")
		}
		c.WaitHealthy()
		if s.primaryOf(c.Shards[1]) != now {
			t.Error("failed over twice")
		}
		s.expectEffect(spec, target, v1alpha1.EffectConfirmed, now.Address())
	}
}

// A hanging primary does not take part: the replica abandons the failover after 5 s, and no second one is started.
func TestFailoverInClusterIsAbandoned(t *testing.T) {
	redistest.Each(t, testFailoverInClusterIsAbandoned)
}

func testFailoverInClusterIsAbandoned(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{NodeTimeout: time.Minute})
	s := newFailoverStage(t, c.Servers())
	spec := failingOver(v1alpha1.FailoverAuto, "")
	primary := c.Shards[0][0]
	target := s.ready(spec, primary)
	s.servers.before = primary.Stop // not before it returned its run_id
	if done, err := s.injectOnce(spec, target); done || err != nil {
		t.Fatalf("done %t, %v", done, err)
	}
	s.expectEffect(spec, target, v1alpha1.EffectInconclusive, primary.Address())
	await.Until(t, "the replica gives up", func() error {
		said, err := os.ReadFile(filepath.Join(c.Shards[0][1].Dir, "out"))
		if err == nil && !strings.Contains(string(said), "Manual failover timed out") {
			err = errors.New("it has not")
		}
		return err
	})
	primary.Cont()
	s.ahead = clusterPatience // as if this time had passed
	await.Until(t, "the end", func() error {
		_, err := s.injectOnce(spec, target)
		if err == nil || !strings.Contains(err.Error(), "had no result") {
			return fmt.Errorf("not ended: %w", err)
		}
		return nil
	})
	if n := s.servers.sent("CLUSTER FAILOVER"); len(n) != 1 {
		t.Errorf("sent %q", n)
	}
	s.expectEffect(spec, target, v1alpha1.EffectNotObserved, "still the primary")
	s.expectRevert(spec, target)
	c.WaitHealthy()
}

func TestFailoverInClusterIsRefused(t *testing.T) { redistest.Each(t, testFailoverInClusterIsRefused) }

func testFailoverInClusterIsRefused(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, 0, redistest.ClusterOptions{})
	s := newFailoverStage(t, c.Servers())
	for wantText, spec := range map[string]*v1alpha1.RedisFaultSpec{
		"has no replica":              failingOver("", ""),
		"spec.action.failover.method": failingOver(v1alpha1.FailoverReplication, ""),
		"spec.action.failover.mode":   failingOver("", v1alpha1.FailoverCoordinated),
		"runs in mode cluster":        failingOver(v1alpha1.FailoverSentinel, ""),
		"none of method Cluster":      failingOver("", v1alpha1.FailoverCoordinated),
	} {
		_, err := s.prepare(spec, c.Shards[0][0])
		if p := faulttest.ProblemOf(t, err); !p.Lasting || !strings.Contains(p.Message, wantText) {
			t.Errorf("%+v, want %q", p, wantText)
		}
	}
}
