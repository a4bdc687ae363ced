package fault

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestRolesAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		role              v1alpha1.RedisRole
		own, other        topology.Role // "" = does not answer
		link              memredis.Link // of own, of a replica
		otherLink         memredis.Link // of other, of a replica
		wantText, message string        // "" = nothing is reported
	}{
		"the same again": {
			role:     v1alpha1.RolePrimary,
			own:      topology.Primary,
			other:    topology.Replica,
			wantText: EventNoFailover,
			message:  "redis-0 is the primary again",
		},
		// a replica in a cluster whose primary came back at another address may go on asking for the former one
		"the same again, alone": {
			role:      v1alpha1.RolePrimary,
			own:       topology.Primary,
			other:     topology.Replica,
			otherLink: memredis.LinkLost,
			wantText:  EventNoFailover,
			message:   "redis-0 is the primary again, with 1 replicas, of which redis-1 is not connected to its primary",
		},
		"another": {
			role:     v1alpha1.RolePrimary,
			own:      topology.Replica,
			other:    topology.Primary,
			wantText: EventFailedOver,
			message:  "redis-1 is the primary now, redis-0 its replica",
		},
		"another, whose data it copies": {
			role:     v1alpha1.RolePrimary,
			own:      topology.Replica,
			other:    topology.Primary,
			link:     memredis.LinkSyncing,
			wantText: EventFailedOver,
			message:  "redis-1 is the primary now, redis-0 its replica",
		},
		// started as a replica of nobody, until an operator tells it whose
		"another, which it does not follow": {
			role:     v1alpha1.RolePrimary,
			own:      topology.Replica,
			other:    topology.Primary,
			link:     memredis.LinkLost,
			wantText: EventFailedOver,
			message:  "redis-1 is the primary now, redis-0 a replica that is not connected to its primary",
		},
		"it is still away": {
			role:     v1alpha1.RolePrimary,
			other:    topology.Primary,
			wantText: EventFailedOver,
			message:  "redis-1 is the primary now",
		},
		"no primary yet":     {role: v1alpha1.RolePrimary, other: topology.Replica},
		"two for themselves": {role: v1alpha1.RolePrimary, own: topology.Primary, other: topology.Primary},
		"a replica":          {role: v1alpha1.RoleReplica, own: topology.Replica, other: topology.Primary},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.Pod("redis-0", "u0", "10.0.0.1", tc.own, nil)
			w.Pod("redis-1", "u1", "10.0.0.2", tc.other, nil)
			if tc.other == topology.Replica {
				w.Servers.Change("10.0.0.2:6379", func(s *memredis.State) { s.Link = tc.otherLink })
			}
			if tc.own == topology.Replica {
				w.Servers.Change("10.0.0.1:6379", func(s *memredis.State) { s.Link = tc.link })
			}
			hit := []v1alpha1.FaultTarget{
				{Pod: "redis-0", UID: "u0", Role: tc.role, InjectedAt: &metav1.MicroTime{Time: time.Now()}},
			}
			after := RolesAfter(t.Context(), faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
				hit)
			seen := after.Seen
			if after.Open != "" {
				t.Errorf("not decided: %s", after.Open)
			}
			if tc.wantText == "" {
				if len(seen) > 0 {
					t.Errorf("got %+v, want nothing", seen)
				}
				return
			}
			if len(seen) != 1 || seen[0].Event != tc.wantText || seen[0].Object != "redis-0" ||
				!strings.Contains(seen[0].Message, tc.message) {
				t.Errorf("got %+v, want %s: %s", seen, tc.wantText, tc.message)
			}
		})
	}
}
