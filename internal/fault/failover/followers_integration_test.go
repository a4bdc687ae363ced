//go:build integration

package failover

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A replica that the primary does not list while the failover is planned follows the new primary afterwards, not a
// replica.
func TestFailoverBesideADetachedReplica(t *testing.T) {
	redistest.Each(t, testFailoverBesideADetachedReplica)
}

func testFailoverBesideADetachedReplica(t *testing.T) {
	t.Parallel()
	none := func(*redistest.Replication, *redistest.Server) {}
	kill := func(_ *redistest.Replication, late *redistest.Server) { late.Kill() }
	restart := func(_ *redistest.Replication, late *redistest.Server) { late.Restart() }
	lockOut := func(of *redistest.Replication, late *redistest.Server) {
		late.Do("replicaof", "no", "one")
		late.Do("config", "set", "masterauth", "no-such-password")
		follow(late, of.Primary)
	}
	letIn := func(_ *redistest.Replication, late *redistest.Server) { late.Do("config", "set", "masterauth", "") }
	leave := func(of *redistest.Replication, late *redistest.Server) { follow(late, of.Replicas[1]) }
	come := func(of *redistest.Replication, late *redistest.Server) { follow(late, of.Primary) }
	for name, tc := range map[string]struct {
		before, planned, begun, after func(of *redistest.Replication, late *redistest.Server)
	}{
		"it restarts":         {kill, none, restart, none},
		"it cannot log in":    {lockOut, none, none, letIn},
		"it comes afterwards": {leave, come, none, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := redistest.NewReplication(t, 3, redistest.Options{})
			s, late := newFailoverStage(t, fixture.Servers()), fixture.Replicas[2]
			tc.before(fixture, late)
			waitListed(t, fixture.Primary, 2)
			spec := failingOver("", "")
			target := s.ready(spec, fixture.Primary)
			tc.planned(fixture, late)
			if done, err := s.injectOnce(spec, target); done || err != nil {
				t.Fatalf("done %t, %v", done, err)
			}
			tc.begun(fixture, late)
			s.inject(spec, target)
			now := s.primaryOf(fixture.Servers())
			if follows := late.Info("master_port"); follows != strconv.Itoa(now.Port) {
				t.Errorf("it follows port %s, want that of the new primary, %d; the old one is %d", follows, now.Port,
					fixture.Primary.Port)
			}
			tc.after(fixture, late)
			fixture.WaitHealthy(now)
			s.expectRevert(spec, target)
		})
	}
}

// follow makes a server a replica of another one.
func follow(s, of *redistest.Server) { s.Do("replicaof", "127.0.0.1", strconv.Itoa(of.Port)) }

// waitListed waits until a primary lists so many replicas as online.
func waitListed(t *testing.T, primary *redistest.Server, replicas int) {
	t.Helper()
	await.Until(t, "the primary lists its replicas", func() error {
		if n := primary.Info("connected_slaves"); n != strconv.Itoa(replicas) {
			return fmt.Errorf("it lists %s", n)
		}
		return nil
	})
}

// What follows another server by somebody's will is not changed, attached to the primary before or not.
func TestFailoverBesideAReplicaOfAReplica(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewReplication(t, 3, redistest.Options{})
	s, chained := newFailoverStage(t, fixture.Servers()), fixture.Replicas[2]
	other := strconv.Itoa(fixture.Replicas[1].Port)
	follow(chained, fixture.Replicas[1])
	waitListed(t, fixture.Primary, 2)
	spec := failingOver("", "")
	target := s.ready(spec, fixture.Primary)
	s.inject(spec, target)
	if follows := chained.Info("master_port"); follows != other {
		t.Errorf("it follows port %s, want %s as before", follows, other)
	}
}

// A failover that has happened is completed by its revert, too.
func TestRevertPointsADetachedReplica(t *testing.T) {
	t.Parallel()
	fixture := redistest.NewReplication(t, 2, redistest.Options{})
	s, late := newFailoverStage(t, fixture.Servers()), fixture.Replicas[1]
	late.Kill()
	waitListed(t, fixture.Primary, 1)
	spec := failingOver("", "")
	target := s.ready(spec, fixture.Primary)
	s.promote(spec, target, fixture.Replicas[0])
	late.Restart()
	s.expectRevert(spec, target)
	fixture.WaitHealthy(fixture.Replicas[0])
}

// promote begins a failover that is not complete when the new primary has its role.
func (s *failoverStage) promote(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget, to *redistest.Server) {
	s.T.Helper()
	await.Until(s.T, "the promotion", func() error {
		if done, err := s.injectOnce(spec, target); done || err != nil {
			s.T.Fatalf("done %t, %v", done, err)
		}
		if role := to.Info("role"); role != "master" {
			return fmt.Errorf("role %s", role)
		}
		return nil
	})
}

// A server that does not answer, and a pod that starts, are waited for, but not for ever: they may come up as replicas
// of the old primary.
func TestFailoverWaitsForServersThatStart(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(s *failoverStage, late *redistest.Server) (show func()){
		"no answer": func(_ *failoverStage, late *redistest.Server) func() { return late.Restart },
		"pending": func(s *failoverStage, late *redistest.Server) func() {
			pod := s.PodNamed(s.pods[late.Address()])
			s.Update(pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodPending, "" })
			return func() {
				late.Restart()
				s.Update(pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "127.0.0.1" })
			}
		},
	} {
		for _, comes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, comes: %t", name, comes), func(t *testing.T) {
				t.Parallel()
				fixture := redistest.NewReplication(t, 2, redistest.Options{})
				s, late := newFailoverStage(t, fixture.Servers()), fixture.Replicas[1]
				late.Kill()
				show := hide(s, late)
				waitListed(t, fixture.Primary, 1)
				spec := failingOver("", "")
				target := s.ready(spec, fixture.Primary)
				s.promote(spec, target, fixture.Replicas[0])
				if done, err := s.injectOnce(spec, target); done || err != nil {
					t.Fatalf("complete without %s: done %t, %v", late.Address(), done, err)
				}
				if comes {
					show()
					s.inject(spec, target)
					fixture.WaitHealthy(fixture.Replicas[0])
					return
				}
				s.ahead = spec.Action.Failover.Timeout.Duration + replicationGrace + time.Second
				if done, err := s.injectOnce(spec, target); !done || err != nil {
					t.Errorf("it waits longer than it should: done %t, %v", done, err)
				}
			})
		}
	}
}
