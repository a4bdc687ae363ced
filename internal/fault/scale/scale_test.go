package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// scalable is a primary, redis-0, and its replica, redis-1, in a StatefulSet. Tests script the replies of later pods.
type scalable struct {
	*faulttest.World
	t   *testing.T
	now time.Time
}

func newScalable(t *testing.T, change func(*appsv1.StatefulSet)) *scalable {
	t.Helper()
	s := &scalable{World: faulttest.NewWorld(t), t: t, now: time.Unix(1_800_000_000, 0)}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", UID: "s"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2))},
		Status:     appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 2},
	}
	if change != nil {
		change(set)
	}
	if err := s.Cluster.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	s.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	s.Servers.Change("10.0.0.1:6379", func(is *memredis.State) { is.FullSyncs = 1 })
	return s
}

func (s *scalable) injector(by int32) contract.Injector {
	s.t.Helper()
	return s.of(&v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultReplicaScale, ReplicaScale: &v1alpha1.ReplicaScale{By: by}},
	})
}

func (s *scalable) of(spec *v1alpha1.RedisFaultSpec) contract.Injector {
	s.t.Helper()
	injector, err := Kinds.For(spec, s.Deps())
	if err != nil {
		s.t.Fatal(err)
	}
	injector.(*replicaScale).now = func() time.Time { return s.now }
	return injector
}

// recordedTarget is redis-0 after Preflight.
func (s *scalable) recordedTarget(by int32) *v1alpha1.FaultTarget {
	s.t.Helper()
	target := &v1alpha1.FaultTarget{
		Pod:        "redis-0",
		UID:        "u0",
		Address:    "10.0.0.1:6379",
		IntendedAt: &metav1.MicroTime{Time: s.now},
	}
	if err := s.injector(by).Preflight(s.t.Context(), target); err != nil {
		s.t.Fatal(err)
	}
	return target
}

func (s *scalable) replicas() int32 {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := s.Cluster.Get(s.t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis"},
		set); err != nil {
		s.t.Fatal(err)
	}
	return *set.Spec.Replicas
}

func (s *scalable) scaleTo(n int32) {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	if err := s.Cluster.Get(s.t.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis"},
		set); err != nil {
		s.t.Fatal(err)
	}
	set.Spec.Replicas = &n
	if err := s.Cluster.Update(s.t.Context(), set); err != nil {
		s.t.Fatal(err)
	}
}

func TestReplicaScalePreflightRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		by     int32
		mode   v1alpha1.SelectMode
		set    func(*appsv1.StatefulSet)
		world  func(*scalable)
		reason string
		about  string
	}{
		"several servers": {
			by:     1,
			mode:   v1alpha1.SelectAll,
			reason: v1alpha1.ReasonInvalidSpec,
			about:  "spec.select.mode: All",
		},
		"nothing":         {by: 0, reason: v1alpha1.ReasonInvalidSpec, about: "spec.action.replicaScale.by: 0"},
		"more than there": {by: -3, reason: v1alpha1.ReasonInvalidSpec, about: "has only 2 replicas"},
		"the primary":     {by: -2, reason: v1alpha1.ReasonBlastRadius, about: "redis-0 is a primary"},
		"an operator's": {
			by:     1,
			reason: v1alpha1.ReasonNotSupported,
			about:  "RedisCluster shop-redis",
			set: func(s *appsv1.StatefulSet) {
				s.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "redis.example.com/v1", Kind: "RedisCluster", Name: "shop-redis", UID: "o", Controller: new(true)},
				}
			},
		},
		"an autoscaler's": {
			by:     1,
			reason: v1alpha1.ReasonNotSupported,
			about:  "HorizontalPodAutoscaler keda-hpa-redis",
			world: func(s *scalable) {
				if err := s.Cluster.Create(s.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "keda-hpa-redis"},
					Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
						ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
							APIVersion: "apps/v1",
							Kind:       "StatefulSet",
							Name:       "redis",
						},
					},
				}); err != nil {
					s.t.Fatal(err)
				}
			},
		},
		"a pod that is not ready": {
			by:     1,
			reason: v1alpha1.ReasonInjectionFailed,
			about:  "1 of 2 pods ready",
			set:    func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 },
		},
		"a silent server": {
			by:     1,
			reason: v1alpha1.ReasonInjectionFailed,
			about:  "did not answer INFO",
			world:  func(s *scalable) { s.Servers.Kill("10.0.0.1:6379") },
		},
		"a replica out of sync": {
			by:     -1,
			reason: v1alpha1.ReasonInjectionFailed,
			about:  "the primary of redis-1",
			world: func(s *scalable) {
				s.Servers.Change("10.0.0.1:6379", faulttest.Lists(memredis.Replica{Address: "10.0.0.2:6379", State: "wait_bgsave"}))
			},
		},
		"a replica that is silent": {
			by:     -1,
			reason: v1alpha1.ReasonInjectionFailed,
			about:  "the role of redis-1 cannot be determined",
			world:  func(s *scalable) { s.Servers.Kill("10.0.0.2:6379") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScalable(t, c.set)
			if c.world != nil {
				c.world(s)
			}
			injector := s.of(&v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultReplicaScale, ReplicaScale: &v1alpha1.ReplicaScale{By: c.by}},
				Select: v1alpha1.FaultSelector{Mode: c.mode},
			})
			problem := faulttest.ProblemOf(t,
				injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379"}))
			if problem.Reason != c.reason || !strings.Contains(problem.Message, c.about) ||
				problem.Lasting == (c.reason == v1alpha1.ReasonInjectionFailed) {
				t.Errorf("%+v, want %s about %q", problem, c.reason, c.about)
			}
			if n := s.replicas(); n != 2 {
				t.Errorf("Preflight scaled it to %d", n)
			}
		})
	}
	for name, owner := range map[string][]metav1.OwnerReference{
		"belongs to ReplicaSet redis-5d": {
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "redis-5d", UID: "x", Controller: new(true)},
		},
		"has no controller": nil,
	} {
		s := newScalable(t, nil)
		s.Pod("other", "u9", "10.0.0.9", topology.Primary, func(p *corev1.Pod) { p.OwnerReferences = owner })
		problem := faulttest.ProblemOf(t,
			s.injector(1).Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "other", UID: "u9"}))
		if problem.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(problem.Message, name) {
			t.Errorf("%+v, want one that %s", problem, name)
		}
	}
}

