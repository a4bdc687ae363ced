package fault

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

var errSilent = errors.New("connection refused")

// scripted are servers that answer as they are told, by address. One that is not named does not answer.
type scripted struct {
	mu      sync.Mutex
	servers map[string]topology.Server
	refuse  error // of Shutdown and Segfault
	do      func(address string, command ...any) (any, error)
	takes   func(address string) time.Duration // an answer; nil = no time at all
	queues  map[string]string                  // what is queued, by key
	sent    []string                           // "shutdown ADDRESS", in order
}

// wait lets the time pass that an answer takes.
func (s *scripted) wait(ctx context.Context, address string) error {
	if s.takes != nil {
		select {
		case <-time.After(s.takes(address)):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s *scripted) Ask(ctx context.Context, address string, _ topology.Login) (topology.Server, error) {
	if err := s.wait(ctx, address); err != nil {
		return topology.Server{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	server, ok := s.servers[address]
	if !ok {
		return topology.Server{}, errSilent
	}
	return server, nil
}

func (s *scripted) Do(ctx context.Context, address string, _ topology.Login, command ...any) (any, error) {
	if err := s.wait(ctx, address); err != nil {
		return nil, err
	}
	if s.do == nil {
		return nil, errSilent
	}
	return s.do(address, command...)
}

func (s *scripted) Shutdown(ctx context.Context, address string, _ topology.Login) error {
	return s.end(ctx, "shutdown "+address, address)
}

func (s *scripted) Segfault(ctx context.Context, address string, _ topology.Login) error {
	return s.end(ctx, "segfault "+address, address)
}

func (s *scripted) end(ctx context.Context, what, address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.sent = append(s.sent, what)
	if s.refuse != nil {
		return s.refuse
	}
	delete(s.servers, address)
	return nil
}

// world is a namespace with Redis pods, a cluster that counts what is deleted, and the servers in the pods.
type world struct {
	t       *testing.T
	cluster client.WithWatch
	servers *scripted
	hooks   interceptor.Funcs
	deleted []string
}

const namespace = "shop"

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	// What the faults read and write, and no more: the fake client goes through the whole scheme with every object that it makes.
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, autoscalingv2.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, servers: &scripted{servers: map[string]topology.Server{}}}
	under := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).
		Build()
	w.cluster = interceptor.NewClient(under, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.hooks.Get != nil {
				return w.hooks.Get(ctx, c, key, into, options...)
			}
			return c.Get(ctx, key, into, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.hooks.Delete != nil {
				return w.hooks.Delete(ctx, c, object, options...)
			}
			// The fake client knows no preconditions.
			var given client.DeleteOptions
			given.ApplyOptions(options)
			current := &corev1.Pod{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			if given.Preconditions != nil && given.Preconditions.UID != nil && *given.Preconditions.UID != current.UID {
				return conflict(object.GetName())
			}
			w.deleted = append(w.deleted, string(current.UID))
			return c.Delete(ctx, object, options...)
		},
	})
	return w
}

func (w *world) deps() contract.Deps {
	return contract.Deps{Redis: target.Redis{Namespace: namespace, Live: w.cluster, Servers: w.servers}, Cluster: w.cluster}
}

// pod makes a running Redis pod of a StatefulSet; its server answers under its address unless role is "".
func (w *world) pod(name, uid, ip string, role topology.Role, change func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(uid), Labels: map[string]string{"app": "redis"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "s", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}}}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", Ready: true}},
		},
	}
	if change != nil {
		change(pod)
	}
	going := pod.DeletionTimestamp != nil
	if err := w.cluster.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	if going { // a deletion timestamp cannot be created
		if err := w.cluster.Delete(w.t.Context(), pod); err != nil {
			w.t.Fatal(err)
		}
		w.deleted = nil
	}
	if role != "" {
		w.servers.servers[addressOf(pod)] = topology.Server{Address: addressOf(pod), RunID: "run-" + uid, Role: role}
	}
	return pod
}

func (w *world) update(pod *corev1.Pod, change func(*corev1.Pod)) {
	w.t.Helper()
	change(pod)
	if err := w.cluster.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// replace plays the StatefulSet: the pod goes, one of the same name comes.
func (w *world) replace(pod *corev1.Pod, uid string) {
	w.t.Helper()
	if err := client.IgnoreNotFound(w.cluster.Delete(context.Background(), pod)); err != nil {
		w.t.Fatal(err)
	}
	w.deleted = slices.DeleteFunc(w.deleted, func(u string) bool { return u == string(pod.UID) })
	w.pod(pod.Name, uid, pod.Status.PodIP, topology.Primary, nil)
}

func byPods(labels map[string]string) *v1alpha1.RedisTarget {
	return &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// problemOf is the Problem in err; the test fails if there is none.
func problemOf(t *testing.T, err error) *problem.Problem {
	t.Helper()
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		t.Fatalf("error %v is no Problem", err)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// save puts a record into a target as it was stored.
func save[R any](t *testing.T, target *v1alpha1.FaultTarget, record R) {
	t.Helper()
	must(t, contract.Save(target, record))
}

// pending is the progress of a call that is not complete, as an error.
type pending struct{ contract.Progress }

func (p *pending) Error() string { return p.Message }

// called is what a call of Inject or Revert came to: nil where it is complete.
func called(progress contract.Progress, err error) error {
	if err == nil && !progress.Complete() {
		return &pending{progress}
	}
	return err
}

// recorded is the record of a target; the test fails where there is none.
func recorded[R any](t *testing.T, target *v1alpha1.FaultTarget) R {
	t.Helper()
	record, found, err := contract.Load[R](target)
	if err != nil || !found {
		t.Fatalf("record of pod %s: found %v, %v", target.Pod, found, err)
	}
	return record
}

// addressOf is where the server in a pod listens.
func addressOf(pod *corev1.Pod) string { return target.Redis{}.Address(pod) }

// on are the dependencies of a fault on a target.
func on(deps contract.Deps, of *v1alpha1.RedisTarget) contract.Deps {
	deps.Spec = of
	return deps
}

// Chooser is what chooses the targets of a fault.
type Chooser func(context.Context, target.Redis, *v1alpha1.RedisFaultSpec, contract.Traits) ([]v1alpha1.FaultTarget, error)
