//go:build integration

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// scaleStage is a stage with a StatefulSet whose pods are real servers. settle does the work of its controller and the
// kubelets.
type scaleStage struct {
	*faulttest.Stage
	pods    *cluster.StatefulSet
	servers map[string]*redistest.Server       // by pod
	start   func(pod string) *redistest.Server // of a pod that the StatefulSet adds
}

func newScaleStage(t *testing.T, start func(string) *redistest.Server, servers ...*redistest.Server) *scaleStage {
	t.Helper()
	s := &scaleStage{
		Stage:   faulttest.NewStage(t, Kinds, guard.Choose),
		servers: map[string]*redistest.Server{},
		start:   start,
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", UID: "s"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(len(servers))),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "redis"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "redis", Image: "redis:7"}},
				},
			},
		},
	}
	faulttest.Must(t, s.Cluster.Create(t.Context(), set))
	for i, server := range servers {
		s.servers[fmt.Sprintf("redis-%d", i)] = server
	}
	s.pods = &cluster.StatefulSet{
		Client: s.Cluster, Namespace: faulttest.Namespace, Name: "redis", Container: "redis",
		Address: func(*corev1.Pod) string { return "127.0.0.1" },
		Admit: func(pod *corev1.Pod) {
			if s.servers[pod.Name] == nil {
				s.servers[pod.Name] = s.start(pod.Name)
			}
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: int32(s.servers[pod.Name].Port)}}
		},
		Start: func(pod *corev1.Pod) (func(), <-chan struct{}, error) {
			return func() {
				s.servers[pod.Name].Kill()
				delete(s.servers, pod.Name)
			}, nil, nil
		},
	}
	s.settle()
	return s
}

func (s *scaleStage) set() *appsv1.StatefulSet {
	s.T.Helper()
	set := &appsv1.StatefulSet{}
	if err := s.Cluster.Get(s.T.Context(), client.ObjectKey{Namespace: faulttest.Namespace, Name: "redis"},
		set); err != nil {
		s.T.Fatal(err)
	}
	return set
}

// settle starts and stops servers according to the StatefulSet.
func (s *scaleStage) settle() {
	s.T.Helper()
	faulttest.Must(s.T, s.pods.Settle(s.T.Context()))
}

// finish calls a step until it is complete, each time by a new injector that has only the record.
func (s *scaleStage) finish(
	what string, spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget,
	step func(contract.Injector) func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error),
) {
	s.T.Helper()
	await.Within(s.T, await.Limit+refusal, what, func() error {
		err := faulttest.Called(step(s.Reborn(spec))(s.T.Context(), target))
		var steps *faulttest.Pending
		if err != nil && !errors.As(err, &steps) {
			s.T.Fatalf("%s: %v", what, err)
		}
		if err != nil && what == "inject" && target.InjectedAt == nil {
			target.InjectedAt = new(metav1.NowMicro())
		}
		s.settle()
		return err
	})
	// Cluster nodes lose a connection to each other occasionally: the next call finds it again.
	await.Until(s.T, what+" once more", func() error {
		return faulttest.Called(step(s.Reborn(spec))(s.T.Context(), target))
	})
}

func (s *scaleStage) inject(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) {
	s.T.Helper()
	s.finish("inject", spec, target,
		func(i contract.Injector) func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
			return i.Inject
		})
	target.ActiveAt = new(metav1.NowMicro())
}

func (s *scaleStage) revert(spec *v1alpha1.RedisFaultSpec, target *v1alpha1.FaultTarget) {
	s.T.Helper()
	s.finish("revert", spec, target,
		func(i contract.Injector) func(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
			return i.Revert
		})
}

func (s *scaleStage) expectReplicas(want int) {
	s.T.Helper()
	if got := int(*s.set().Spec.Replicas); got != want {
		s.T.Errorf("the StatefulSet has %d replicas, want %d", got, want)
	}
}

func (s *scaleStage) follows(injector contract.Injector, target *v1alpha1.FaultTarget, want ...string) {
	s.T.Helper()
	var got []string
	for _, seen := range injector.(contract.Follower).Follow(s.T.Context(), target) {
		got = append(got, seen.Event+" "+seen.Object)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		s.T.Errorf("seen: %v, want %v", got, want)
	}
}

