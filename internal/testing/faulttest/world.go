// Package faulttest is the set-up of the tests of faults: a namespace with pods, and servers in memory or real ones.
package faulttest

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// World is a namespace with Redis pods, a cluster that counts what is deleted, and the servers in the pods.
type World struct {
	T       *testing.T
	Cluster client.WithWatch
	Servers *Servers
	Hooks   interceptor.Funcs
	Deleted []string

	Operator contract.Operator // of the dependencies
}

// Namespace is that of all objects.
const Namespace = "shop"

// NewWorld makes a cluster of some objects.
func NewWorld(t *testing.T, objects ...client.Object) *World {
	t.Helper()
	scheme := runtime.NewScheme()
	// Only the kinds that the faults read and write: the fake client iterates over the whole scheme for every object that
	// it creates.
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, storagev1.AddToScheme, coordinationv1.AddToScheme,
		autoscalingv2.AddToScheme, policyv1.AddToScheme, v1alpha1.AddToScheme, object.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &World{T: t, Servers: newServers(t)}
	under := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{
				string(o.(*corev1.Event).InvolvedObject.UID),
			}
		}).
		Build()
	w.Cluster = interceptor.NewClient(under, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption,
		) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.Hooks.Get != nil {
				return w.Hooks.Get(ctx, c, key, into, options...)
			}
			return c.Get(ctx, key, into, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.Hooks.Delete != nil {
				return w.Hooks.Delete(ctx, c, object, options...)
			}
			// The fake client does not support preconditions.
			var given client.DeleteOptions
			given.ApplyOptions(options)
			current := &corev1.Pod{}
			err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
			if err != nil {
				return err
			}
			if given.Preconditions != nil && given.Preconditions.UID != nil && *given.Preconditions.UID != current.UID {
				return conflict(object.GetName())
			}
			w.Deleted = append(w.Deleted, string(current.UID))
			return c.Delete(ctx, object, options...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, subResource string, object, sub client.Object,
			options ...client.SubResourceCreateOption,
		) error {
			if w.Hooks.SubResourceCreate != nil {
				if err := w.Hooks.SubResourceCreate(ctx, c, subResource, object, sub, options...); err != nil {
					return err
				}
			}
			eviction, is := sub.(*policyv1.Eviction)
			if !is {
				return c.SubResource(subResource).Create(ctx, object, sub, options...)
			}
			return w.Cluster.Delete(ctx, object, &client.DeleteOptions{Preconditions: eviction.DeleteOptions.Preconditions})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, subResource string, object client.Object,
			patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			if w.Hooks.SubResourcePatch != nil {
				return w.Hooks.SubResourcePatch(ctx, c, subResource, object, patch, options...)
			}
			return c.SubResource(subResource).Patch(ctx, object, patch, options...)
		},
	})
	return w
}

// Deps are the dependencies of a fault.
func (w *World) Deps() contract.Deps {
	return contract.Deps{Redis: target.Redis{
		Namespace: Namespace,
		Live:      apitest.Paged(w.Cluster),
		Servers:   w.Confine(w.Servers),
	}, Cluster: w.Cluster, Operator: w.Operator}
}

// Confine confines commands to the pods of the namespace, as the operator does.
func (w *World) Confine(servers topology.Servers) topology.Servers {
	return confine.To(servers, confine.NewBook(Namespace, w.pods, w.Cluster, nil))
}

// pods are those of the namespace, as a watch shows them.
func (w *World) pods() []corev1.Pod {
	var all corev1.PodList
	err := w.Cluster.List(context.Background(), &all, client.InNamespace(Namespace))
	if err != nil {
		return nil // a test keeps the API server from answering
	}
	return all.Items
}

// Update changes the status of a pod.
func (w *World) Update(pod *corev1.Pod, change func(*corev1.Pod)) {
	w.T.Helper()
	change(pod)
	err := w.Cluster.Status().Update(w.T.Context(), pod)
	if err != nil {
		w.T.Fatal(err)
	}
}

// PodNamed reads a pod.
func (w *World) PodNamed(name string) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{}
	err := w.Cluster.Get(w.T.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, pod)
	if err != nil {
		w.T.Fatal(err)
	}
	return pod
}

