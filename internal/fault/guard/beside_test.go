package guard

import (
	"errors"
	"slices"
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

const masterAt, replicasAt = "10.0.0.1:6379", "10.0.0.2:6379"

// apart is a primary and replicas in StatefulSets and Services of their own.
func apart(t *testing.T, replicas ...string) *faulttest.World {
	w := faulttest.NewWorld(t)
	of := func(set string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": set}
			p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = set, "uid-of-"+p.OwnerReferences[0].UID
		}
	}
	w.Pod("master-0", "m0", "10.0.0.1", topology.Primary, of("master"))
	for i, name := range replicas {
		w.Pod(name, "u-"+name, []string{"10.0.0.2", "10.0.0.3"}[i], topology.Replica, of("replicas"))
	}
	return w
}

func of(w *faulttest.World, app string) target.Redis {
	return faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": app})).Redis
}

// The copies of the data are counted wherever their pods are: what a primary lists, and what a replica names as its
// primary.
func TestCopiesBesideTheTarget(t *testing.T) {
	gone := func(w *faulttest.World) {
		faulttest.Must(w.T,
			w.Cluster.Delete(w.T.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "replicas-0"},
			}))
		w.Servers.Kill(replicasAt)
		w.Servers.Change(masterAt, faulttest.Lists())
	}
	silent := func(w *faulttest.World) { w.Servers.Kill(replicasAt) }
	rejecting := func(w *faulttest.World) {
		w.Servers.At(replicasAt).Answer("INFO", "-NOAUTH Authentication required.")
	}
	pairOf := []Hit{{Pod: "replicas-0", Address: replicasAt, Fault: "keep", Copies: []string{"master-0"}}}
	over := []Hit{{Pod: "replicas-0", Address: replicasAt, Fault: "keep", Copies: []string{"master-0"}, Over: true}}
	beside := []Hit{{Pod: "replicas-0", Address: replicasAt, Fault: "keep", Copies: []string{"master-0"}, Beside: true}}
	for name, tc := range map[string]struct {
		replicas []string
		on       string // which StatefulSet is hit
		change   func(*faulttest.World)
		others   []Hit
		refused  string // "" = it is allowed
		by       []string
		lasting  bool // nothing is waited for
	}{
		"the primary":         {replicas: []string{"replicas-0"}, on: "master"},
		"the only replica":    {replicas: []string{"replicas-0"}, on: "replicas"},
		"one of two replicas": {replicas: []string{"replicas-0", "replicas-1"}, on: "replicas"},
		"the primary of a silent replica": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   silentButListed(silent),
			refused:  "replicas-0 does not answer",
		},
		"the primary of a replica with another password": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   rejecting,
		},
		"the primary, another fault mutes the replica": {
			replicas: []string{"replicas-0"},
			on:       "master",
			others:   pairOf,
			refused:  "RedisFault keep holds replicas-0",
			by:       []string{"keep"},
		},
		"the primary, another fault has muted it": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   silentButListed(silent),
			others:   pairOf,
			refused:  "RedisFault keep holds replicas-0",
			by:       []string{"keep"},
		},
		"the primary, another fault has ended it": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   gone,
			others:   pairOf,
			refused:  "RedisFault keep holds replicas-0",
			by:       []string{"keep"},
		},
		"the primary, it has not come back": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   gone,
			others:   over,
			refused:  "replicas-0, which RedisFault keep has hit, is not in sync again",
		},
		"the primary, it has come back": {replicas: []string{"replicas-0"}, on: "master", others: over},
		"the primary, of two one has not come back": {
			replicas: []string{"replicas-0", "replicas-1"},
			on:       "master",
			change:   func(w *faulttest.World) { gone(w); listed(w, "10.0.0.3:6379") },
			others:   pairOf,
		},
		"the primary, beside a fault that mutes the replica": {
			replicas: []string{"replicas-0"},
			on:       "master",
			others:   beside,
			refused:  "RedisFault keep holds replicas-0",
			lasting:  true,
		},
		"the primary, beside a fault that has ended it": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   gone,
			others:   beside,
			refused:  "RedisFault keep holds replicas-0",
			lasting:  true,
		},
		"the primary, beside a fault that mutes one of two": {
			replicas: []string{"replicas-0", "replicas-1"}, on: "master", others: beside,
		},
		"the primary, beside a fault on one of two, and another one holds the other": {
			replicas: []string{"replicas-0", "replicas-1"},
			on:       "master",
			others:   append(slices.Clone(beside), Hit{Pod: "replicas-1", Fault: "third"}),
			refused:  "RedisFault third holds replicas-1",
			by:       []string{"third"},
		},
		"the primary, beside a fault that mutes it": {
			replicas: []string{"replicas-0"},
			on:       "master",
			change:   func(w *faulttest.World) { w.Servers.Kill(masterAt) },
			others: []Hit{{
				Pod: "master-0", UID: "m0", Address: masterAt, Fault: "keep", Beside: true, Role: v1alpha1.RolePrimary,
			}},
		},
		"the replica, another fault holds the primary": {
			replicas: []string{"replicas-0"},
			on:       "replicas",
			others:   []Hit{{Pod: "master-0", Fault: "keep"}},
			refused:  "RedisFault keep holds master-0",
			by:       []string{"keep"},
		},
		"the primary, another fault hits something else": {
			replicas: []string{"replicas-0"},
			on:       "master",
			others:   []Hit{{Pod: "cache-0", Fault: "keep", Copies: []string{"cache-1"}}},
		},
		"the primary, a copy of a copy has not come back": {
			replicas: nil,
			on:       "master",
			others: []Hit{
				{Pod: "a", Fault: "keep", Copies: []string{"b"}},
				{Pod: "b", Fault: "keep", Copies: []string{"master-0"}},
			},
			refused: "RedisFault keep holds a",
			by:      []string{"keep"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := apart(t, tc.replicas...)
			if tc.change != nil {
				tc.change(w)
			}
			spec := &v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RoleAny}}
			_, err := Select(t.Context(), of(w, tc.on), spec, contract.Traits{Silences: true, EndsServer: true}, nil, tc.others)
			refusedFor(t, err, tc.refused)
			occupied, is := errors.AsType[*Occupied](err)
			if is != (tc.refused != "" && tc.others != nil && !tc.lasting) || is && !slices.Equal(occupied.By, tc.by) {
				t.Errorf("%v: occupied %v, want by %v", err, is, tc.by)
			}
		})
	}
}

