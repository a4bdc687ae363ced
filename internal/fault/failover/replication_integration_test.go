//go:build integration

package failover

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestFailoverInReplication(t *testing.T) { redistest.Each(t, testFailoverInReplication) }

func testFailoverInReplication(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewReplication(t, 3, ctl("+client|list +failover +replicaof"))
	s := newFailoverStage(t, fixture.Servers()).asCtl()
	for _, tc := range []struct {
		mode     v1alpha1.FailoverMode
		wantText string
	}{{"", "; coordinated: "}, {v1alpha1.FailoverForce, "coordinated only if"}} {
		t.Run(string(tc.mode), func(t *testing.T) {
			s.servers.log = nil
			spec := failingOver(v1alpha1.FailoverAuto, tc.mode)
			before := s.primaryOf(fixture.Servers())
			target := s.ready(spec, before)
			writer := writeTo(t, before)
			s.expectEffect(spec, target, v1alpha1.EffectNotObserved, before.Address())
			if begun, err := s.injector(spec).Begun(t.Context(), target); begun || err != nil {
				t.Errorf("begun before Inject: %t, %v", begun, err)
			}
			t.Logf("complete after %s", s.inject(spec, target))
			now := s.primaryOf(fixture.Servers())
			if now == before {
				t.Fatal("the old primary is the primary")
			}
			if lost, acknowledged := writer.lostAt(t, now); acknowledged == 0 || tc.mode == "" && lost > 0 {
				t.Errorf("%d of %d acknowledged writes are lost", lost, acknowledged)
			}
			fixture.WaitHealthy(now) // all, including those that were not selected
			s.expectEffect(spec, target, v1alpha1.EffectConfirmed, now.Address()+" is primary instead of "+before.Address(),
				tc.wantText)
			again := target.DeepCopy()
			again.InjectedAt = nil
			s.inject(spec, again)
			if n, others := s.servers.sent("FAILOVER"),
				s.servers.sent("REPLICAOF"); len(n) != 1 || !strings.HasSuffix(n[0], "TIMEOUT 20000") || len(others) != 2 {
				t.Errorf("sent %q", s.servers.log)
			}
			s.expectRevert(spec, target)
			if s.primaryOf(fixture.Servers()) != now {
				t.Error("failed back")
			}
		})
	}
}

// A replica that is never to be promoted is not, though it would be the first of two that are as advanced.
func TestFailoverPassesBarredReplicas(t *testing.T) {
	redistest.Each(t, testFailoverPassesBarredReplicas)
}

func testFailoverPassesBarredReplicas(t *testing.T) {
	t.Parallel()
	promotes := func(t *testing.T, s *failoverStage, servers []*redistest.Server, want *redistest.Server) {
		t.Helper()
		spec := failingOver(v1alpha1.FailoverAuto, "")
		target := s.ready(spec, s.primaryOf(servers))
		s.inject(spec, target)
		if now := s.primaryOf(servers); now != want {
			t.Errorf("%s is the primary, want %s", now.Address(), want.Address())
		}
	}
	first := func(a, b *redistest.Server) (*redistest.Server, *redistest.Server) {
		if b.Address() < a.Address() {
			return b, a
		}
		return a, b
	}
	t.Run("replication", func(t *testing.T) {
		t.Parallel()
		r := redistest.NewReplication(t, 2, redistest.Options{})
		barred, other := first(r.Replicas[0], r.Replicas[1])
		barred.Do("config", "set", "replica-priority", "0")
		promotes(t, newFailoverStage(t, r.Servers()), r.Servers(), other)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.NewCluster(t, 3, 1, redistest.ClusterOptions{})
		barred, other := first(c.AddReplica(1, c.Shards[1][0]), c.Shards[1][1])
		barred.Do("config", "set", "cluster-replica-no-failover", "yes")
		await.Until(t, "its primary knows that it is barred", func() error {
			if text := fmt.Sprint(c.Shards[1][0].Do("cluster", "nodes")); !strings.Contains(text, "nofailover") {
				return errors.New(text)
			}
			return nil
		})
		promotes(t, newFailoverStage(t, c.Servers()), c.Shards[1], other)
	})
}

func TestFailoverInReplicationAfterOperatorCrash(t *testing.T) {
	t.Parallel()
	fixture := redistest.SharedReplication(t, 3)
	s := newFailoverStage(t, fixture.Servers())
	for callsLeft := 1; ; callsLeft++ {
		for _, unsent := range []bool{true, false} {
			spec := failingOver(v1alpha1.FailoverReplication, "")
			before := s.primaryOf(fixture.Servers())
			replicas := slices.DeleteFunc(fixture.Servers(), func(s *redistest.Server) bool { return s == before })
			follow(replicas[0], replicas[1])
			waitListed(t, before, 2)
			target := s.ready(spec, before)
			follow(replicas[0], before) // as a server that has restarted
			doomed := &crashingServers{Servers: s.Real, callsLeft: callsLeft, unsent: unsent}
			s.servers = doomed
			s.inject(spec, target)
			t.Logf("crashed at %d, unsent: %t: %q", callsLeft, unsent, s.servers.log)
			now := s.primaryOf(fixture.Servers())
			if n := s.servers.sent("FAILOVER"); now == before || len(n) != 1 {
				t.Errorf("role %s, want %s: sent %q", now.Address(), before.Address(), n)
			}
			fixture.WaitHealthy(now)
			s.expectEffect(spec, target, v1alpha1.EffectConfirmed, now.Address())
			if doomed == s.servers {
				return
			}
		}
	}
}

