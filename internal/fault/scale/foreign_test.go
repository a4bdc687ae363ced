package scale

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// foreignScalable is a cluster whose CLUSTER NODES names a node of another namespace; what is sent to it is recorded.
func foreignScalable(t *testing.T, nodes, info string) (s *scalable, reached *[]string) {
	t.Helper()
	s, reached = newScalable(t, nil), new([]string)
	s.Servers.Change("10.0.0.1:6379", func(r *topology.Server) { r.Mode = "cluster" })
	s.Servers.Answer = func(address string, command ...any) (any, error) {
		if !strings.HasPrefix(address, "10.0.0.") {
			*reached = append(*reached, fmt.Sprint(command...)+" at "+address)
		}
		switch fmt.Sprint(command[0]) {
		case "INFO":
			return info, nil
		case "CLUSTER":
			return nodes, nil
		}
		return "OK", nil
	}
	return s, reached
}

// The operator makes all nodes meet, replicate and forget one another, and REPLICAOF goes to what a primary is: never
// to a server of another namespace.
func TestReplicaScaleObeysNoForeignAddress(t *testing.T) {
	const cluster = "redis_mode:cluster\r\nrole:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0\r\n"
	for name, tc := range map[string]struct{ nodes, info, says string }{
		"MEET and FORGET at a node": {
			nodes: "a 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-16383\nv 10.9.8.7:6379@16379 master - 0 0 2 connected\n",
			info:  cluster,
			says:  "redis-0 names 10.9.8.7:6379 as a node of its cluster, which is no pod of namespace shop",
		},
		"the owner of a slot": {
			nodes: "a 10.0.0.1:6379@16379 myself,slave v 0 0 1 connected\nv 10.96.0.1:443@16379 master - 0 0 2 connected 0-16383\n",
			info:  cluster,
			says:  "redis-0 names 10.96.0.1:443 as",
		},
		"the primary of a replica": {
			info: "role:slave\r\nmaster_host:10.9.8.7\r\nmaster_port:6379\r\nmaster_link_status:up\r\n",
			says: "redis-0 names 10.9.8.7:6379 as its primary",
		},
	} {
		for _, by := range []int32{1, -1} {
			t.Run(fmt.Sprintf("%s by %d", name, by), func(t *testing.T) {
				s, reached := foreignScalable(t, tc.nodes, tc.info)
				target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379"}
				p := faulttest.ProblemOf(t, s.injector(by).Preflight(t.Context(), target))
				if p.Reason != v1alpha1.ReasonForeignAddress || !strings.Contains(p.Message, tc.says) {
					t.Errorf("%+v, want %q", p, tc.says)
				}
				if len(*reached) > 0 {
					t.Errorf("a victim was sent %q", *reached)
				}
			})
		}
	}
}

// A cluster that names foreign nodes only once the fault is recorded gets no further either.
func TestReplicaScaleOfAClusterThatTurnsHostile(t *testing.T) {
	nodes := "c 10.0.0.3:6379@16379 myself,master - 0 0 1 connected\nv 10.9.8.7:6379@16379 master - 0 0 2 connected 0-16383\n"
	for _, by := range []int32{1, -1} {
		s, reached := foreignScalable(t, nodes,
			"redis_mode:cluster\r\nrole:master\r\nmaster_host:10.9.8.7\r\nmaster_port:6379\r\n")
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
		if len(*reached) > 0 {
			t.Errorf("by %d: a victim was sent %q", by, *reached)
		}
	}
}