// The progress of the StatefulSet and the servers is reported step by step, and waiting for it ends with a timeout.
func TestReplicaScaleSteps(t *testing.T) {
	s := newScalable(t, func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 0} })
	target := s.recordedTarget(1)
	step := func(about string) {
		t.Helper()
		faulttest.InProgress(t, faulttest.Called(s.injector(1).Inject(t.Context(), target)), about)
	}
	step("redis-2 does not exist yet")
	target.InjectedAt = &metav1.MicroTime{Time: s.now}
	if n := s.replicas(); n != 3 {
		t.Fatalf("%d replicas, want 3", n)
	}
	if begun, err := s.injector(1).Begun(t.Context(), target); !begun || err != nil {
		t.Errorf("begun %t %v", begun, err)
	}
	faulttest.EffectIs(t, s.injector(1), target, v1alpha1.EffectNotObserved, "pod redis-2 does not exist yet")
	pod := s.Pod("redis-2", "u2", "10.0.0.3", "", func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodPending, ""
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"},
		}
	})
	step("not scheduled: 0/2 nodes are available")
	s.Update(pod, func(p *corev1.Pod) {
		p.Status.Conditions = nil
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
	})
	step("Pending: ImagePullBackOff")
	s.Update(pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.3" })
	step("does not answer yet")
	first := memredis.Replica{Address: "10.0.0.2:6379"}
	s.Servers.Change("10.0.0.1:6379", faulttest.Lists(first))
	s.Servers.Start("10.0.0.3:6379", memredis.State{Primary: "10.0.0.1:6379"})
	for _, c := range []struct {
		change func(*memredis.State)
		about  string
	}{
		{func(is *memredis.State) { is.Loading = true }, "is loading"},
		{
			func(is *memredis.State) { is.Loading, is.Link = false, memredis.LinkNever },
			"is to be told never to become the primary",
		},
		{func(*memredis.State) {}, "masterauth"},
		{func(is *memredis.State) { is.Link = memredis.LinkSyncing }, "is syncing with 10.0.0.1:6379"},
		{func(is *memredis.State) { is.Link = memredis.LinkUp }, "not listed as online"},
	} {
		s.Servers.Change("10.0.0.3:6379", c.change)
		step(c.about)
	}
	second := memredis.Replica{Address: "redis-2.redis.shop.svc:6379", Lag: 1}
	s.Servers.Change("10.0.0.1:6379", faulttest.Lists(first, second))
	s.Servers.Change("10.0.0.1:6379", func(is *memredis.State) { is.FullSyncs++ })
	step("its pod is not ready")
	second.Lag = 9
	s.Servers.Change("10.0.0.1:6379", faulttest.Lists(first, second))
	step("lags 9 s behind primary 10.0.0.1:6379")
	second.Lag = 1
	s.Servers.Change("10.0.0.1:6379", faulttest.Lists(first, second))
	s.now = s.now.Add(defaultSyncTimeout + time.Second)
	var steps *faulttest.Pending
	if err := faulttest.Called(s.injector(1).Inject(t.Context(), target)); err == nil || errors.As(err, &steps) ||
		!strings.Contains(err.Error(), "syncTimeout, 5m0s: redis-2 is in sync, but") {
		t.Errorf("%v, want an error that names what is missing", err)
	}
	s.Update(pod, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	})
	if err := faulttest.Called(s.injector(1).Inject(t.Context(), target)); err != nil {
		t.Error(err)
	}
	faulttest.EffectIs(t, s.injector(1), target, v1alpha1.EffectConfirmed,
		"primary 10.0.0.1:6379 lists redis-2 (2 replicas instead of 1)")
	seen := s.injector(1).(contract.Follower).Follow(t.Context(), target)
	if len(seen) != 2 || seen[0].Event != eventReplicaAdded || seen[1].Event != eventReplicaSynced ||
		seen[1].Message != "after 5m1s; its primary has served 1 full sync and 0 partial syncs since" {
		t.Errorf("%+v", seen)
	}

	faulttest.InProgress(t, faulttest.Called(s.injector(1).Revert(t.Context(), target)), "is to have 2 replicas again")
	if n := s.replicas(); n != 3 {
		t.Fatalf("%d replicas before the record for the revert is stored", n)
	}
	faulttest.InProgress(t, faulttest.Called(s.injector(1).Revert(t.Context(), target)), "redis-2 is still running")
	if n := s.replicas(); n != 2 {
		t.Fatalf("%d replicas, want 2", n)
	}
	if err := s.Cluster.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := faulttest.Called(s.injector(1).Revert(t.Context(), target)); err != nil {
			t.Error(err)
		}
	}
}