// The replica hangs: Redis aborts the failover after TIMEOUT, and no second failover follows.
func TestFailoverToAHangingReplica(t *testing.T) { redistest.Each(t, testFailoverToAHangingReplica) }

func testFailoverToAHangingReplica(t *testing.T) {
	t.Parallel()
	fixture := redistest.SharedReplication(t, 1)
	s := newFailoverStage(t, fixture.Servers())
	spec := failingOver(v1alpha1.FailoverAuto, "")
	spec.Action.Failover.Timeout.Duration = 2 * time.Second
	target := s.ready(spec, fixture.Primary)
	fixture.Replicas[0].Stop()
	defer fixture.Replicas[0].Cont()
	fixture.Primary.Do("set", "ahead", "of the replica")
	if done, err := s.injectOnce(spec, target); done || err != nil {
		t.Fatalf("done %t, %v", done, err)
	}
	s.expectEffect(spec, target, v1alpha1.EffectInconclusive, "waiting-for-sync")
	if begun, err := s.injector(spec).Begun(t.Context(), target); !begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	await.Until(t, "the end", func() error {
		_, err := s.injectOnce(spec, target)
		if err == nil || !strings.Contains(err.Error(), "had no result") {
			return fmt.Errorf("not ended: %w", err)
		}
		return nil
	})
	if n := s.servers.sent("FAILOVER"); len(n) != 1 {
		t.Errorf("sent %q", n)
	}
	s.expectEffect(spec, target, v1alpha1.EffectNotObserved, "still the primary")
	s.expectRevert(spec, target)
	fixture.Primary.Do("set", "k", "v")
}

// Revert aborts a failover in progress: writes continue.
func TestFailoverInReplicationIsReverted(t *testing.T) {
	redistest.Each(t, testFailoverInReplicationIsReverted)
}

func testFailoverInReplicationIsReverted(t *testing.T) {
	t.Parallel()
	fixture := redistest.SharedReplication(t, 1)
	s := newFailoverStage(t, fixture.Servers())
	spec := failingOver(v1alpha1.FailoverAuto, "")
	spec.Action.Failover.Timeout.Duration = time.Minute
	target := s.ready(spec, fixture.Primary)
	s.expectRevert(spec, target) // of a fault that was never begun
	fixture.Replicas[0].Stop()
	defer fixture.Replicas[0].Cont()
	fixture.Primary.Do("set", "ahead", "of the replica")
	if done, err := s.injectOnce(spec, target); done || err != nil {
		t.Fatalf("done %t, %v", done, err)
	}
	if hand := s.injector(spec).ManualRevertCommand(target); !strings.HasSuffix(hand, "FAILOVER ABORT") {
		t.Errorf("manual command: %q", hand)
	}
	s.expectRevert(spec, target)
	fixture.Primary.Do("set", "k", "v")
	if role := fixture.Primary.Info("role"); role != "master" {
		t.Errorf("role %s", role)
	}
}

// A server that replaced the target is not failed over.
func TestFailoverOfAnotherProcess(t *testing.T) { redistest.Each(t, testFailoverOfAnotherProcess) }

func testFailoverOfAnotherProcess(t *testing.T) {
	t.Parallel()
	fixture := redistest.SharedReplication(t, 1)
	s := newFailoverStage(t, fixture.Servers())
	spec := failingOver(v1alpha1.FailoverAuto, "")
	target := s.ready(spec, fixture.Primary)
	fixture.Primary.Restart()
	await.Until(t, "the replica is back", func() error {
		if fixture.Replicas[0].Info("master_link_status") != "up" {
			return errors.New("it is not")
		}
		return nil
	})
	if done, err := s.injectOnce(spec, target); !done || err != nil {
		t.Errorf("done %t, %v", done, err)
	}
	s.expectRevert(spec, target)
	if len(s.servers.log) > 0 {
		t.Errorf("sent %q", s.servers.log)
	}
	s.expectEffect(spec, target, v1alpha1.EffectNotObserved, "still the primary")
}

func TestFailoverWithoutReplica(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := newFailoverStage(t, []*redistest.Server{server})
	_, err := s.prepare(failingOver("", ""), server)
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported ||
		!strings.Contains(p.Message, "has no replica") {
		t.Errorf("%+v", p)
	}
}

// The message for a user without permission names the ACL rule, before any injection.
func TestFailoverWithoutRights(t *testing.T) { redistest.Each(t, testFailoverWithoutRights) }

func testFailoverWithoutRights(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewReplication(t, 1, ctl("+client|list"))
	s := newFailoverStage(t, fixture.Servers()).asCtl()
	_, err := s.prepare(failingOver("", ""), fixture.Primary)
	if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonNotSupported ||
		!strings.Contains(p.Message, "+failover") {
		t.Errorf("%+v", p)
	}
}
