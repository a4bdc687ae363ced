package scale

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// foreignScalable is a cluster whose CLUSTER NODES names a node of another namespace, or a replica of such a primary.
func foreignScalable(t *testing.T, nodes, primary string) *scalable {
	t.Helper()
	s := newScalable(t, nil)
	s.Servers.Change("10.0.0.1:6379", func(is *memredis.State) {
		if is.Primary = primary; nodes != "" {
			is.Mode = "cluster"
		}
	})
	s.Servers.Script("CLUSTER", faulttest.Reply(nodes))
	return s
}

// The operator makes all nodes meet, replicate and forget one another, and REPLICAOF goes to what a primary is: never
// to a server of another namespace.
func TestReplicaScaleObeysNoForeignAddress(t *testing.T) {
	for name, tc := range map[string]struct{ nodes, primary, says string }{
		"MEET and FORGET at a node": {
			nodes: "a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-16383\nv 10.9.8.7:6379@16379 master - 0 0 2 connected\n",
			says:  "redis-0 names 10.9.8.7:6379 as a node of its cluster, which is no pod of namespace shop",
		},
		"the owner of a slot": {
			nodes: "a 10.0.0.1:6379@16379 myself,slave v 0 0 1 connected\nv 10.96.0.1:443@16379 master - 0 0 2 connected 0-16383\n",
			says:  "redis-0 names 10.96.0.1:443 as",
		},
		"the primary of a replica": {
			primary: "10.9.8.7:6379",
			says:    "redis-0 names 10.9.8.7:6379 as its primary",
		},
	} {
		for _, by := range []int32{1, -1} {
			t.Run(fmt.Sprintf("%s by %d", name, by), func(t *testing.T) {
				s := foreignScalable(t, tc.nodes, tc.primary)
				target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379"}
				p := faulttest.ProblemOf(t, s.injector(by).Preflight(t.Context(), target))
				if p.Reason != v1alpha1.ReasonForeignAddress || !strings.Contains(p.Message, tc.says) {
					t.Errorf("%+v, want %q", p, tc.says)
				}
				if reached := s.Servers.Strangers(); len(reached) > 0 {
					t.Errorf("a victim was reached: %q", reached)
				}
			})
		}
	}
}

// A cluster that names foreign nodes only once the fault is recorded gets no further either.
func TestReplicaScaleOfAClusterThatTurnsHostile(t *testing.T) {
	nodes := "c 10.0.0.3:6379@16379 myself,master - 0 0 1 connected\nv 10.9.8.7:6379@16379 master - 0 0 2 connected 0-16383\n"
	for _, by := range []int32{1, -1} {
		s := foreignScalable(t, nodes, "")
		s.scaleTo(2 + by)
		if by > 0 {
			s.Pod("redis-2", "u2", "10.0.0.3", topology.Primary, nil)
		}
		target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379"}
		members := map[string]member{"redis-1": {Address: "10.0.0.2:6379", Nodes: []string{"b"}, Slot: new(0)}}
		faulttest.Save(t, target, scaleRecord{
			StatefulSet: "redis",
			UID:         "s",
			Replicas:    2,
			Slot:        new(0),
			Primary:     "10.9.8.7:6379",
			Members:     members,
		})
		_, _ = s.injector(by).Inject(t.Context(), target)
		_, _ = s.injector(by).Effect(t.Context(), target)
		_, _ = s.injector(by).Revert(t.Context(), target)
		if reached := s.Servers.Strangers(); len(reached) > 0 {
			t.Errorf("by %d: a victim was reached: %q", by, reached)
		}
	}
}