func TestReplicaScaleConflicts(t *testing.T) {
	both := func(s *scalable, by int32, target *v1alpha1.FaultTarget) map[string]error {
		return map[string]error{
			"inject": faulttest.Called(s.injector(by).Inject(t.Context(), target)),
			"revert": faulttest.Called(s.injector(by).Revert(t.Context(), target)),
		}
	}
	t.Run("another client scales", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(1)
		s.scaleTo(7)
		for what, err := range both(s, 1, target) {
			if err == nil || !strings.Contains(err.Error(), "has 7 replicas, neither the 2 from before the fault nor its 3") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n := s.replicas(); n != 7 {
			t.Errorf("%d replicas, want the number that the other client set", n)
		}
		if want, got := "kubectl -n shop scale statefulset redis --replicas=2",
			s.injector(1).ManualRevertCommand(target); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("scaled back", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(1)
		target.InjectedAt = &metav1.MicroTime{Time: s.now}
		if err := faulttest.Called(s.injector(1).Inject(t.Context(), target)); err == nil ||
			!strings.Contains(err.Error(), "scaled it back") {
			t.Errorf("%v", err)
		}
	})
	t.Run("never scaled", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(-1)
		if err := faulttest.Called(s.injector(-1).Revert(t.Context(), target)); err != nil || s.replicas() != 2 {
			t.Errorf("%v, %d replicas", err, s.replicas())
		}
	})
	t.Run("scaled by an operator that crashed immediately", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(-1)
		s.scaleTo(1)
		faulttest.InProgress(t, faulttest.Called(s.injector(-1).Revert(t.Context(), target)), "2 replicas again")
		if err := faulttest.Called(s.injector(-1).Revert(t.Context(), target)); err != nil || s.replicas() != 2 {
			t.Errorf("%v, %d replicas", err, s.replicas())
		}
	})
	t.Run("a pod that was replaced", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(1)
		target.UID = "another"
		if err := faulttest.Called(s.injector(1).Inject(t.Context(), target)); err != nil || s.replicas() != 2 {
			t.Errorf("%v, %d replicas", err, s.replicas())
		}
	})
	for name, uid := range map[string]string{"a deleted StatefulSet": "", "one of the same name": "s2"} {
		t.Run(name, func(t *testing.T) {
			s := newScalable(t, nil)
			target := s.recordedTarget(1)
			s.Hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
				return c.Delete(ctx, o)
			}
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"}}
			if err := s.Cluster.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			if uid != "" {
				set = &appsv1.StatefulSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", UID: "s2"},
					Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(3))},
				}
				if err := s.Cluster.Create(t.Context(), set); err != nil {
					t.Fatal(err)
				}
			}
			for what, err := range both(s, 1, target) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if begun, err := s.injector(1).Begun(t.Context(), target); !begun || err != nil {
				t.Errorf("begun %t %v", begun, err)
			}
			faulttest.EffectIs(t, s.injector(1), target, v1alpha1.EffectInconclusive, "does not exist any more")
			if uid != "" && s.replicas() != 3 {
				t.Error("another StatefulSet was scaled")
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		s := newScalable(t, nil)
		target := s.recordedTarget(1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := faulttest.Called(s.injector(1).Inject(ctx, target)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if err := faulttest.Called(
			s.injector(1).Inject(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"})); err == nil {
			t.Error("scaled without a record")
		}
	})
}

func TestReplicaScaleOrdinals(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Ordinals: &appsv1.StatefulSetOrdinals{Start: 5}}}
	c := &scaling{name: "redis", set: set, old: 3, want: 1}
	if got := fmt.Sprint(c.staying(), c.changed()); got != "[redis-5] [redis-6 redis-7]" {
		t.Errorf("staying and changed are %s, want [redis-5] [redis-6 redis-7]", got)
	}
}

func TestParseListing(t *testing.T) {
	const id = "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca"
	nodes, err := parseListing(id+" :6379@16379 myself,master - 0 0 0 connected\n"+
		"b 10.0.0.2:6379@16379,redis-1.redis master,fail - 1 2 3 disconnected 5 7-9 [7->-c]\n"+
		"c :0@0 slave,noaddr b 1 2 3 disconnected\n"+
		"d 2001:db8::1:6379@16379 slave b 1 2 3 connected\n", "10.0.0.1:6379")
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%v %v", nodes, err)
	}
	if own := myself(nodes); own.id != id || own.address != "10.0.0.1:6379" || own.bus != "16379" || !own.trusted() ||
		own.owns(0) {
		t.Errorf("%+v", own)
	}
	if b := nodes[1]; b.address != "10.0.0.2:6379" || b.trusted() || b.connected || !b.owns(5) || b.owns(6) || !b.owns(8) {
		t.Errorf("%+v", b)
	}
	if c, d := nodes[2], nodes[3]; c.address != "" || c.trusted() || d.address != "[2001:db8::1]:6379" ||
		d.primary != "b" {
		t.Errorf("%+v %+v", c, d)
	}
	for _, bad := range []string{"", "a b c\n", "a 10.0.0.1:1@2 master - 0 0 0 connected x-y\n"} {
		if _, err := parseListing(bad, "10.0.0.1:6379"); err == nil {
			t.Errorf("%q was parsed, want an error", bad)
		}
	}
}