func silentButListed(silent func(*faulttest.World)) func(*faulttest.World) {
	return func(w *faulttest.World) { silent(w); listed(w, replicasAt) }
}

func listed(w *faulttest.World, address string) {
	w.Servers.Change(masterAt, faulttest.Lists(memredis.Replica{Address: address}))
}

// What the guards have learned is in the record: later it tells which copies are missed.
func TestCopiesAreRecorded(t *testing.T) {
	w := apart(t, "replicas-0", "replicas-1")
	found, err := Choose(t.Context(), of(w, "replicas"),
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica}}, contract.Traits{Silences: true})
	if err != nil || len(found) != 1 || !slices.Equal(found[0].Copies, []string{"master-0", "replicas-1"}) {
		t.Errorf("%+v, %v", found, err)
	}
}

// A pod of the same StatefulSet that the target does not select exists, and is a copy.
func TestCopiesInUnselectedPods(t *testing.T) {
	for name, tc := range map[string]struct {
		there   bool
		refused string
	}{
		"it runs":       {true, ""},
		"it is missing": {false, "redis-1 does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			faulttest.Must(t,
				w.Cluster.Create(t.Context(), &appsv1.StatefulSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"},
					Spec: appsv1.StatefulSetSpec{
						Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": "redis"}},
					},
				}))
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
				p.Labels = map[string]string{
					"app": "first",
					"set": "redis",
				}
			})
			if tc.there {
				w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, func(p *corev1.Pod) {
					p.Labels = map[string]string{
						"set": "redis",
					}
				})
			}
			_, err := Choose(t.Context(), of(w, "first"), killing(), contract.Traits{Silences: true})
			refusedFor(t, err, tc.refused)
		})
	}
}

