//go:build integration

package resources

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// apiServer is a real one, without controllers and without a kubelet: the test sets the status instead.
type apiServer struct {
	t *testing.T
	client.Client
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	_, c := faulttest.RealAPIServer(t)
	a := &apiServer{t: t, Client: c}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	a.create(node)
	node.Status.Capacity, node.Status.Allocatable = quantities("cpu", "64", "memory", "64Gi", "pods", "64"),
		quantities("cpu", "64", "memory", "64Gi", "pods", "64")
	if err := a.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *apiServer) create(object client.Object) {
	a.t.Helper()
	if err := a.Create(a.t.Context(), object); err != nil {
		a.t.Fatalf("%T: %v", object, err)
	}
}

// pod makes a running pod.
func (a *apiServer) pod(name string, own corev1.ResourceRequirements) *corev1.Pod {
	a.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   "node-1",
			Containers: []corev1.Container{{Name: "redis", Image: "redis:7", Resources: own}},
		},
	}
	a.create(pod)
	a.kubelet(pod)
	return pod
}

// kubelet applies the spec.
func (a *apiServer) kubelet(pod *corev1.Pod) {
	a.t.Helper()
	a.read(pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "redis", Ready: true, Image: "redis:7", ImageID: "i", Resources: pod.Spec.Containers[0].Resources.DeepCopy()},
	}
	if err := a.Status().Update(a.t.Context(), pod); err != nil {
		a.t.Fatal(err)
	}
}

func (a *apiServer) read(pod *corev1.Pod) {
	a.t.Helper()
	if err := a.Get(a.t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		a.t.Fatal(err)
	}
}

func (a *apiServer) resources(cpu string) contract.Injector {
	a.t.Helper()
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{
			Type:      v1alpha1.FaultResources,
			Resources: &v1alpha1.Resources{CPU: new(resource.MustParse(cpu))},
		},
		Duration: &metav1.Duration{Duration: time.Second},
	}, contract.Deps{Redis: target.Redis{Namespace: faulttest.Namespace, Live: a}, Cluster: a})
	if err != nil {
		a.t.Fatal(err)
	}
	return injector
}

// A real API server accepts the resize and its revert, and the problem of Preflight contains its message.
func TestResourcesAPIServer(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t)
	ctx := t.Context()
	t.Run("there and back", func(t *testing.T) {
		pod := a.pod("resized-0", guaranteed)
		target := &v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID), Container: "redis"}
		slow := a.resources("100m")
		if err := slow.Preflight(ctx, target); err != nil {
			t.Fatal(err)
		}
		if a.read(pod); said(pod.Spec.Containers[0].Resources) != said(guaranteed) {
			t.Fatalf("Preflight resized the pod: %s", said(pod.Spec.Containers[0].Resources))
		}
		faulttest.InProgress(t, faulttest.Called(slow.Inject(ctx, target)), "is to resize")
		faulttest.InProgress(t, faulttest.Called(slow.Inject(ctx, target)), "has not applied")
		if a.read(pod); said(pod.Spec.Containers[0].Resources) != "cpu 100m, memory 256Mi" {
			t.Fatalf("the pod has %s, want what the resize asks for", said(pod.Spec.Containers[0].Resources))
		}
		a.kubelet(pod)
		if err := faulttest.Called(slow.Inject(ctx, target)); err != nil {
			t.Fatal(err)
		}
		faulttest.EffectIs(t, slow, target, v1alpha1.EffectConfirmed, "cpu 100m instead of cpu 1")
		faulttest.InProgress(t, faulttest.Called(slow.Revert(ctx, target)), "is to restore")
		a.kubelet(pod)
		if err := faulttest.Called(slow.Revert(ctx, target)); err != nil {
			t.Fatal(err)
		}
		if a.read(pod); said(pod.Spec.Containers[0].Resources) != said(guaranteed) {
			t.Errorf("resources after the revert: %s", said(pod.Spec.Containers[0].Resources))
		}
	})
	t.Run("another pod of the name", func(t *testing.T) {
		pod := a.pod("resized-1", guaranteed)
		r := a.resources("100m").(*resources)
		target := &v1alpha1.FaultTarget{Pod: pod.Name, UID: "00000000-0000-0000-0000-000000000000", Container: "redis"}
		slow := corev1.ResourceRequirements{Limits: quantities("cpu", "100m"), Requests: quantities("cpu", "100m")}
		if err := r.resize(ctx, target, slow); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.uid") {
			t.Errorf("a patch with another UID: %v", err)
		}
	})
	t.Run("another class of service", func(t *testing.T) {
		pod := a.pod("resized-2", corev1.ResourceRequirements{
			Limits:   quantities("cpu", "1", "memory", "256Mi"),
			Requests: quantities("cpu", "500m", "memory", "256Mi"),
		})
		problem := faulttest.ProblemOf(t,
			a.resources("500m").Preflight(ctx, &v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID), Container: "redis"}))
		if problem.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(problem.Message, "QOS Class") {
			t.Errorf("%+v", problem)
		}
	})
	// The reason why Preflight refuses a container without a limit.
	t.Run("a limit cannot be taken away", func(t *testing.T) {
		pod := a.pod("resized-3", corev1.ResourceRequirements{Requests: quantities("cpu", "1")})
		for _, c := range []struct {
			limit string
			taken bool
		}{{`"2"`, true}, {`null`, false}} {
			err := a.SubResource("resize").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"redis","resources":{"limits":{"cpu":`+c.limit+`}}}]}}`)))
			if (err == nil) != c.taken {
				t.Errorf("a limit of %s: %v", c.limit, err)
			}
		}
	})
}
