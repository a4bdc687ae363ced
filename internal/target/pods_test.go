package target_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestPods(t *testing.T) {
	w := faulttest.NewWorld(t,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "redis", "tier": "cache"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "bare"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "redis-9", Labels: map[string]string{"app": "redis", "tier": "cache"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.99"}},
	)
	cache := func(p *corev1.Pod) { p.Labels["tier"] = "cache" }
	w.Pod("redis-1", "u1", "10.0.0.1", "", cache)
	w.Pod("redis-0", "u0", "10.0.0.2", "", cache)
	w.Pod("plain", "u2", "10.0.0.3", "", nil)
	w.Pod("not-ready", "u7", "10.0.0.7", "", func(p *corev1.Pod) {
		cache(p)
		p.Status.Conditions[0].Status = corev1.ConditionFalse // a replica that is down is also a target
	})
	w.Pod("going", "u3", "10.0.0.4", "", func(p *corev1.Pod) {
		cache(p)
		p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"example.com/held"}
	})
	w.Pod("no-address", "u4", "", "", cache)
	w.Pod("pending", "u5", "10.0.0.5", "", func(p *corev1.Pod) { cache(p); p.Status.Phase = corev1.PodPending })
	w.Pod("over", "u6", "10.0.0.6", "", func(p *corev1.Pod) { cache(p); p.Status.Phase = corev1.PodSucceeded })

	service := func(name string) *v1alpha1.ServiceReference { return &v1alpha1.ServiceReference{Name: name} }
	for _, tc := range []struct {
		name     string
		target   *v1alpha1.RedisTarget
		want     string // pods, or the reason of the problem
		lasting  bool
		wantText string
	}{
		{"the Service's selector", &v1alpha1.RedisTarget{Service: service("redis")}, "not-ready redis-0 redis-1", false, ""},
		{"podSelector has precedence over the Service", &v1alpha1.RedisTarget{Service: service("gone"), PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}, "not-ready plain redis-0 redis-1", false, ""},
		{"expressions", &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}}, "plain", false, ""},
		{"no such Service", &v1alpha1.RedisTarget{Service: service("gone")}, v1alpha1.ReasonServiceNotFound, false, "spec.target.service.name"},
		{"a Service without a selector", &v1alpha1.RedisTarget{Service: service("bare")}, v1alpha1.ReasonNoTarget, true, "spec.target.podSelector"},
		{"addresses only", &v1alpha1.RedisTarget{Addresses: []string{"redis:6379"}}, v1alpha1.ReasonNoTarget, true, "spec.target.podSelector"},
		{"nothing matches", faulttest.ByPods(map[string]string{"app": "none"}), v1alpha1.ReasonNoTarget, false, "spec.target.podSelector"},
		{"a selector that is none", &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}}}, v1alpha1.ReasonInvalidSpec, true, "spec.target.podSelector"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pods, err := faulttest.On(w.Deps(), tc.target).Pods(t.Context())
			if err != nil {
				problem := faulttest.ProblemOf(t, err)
				if problem.Reason != tc.want || problem.Lasting != tc.lasting || !strings.Contains(problem.Message, tc.wantText) {
					t.Errorf("problem %+v, want %s, lasting %v, about %s", problem, tc.want, tc.lasting, tc.wantText)
				}
				return
			}
			var names []string
			for i := range pods {
				names = append(names, pods[i].Name)
			}
			if got := strings.Join(names, " "); got != tc.want || !slices.IsSorted(names) {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

// An error of the API server is no Problem of the spec: the request is retried.
func TestPodsPassesErrorsOn(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewInternalError(errors.New("etcd is away"))
	}
	_, err := faulttest.On(w.Deps(), &v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}}).Pods(t.Context())
	if !apierrors.IsInternalError(err) {
		t.Errorf("error %v, want the API server's own", err)
	}
}

func TestContainerAndAddress(t *testing.T) {
	container := func(name, image string, ports ...int32) corev1.Container {
		c := corev1.Container{Name: name, Image: image}
		for _, p := range ports {
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: p})
		}
		return c
	}
	for _, tc := range []struct {
		name       string
		containers []corev1.Container
		container  string
		address    string
	}{
		{"identified by the port", []corev1.Container{container("proxy", "redis-proxy", 9000), container("db", "acme/cache:1", 6379)}, "db", "10.0.0.1:6379"},
		{"one of several ports", []corev1.Container{container("db", "acme/cache:1", 16379, 6379)}, "db", "10.0.0.1:6379"},
		{"identified by the image", []corev1.Container{container("sidecar", "envoy", 9901), container("db", "docker.io/valkey/valkey:8", 7000)}, "db", "10.0.0.1:7000"},
		{"not identified: the first", []corev1.Container{container("a", "acme/a"), container("b", "acme/b")}, "a", "10.0.0.1:6379"},
		{"another port", []corev1.Container{container("a", "acme/a", 6380)}, "a", "10.0.0.1:6380"},
		{"no container", nil, "", "10.0.0.1:6379"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: tc.containers}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
			if got := (target.Redis{}).Container(pod).Name; got != tc.container {
				t.Errorf("container %q, want %q", got, tc.container)
			}
			if got := faulttest.AddressOf(pod); got != tc.address {
				t.Errorf("address %q, want %q", got, tc.address)
			}
		})
	}
	if got := faulttest.AddressOf(&corev1.Pod{Status: corev1.PodStatus{PodIP: "fd00::1"}}); got != "[fd00::1]:6379" {
		t.Errorf("IPv6 address %q", got)
	}
}