// The nodes of a cluster in pods that the target does not select are found by their addresses.
func TestShardBesideTheTarget(t *testing.T) {
	shard := func(t *testing.T) *faulttest.World {
		w := announcing(t,
			strings.NewReplacer("203.0.113.5:30000", "10.0.0.1:6379", "203.0.113.5:30001", "10.0.0.2:6379", "203.0.113.5:30002",
				"10.0.0.3:6379", "203.0.113.5:30003", "10.0.0.4:6379", ",host.example", "").Replace(announced))
		pod := w.PodNamed("redis-1")
		pod.Labels = map[string]string{"app": "replicas"}
		faulttest.Must(t, w.Cluster.Update(t.Context(), pod))
		return w
	}
	first := killing()
	first.Select.Names = []string{"redis-0"}
	if _, err := Choose(t.Context(), on(shard(t)), first, contract.Traits{Silences: true}); err != nil {
		t.Errorf("its replica runs elsewhere: %v", err)
	}
	_, err := Select(t.Context(), on(shard(t)), first, contract.Traits{Silences: true}, nil, []Hit{
		{Pod: "redis-1", Fault: "keep"},
	})
	refusedFor(t, err, "RedisFault keep holds redis-1")
	w := shard(t)
	w.Servers.Change("10.0.0.2:6379", func(s *memredis.State) { s.Loading = true })
	_, err = Choose(t.Context(), on(w), first, contract.Traits{Silences: true})
	refusedFor(t, err, "redis-1 loads its data")
}

// A fault is missed as long as it acts, and for a while after it: what it has hit may not be back.
func TestHitsOf(t *testing.T) {
	now := metav1.NowMicro()
	fault := func(change func(*v1alpha1.RedisFaultStatus)) *v1alpha1.RedisFault {
		f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "keep"}}
		f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", Copies: []string{"redis-1"}}}
		change(&f.Status)
		return f
	}
	kills := contract.Traits{Silences: true, EndsServer: true}
	rolls := contract.Traits{RollsPods: true}
	sets := contract.Traits{}
	injected := func(s *v1alpha1.RedisFaultStatus) { s.Targets[0].InjectedAt = &now }
	acting := func(s *v1alpha1.RedisFaultStatus) { injected(s); s.Holding = new(true) }
	reverted := func(long bool) func(*v1alpha1.RedisFaultStatus) {
		return func(s *v1alpha1.RedisFaultStatus) {
			injected(s)
			s.RevertedAt = new(metav1.NewMicroTime(now.Add(-remembered / 2)))
			if long {
				s.RevertedAt = new(metav1.NewMicroTime(now.Add(-remembered)))
			}
		}
	}
	for name, tc := range map[string]struct {
		fault  *v1alpha1.RedisFault
		traits contract.Traits
		want   string // "" = none
	}{
		"recorded":          {fault(func(s *v1alpha1.RedisFaultStatus) { s.Holding = new(true) }), kills, "holds"},
		"acting":            {fault(acting), kills, "holds"},
		"reverted just now": {fault(reverted(false)), kills, "over"},
		"reverted long ago": {fault(reverted(true)), kills, ""},
		"a roll under way":  {fault(acting), rolls, "holds"},
		"a roll that is complete": {fault(func(s *v1alpha1.RedisFaultStatus) {
			acting(
				s)
			s.Targets[0].ActiveAt = &now
		}), rolls, "over"},
		"a roll back": {fault(func(s *v1alpha1.RedisFaultStatus) {
			acting(
				s)
			s.Targets[0].ActiveAt, s.RevertingSince = &now, &now
		}), rolls, "holds"},
		"a roll that has not begun": {fault(func(s *v1alpha1.RedisFaultStatus) { s.Holding = new(true) }), rolls, "holds"},
		"a setting":                 {fault(acting), sets, ""},
		"never injected":            {fault(func(*v1alpha1.RedisFaultStatus) {}), kills, ""},
	} {
		got := ""
		for _, h := range HitsOf(tc.fault, tc.traits, &v1alpha1.RedisFault{}, now.Time) {
			got = map[bool]string{true: "over", false: "holds"}[h.Over]
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