func scaleBy(by int32) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:         v1alpha1.FaultReplicaScale,
			ReplicaScale: &v1alpha1.ReplicaScale{By: by, SyncTimeout: metav1.Duration{Duration: time.Minute}},
		},
		Duration: &metav1.Duration{Duration: time.Minute},
	}
}

func TestReplicaScaleReplication(t *testing.T) { redistest.Each(t, testReplicaScaleReplication) }

func testReplicaScaleReplication(t *testing.T) {
	t.Parallel()
	secured := redistest.Options{Password: "secret"}
	for name, c := range map[string]struct {
		by    int32
		blank bool // the image has no start script: a new server starts as a primary
		syncs string
	}{
		"add":                  {by: 2, syncs: "2 full syncs and 0 partial"},
		"add without a script": {by: 1, blank: true, syncs: "1 full sync and 0 partial"},
		"remove":               {by: -1, syncs: "1 full sync and 0 partial"},
		"remove, no script":    {by: -2, blank: true, syncs: "2 full syncs and 0 partial"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.NewReplication(t, 2, secured)
			r.Primary.Do("set", "k", "v")
			s := newScaleStage(t, func(string) *redistest.Server {
				if c.blank {
					return redistest.NewServer(t, redistest.Options{Password: "secret"})
				}
				return r.AddReplica(r.Primary)
			}, r.Servers()...)
			s.Login.Password = "secret"
			spec := scaleBy(c.by)
			injector, target := s.Aim(spec)
			faulttest.EffectIs(t, injector, target, v1alpha1.EffectNotObserved, "still has 3 replicas")
			s.expectReplicas(3)
			s.inject(spec, target)
			s.expectReplicas(3 + int(c.by))
			wantText := "lists redis-"
			if c.by < 0 {
				wantText = "no longer lists redis-"
			}
			faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectConfirmed, wantText)
			faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectConfirmed,
				fmt.Sprintf("%s instead of 2", format.Plural(2+int(c.by), "replica")))
			s.revert(spec, target)
			s.expectReplicas(3)
			faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectNotObserved, "still has 3")
			if got := r.Primary.Info("connected_slaves"); got != "2" {
				t.Errorf("%s replicas in the end", got)
			}
			how := ""
			for _, seen := range injector.(contract.Follower).Follow(t.Context(), target) {
				how += seen.Message + "\n"
			}
			if !strings.Contains(how, c.syncs) {
				t.Errorf("got\n%swant %s", how, c.syncs)
			}
		})
	}
}