// Replace replaces a pod by one of the same name, as the StatefulSet controller does.
func (w *World) Replace(pod *corev1.Pod, uid string) {
	w.T.Helper()
	err := client.IgnoreNotFound(w.Cluster.Delete(context.Background(), pod))
	if err != nil {
		w.T.Fatal(err)
	}
	w.Deleted = slices.DeleteFunc(w.Deleted, func(u string) bool { return u == string(pod.UID) })
	w.Pod(pod.Name, uid, pod.Status.PodIP, topology.Primary, nil)
}

// Pod makes a running Redis pod of a StatefulSet; its server answers under its address unless role is "". A replica is
// in sync. The data outlives the pod, unless change gives it other volumes.
func (w *World) Pod(name, uid, ip string, role topology.Role, change func(*corev1.Pod)) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID(uid), Labels: map[string]string{"app": "redis"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "s", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{
			NodeName:  "node-1",
			Hostname:  name,
			Subdomain: "redis",
			Containers: []corev1.Container{
				{Name: "redis", Image: "redis:7", Ports: []corev1.ContainerPort{{ContainerPort: 6379}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			HostIP: "10.0.1.1", HostIPs: []corev1.HostIP{{IP: "10.0.1.1"}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "redis", Ready: true}},
		},
	}
	if change != nil {
		change(pod)
	}
	if len(pod.Spec.Volumes) == 0 {
		pod.Spec.Volumes = []corev1.Volume{
			{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
				},
			},
		}
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{
			Name:      "data",
			MountPath: "/data",
		})
	}
	going := pod.DeletionTimestamp != nil
	if err := w.Cluster.Create(w.T.Context(), pod); err != nil {
		w.T.Fatal(err)
	}
	if going { // a deletion timestamp cannot be created
		if err := w.Cluster.Delete(w.T.Context(), pod); err != nil {
			w.T.Fatal(err)
		}
		w.Deleted = nil
	}
	if role != "" {
		w.Servers.start(AddressOf(pod), role, "run-"+uid)
	}
	return pod
}

// Bystander makes a pod that no selector of a target finds, such as that of a sentinel.
func (w *World) Bystander(name, ip string) {
	w.T.Helper()
	w.Pod(name, "uid-"+name, ip, "", func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": name}
		p.OwnerReferences = nil
	})
}

// ByPods is a target by the labels of its pods.
func ByPods(labels map[string]string) *v1alpha1.RedisTarget {
	return &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// ProblemOf is the Problem in err; the test fails if there is none.
func ProblemOf(t *testing.T, err error) *problem.Problem {
	t.Helper()
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok {
		t.Fatalf("error %v is no Problem", err)
	}
	return p
}

// Save puts a record into a target as it was stored.
func Save[R any](t *testing.T, target *v1alpha1.FaultTarget, record R) {
	t.Helper()
	Must(t, contract.Save(target, record))
}

// Must fails the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Pending is the progress of a call that is not complete, as an error.
type Pending struct{ contract.Progress }

// Error is the message of the progress.
func (p *Pending) Error() string {
	return p.Message
}

// Called turns the result of Inject or Revert into an error: nil where it is complete.
func Called(progress contract.Progress, err error) error {
	if err == nil && !progress.Complete() {
		return &Pending{progress}
	}
	return err
}

// Recorded is the record of a target; the test fails where there is none.
func Recorded[R any](t *testing.T, target *v1alpha1.FaultTarget) R {
	t.Helper()
	record, found, err := contract.Load[R](target)
	if err != nil || !found {
		t.Fatalf("record of pod %s: found %v, %v", target.Pod, found, err)
	}
	return record
}

// AddressOf is where the server in a pod listens.
func AddressOf(pod *corev1.Pod) string {
	return target.Redis{}.Address(pod)
}

// On returns the dependencies of a fault on a target.
func On(deps contract.Deps, of *v1alpha1.RedisTarget) contract.Deps {
	deps.Spec = of
	return deps
}

// Chooser chooses the targets of a fault.
type Chooser func(context.Context, target.Redis, *v1alpha1.RedisFaultSpec, contract.Traits) ([]v1alpha1.FaultTarget, error)

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name,
		errors.New("the UID in the precondition is another"))
}
