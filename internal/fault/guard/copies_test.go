package guard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// on is the target of a test: the pods with the label app=redis.
func on(w *faulttest.World) target.Redis {
	return faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis
}

// killing is a kill of the primary, also in a small cluster.
func killing() *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
		Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowMajorityOfPrimaries},
	}
}

// A copy counts as spared only if it can take over: it runs, has loaded its data, and follows its primary, which lists
// it as online.
func TestLastCopyInSync(t *testing.T) {
	const primary, replica = "10.0.0.1:6379", "10.0.0.2:6379"
	following := func(change func(*memredis.State)) func(*faulttest.World) {
		return func(w *faulttest.World) {
			w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
			w.Servers.Change(replica, change)
		}
	}
	listing := func(listed ...memredis.Replica) func(*faulttest.World) {
		return func(w *faulttest.World) {
			w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
			w.Servers.Change(primary, faulttest.Lists(listed...))
		}
	}
	set := func(replicas int32) func(*faulttest.World) {
		return func(w *faulttest.World) {
			faulttest.Must(t,
				w.Cluster.Create(t.Context(), &appsv1.StatefulSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"},
					Spec:       appsv1.StatefulSetSpec{Replicas: &replicas},
				}))
		}
	}
	for name, tc := range map[string]struct {
		beside  func(*faulttest.World) // what there is beside the primary
		refused string                 // "" = it is allowed
	}{
		"alone":                    {func(*faulttest.World) {}, ""},
		"alone in its StatefulSet": {set(1), ""},
		"a replica in sync":        {following(func(*memredis.State) {}), ""},
		"a replica that is Pending": {func(w *faulttest.World) {
			w.Pod("redis-1", "u1", "", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
		}, "redis-1 is Pending"},
		"a replica that is terminating": {terminating, "redis-1 is terminating"},
		"a replica that is kept down":   {set(2), "redis-1 does not exist"},
		"an evicted pod of a Deployment": {func(w *faulttest.World) {
			w.Pod("redis-x", "ux", "", "", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		}, ""},
		"a replica that loads": {
			following(func(s *memredis.State) { s.Loading = true }),
			"redis-1 loads its data",
		},
		"a replica in a full sync": {
			following(func(s *memredis.State) { s.Link = memredis.LinkSyncing }),
			"redis-1 copies the whole data set",
		},
		"a replica whose link is down": {
			following(func(s *memredis.State) { s.Link = memredis.LinkLost }),
			"redis-1 is not connected to its primary",
		},
		"a replica that is not listed": {listing(), "redis-1 is not listed as online by its primary"},
		"a replica that still receives": {
			listing(memredis.Replica{Address: replica, State: "send_bulk"}),
			"redis-1 is not listed as online by its primary",
		},
		"a replica that does not acknowledge": {
			listing(memredis.Replica{Address: replica, Lag: 11}),
			"redis-1 is not listed as online by its primary",
		},
		"a replica listed by another address": {listing(memredis.Replica{Address: "198.51.100.7:30001"}), ""},
		"a replica outside the selected pods": {elsewhere(memredis.Replica{Address: "10.0.9.9:6379"}), ""},
		"such a replica in a full sync": {
			elsewhere(memredis.Replica{Address: "10.0.9.9:6379", State: "wait_bgsave"}),
			"10.0.9.9:6379 is not online",
		},
		"a silent replica by another address": {func(w *faulttest.World) {
			w.Pod("redis-1", "u1", "10.0.0.2", "", nil)
			elsewhere(memredis.Replica{Address: "198.51.100.7:30001"})(w)
		}, "redis-1 does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
			tc.beside(w)
			_, err := Choose(t.Context(), on(w), killing(), contract.Traits{Silences: true})
			refusedFor(t, err, tc.refused)
		})
	}
}

// refusedFor fails the test unless the guard of the copies refused for a reason; "" = it did not refuse.
func refusedFor(t *testing.T, err error, why string) {
	t.Helper()
	if why == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	p := faulttest.ProblemOf(t, err)
	_, occupied := errors.AsType[*Occupied](err)
	for _, text := range []string{"it would hit the last copy in sync of ", why, "spec.allow: [AllCopies]"} {
		if p.Reason != v1alpha1.ReasonBlastRadius || p.Lasting == occupied || !strings.Contains(p.Message, text) {
			t.Errorf("%s: %q, want one that contains %q", p.Reason, p.Message, text)
		}
	}
}