// A server that starts as a primary with its own data is not changed, and the fault reports it.
func TestReplicaScaleForeignData(t *testing.T) {
	t.Parallel()
	r := redistest.NewReplication(t, 1, redistest.Options{})
	var came *redistest.Server
	s := newScaleStage(t, func(string) *redistest.Server {
		came = redistest.Shared(t)
		came.Do("select", 3)
		came.Do("eval", "redis.call('select', 3); return redis.call('set', 'mine', 1)", 0)
		return came
	}, r.Servers()...)
	spec := scaleBy(1)
	spec.Action.ReplicaScale.SyncTimeout.Duration = 2 * time.Second
	_, target := s.Aim(spec)
	target.IntendedAt = new(metav1.NowMicro())
	var err error
	await.Until(t, "the fault gives up", func() error {
		err = faulttest.Called(s.Reborn(spec).Inject(t.Context(), target))
		s.settle()
		var steps *faulttest.Pending
		if errors.As(err, &steps) {
			return err
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "start script") {
		t.Errorf("%v, want one about the start script", err)
	}
	if came.Info("role") != "master" || came.Info("db3") == "" {
		t.Errorf("role %s, db3 %q, want a primary with its data", came.Info("role"), came.Info("db3"))
	}
	target.InjectedAt = target.IntendedAt
	s.revert(spec, target)
	s.expectReplicas(2)
}

func TestReplicaScaleRefusesPrimary(t *testing.T) {
	t.Parallel()
	r := redistest.NewReplication(t, 2, redistest.Options{})
	// After a failover the primary has the highest ordinal.
	s := newScaleStage(t, nil, r.Replicas[0], r.Replicas[1], r.Primary)
	_, _, err := s.TryAim(scaleBy(-1))
	problem := faulttest.ProblemOf(t, err)
	if problem.Reason != v1alpha1.ReasonBlastRadius || !strings.Contains(problem.Message, "redis-2 is a primary") ||
		!strings.Contains(problem.Message, "Failover") {
		t.Errorf("%+v", problem)
	}
	s.expectReplicas(3)
}

// The roles change between the record and the injection, and while the fault is active.
func TestReplicaScaleDuringFailover(t *testing.T) { redistest.Each(t, testReplicaScaleDuringFailover) }

func testReplicaScaleDuringFailover(t *testing.T) {
	t.Parallel()
	r := redistest.NewReplication(t, 2, redistest.Options{})
	s := newScaleStage(t, func(string) *redistest.Server { return r.AddReplica(r.Primary) }, r.Servers()...)
	t.Run("before a removal", func(t *testing.T) {
		spec := scaleBy(-1)
		injector, target := s.Aim(spec)
		r.FailoverTo(r.Primary, r.Replicas[1])
		r.WaitHealthy(r.Replicas[1])
		if err := faulttest.Called(injector.Inject(t.Context(), target)); err == nil ||
			!strings.Contains(err.Error(), "redis-2 is a primary") {
			t.Errorf("%v, want a refusal", err)
		}
		s.expectReplicas(3)
		r.FailoverTo(r.Replicas[1], r.Primary)
		r.WaitHealthy(r.Primary)
	})
	t.Run("while a replica is added", func(t *testing.T) {
		spec := scaleBy(1)
		_, target := s.Aim(spec)
		s.inject(spec, target)
		added := s.servers["redis-3"]
		r.FailoverTo(r.Primary, added)
		r.WaitHealthy(added)
		faulttest.EffectIs(t, s.Reborn(spec), target, v1alpha1.EffectNotObserved, "redis-3: false")
		faulttest.InProgress(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)), "again")
		faulttest.InProgress(t, faulttest.Called(s.Reborn(spec).Revert(t.Context(), target)), "redis-3 is a primary")
		s.expectReplicas(4)
		r.FailoverTo(added, r.Primary)
		r.WaitHealthy(r.Primary)
		s.revert(spec, target)
		s.expectReplicas(3)
	})
}

// An added server is told never to become the primary, as the revert could not remove it. A user who may not tell it
// that adds it all the same.
func TestAddedReplicaIsBarred(t *testing.T) { redistest.Each(t, testAddedReplicaIsBarred) }

func testAddedReplicaIsBarred(t *testing.T) {
	t.Parallel()
	added := func(t *testing.T, s *scaleStage, pod, setting, want string) (story string) {
		t.Helper()
		spec := scaleBy(1)
		injector, target := s.Aim(spec)
		s.inject(spec, target)
		if got := fmt.Sprint(s.servers[pod].Do("config", "get", setting)); !strings.Contains(got, ":"+want) {
			t.Errorf("%s of %s is %s, want %s", setting, pod, got, want)
		}
		for _, seen := range injector.(contract.Follower).Follow(t.Context(), target) {
			story += seen.Message
		}
		s.revert(spec, target)
		return story
	}
	replication := func(t *testing.T, options redistest.Options) *scaleStage {
		r := redistest.NewReplication(t, 1, options)
		return newScaleStage(t, func(string) *redistest.Server { return r.AddReplica(r.Primary) }, r.Servers()...)
	}
	t.Run("replication", func(t *testing.T) {
		t.Parallel()
		if story := added(t, replication(t, redistest.Options{}), "redis-2", "replica-priority", "0"); strings.Contains(story,
			"primary, as") {
			t.Error(story)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		s := replication(t, redistest.Options{Users: []string{"ctl on >pw +@all -config|set"}})
		s.Login.Username, s.Login.Password = "ctl", "pw"
		if story := added(t, s, "redis-2", "replica-priority",
			"100"); !strings.Contains(story, "a failover may make it the primary, as CONFIG SET replica-priority is refused: ") {
			t.Error(story)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		s, _ := newClusterStage(t, func(c *redistest.Cluster, _ string) *redistest.Server { return c.AddNode() })
		added(t, s, "redis-6", "cluster-replica-no-failover", "yes")
	})
}