func terminating(w *faulttest.World) {
	now := metav1.Now()
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, func(p *corev1.Pod) {
		p.Finalizers = []string{"test/keep"}
		p.DeletionTimestamp = &now
	})
}

func elsewhere(listed memredis.Replica) func(*faulttest.World) {
	return func(w *faulttest.World) {
		w.Servers.Change("10.0.0.1:6379", faulttest.Lists(listed))
	}
}

// announced is a cluster of two shards whose nodes announce an address of the host, as with NodePorts: a primary and a
// replica each.
const announced = `aaaa 203.0.113.5:30000@31000,host.example myself,master - 0 1 1 connected 0-8191
bbbb 203.0.113.5:30001@31001,host.example slave aaaa 0 1 1 connected
cccc 203.0.113.5:30002@31002,host.example master - 0 1 2 connected 8192-16383
dddd 203.0.113.5:30003@31003,host.example slave cccc 0 1 2 connected
`

// announcing makes the pods of such a cluster: redis-0 is node aaaa, and so on.
func announcing(t *testing.T, text string) *faulttest.World {
	w := faulttest.NewWorld(t)
	for i, role := range []topology.Role{topology.Primary, topology.Replica, topology.Primary, topology.Replica} {
		pod := w.Pod(fmt.Sprintf("redis-%d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
		w.Servers.Change(faulttest.AddressOf(pod), func(s *memredis.State) { s.Mode = "cluster" })
		w.Servers.At(faulttest.AddressOf(pod)).Script("CLUSTER MYID", faulttest.Reply(strings.Repeat(string(rune('a'+i)), 4)))
	}
	w.Servers.Script("CLUSTER NODES", faulttest.Reply(text))
	return w
}

func TestShardsOfAnnouncedAddresses(t *testing.T) {
	all := func(shard int32) *v1alpha1.RedisFaultSpec {
		return &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: &shard, Mode: v1alpha1.SelectAll}}
	}
	for shard, want := range map[int32]string{0: "redis-0 redis-1", 1: "redis-2 redis-3"} {
		found, err := Choose(t.Context(), on(announcing(t, announced)), all(shard), contract.Traits{})
		if err != nil || podsOf(found) != want {
			t.Errorf("shard %d: %s, %v; want %s", shard, podsOf(found), err, want)
		}
	}
	two := &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(2))}}
	_, err := Choose(t.Context(), on(announcing(t, announced)), two, contract.Traits{Silences: true})
	refusedFor(t, err, "shard 0 (redis-0, redis-1)")
	_, err = Choose(t.Context(), on(announcing(t, announced)), killing(), contract.Traits{Silences: true})
	refusedFor(t, err, "")
}

// The cluster itself tells of copies without a pod: nodes that failed or lost their address.
func TestCopiesThatOnlyTheClusterLists(t *testing.T) {
	for name, tc := range map[string]struct{ text, refused string }{
		"failed": {
			strings.Replace(announced, "slave aaaa", "slave,fail aaaa", 1),
			"node bbbb is in no pod of the target that answers (slave,fail)",
		},
		"no address": {
			strings.Replace(announced, "203.0.113.5:30001@31001,host.example slave aaaa", ":0@0 slave,noaddr,fail aaaa", 1),
			"node bbbb is in no pod of the target that answers (slave,noaddr,fail)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := announcing(t, tc.text)
			faulttest.Must(t,
				w.Cluster.Delete(t.Context(), &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis-1"},
				}))
			w.Servers.Change("10.0.0.1:6379", faulttest.Lists())
			_, err := Choose(t.Context(), on(w), killing(), contract.Traits{Silences: true})
			refusedFor(t, err, tc.refused)
		})
	}
}

// A node that lost its configuration knows only itself: the shards are those of the view with the most slots.
func TestShardsDespiteALonelyNode(t *testing.T) {
	w := announcing(t, announced)
	w.Servers.At("10.0.0.1:6379").Script("CLUSTER NODES",
		faulttest.Reply("eeee :6379@16379 myself,master - 0 0 0 connected\n"))
	found, err := Choose(t.Context(), on(w),
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Shard: new(int32(1)), Mode: v1alpha1.SelectAll}},
		contract.Traits{})
	if err != nil || podsOf(found) != "redis-2 redis-3" {
		t.Errorf("%s, %v", podsOf(found), err)
	}
}

func podsOf(found []v1alpha1.FaultTarget) string {
	var pods []string
	for i := range found {
		pods = append(pods, found[i].Pod)
	}
	return strings.Join(pods, " ")
}
