package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("the UID in the precondition is another"))
}

// redisPods are a primary and two replicas that answer, and one server that does not.
func redisPods(w *world) {
	w.pod("redis-2", "u2", "10.0.0.2", topology.Replica, nil)
	w.pod("redis-0", "u0", "10.0.0.10", topology.Replica, nil)
	w.pod("redis-1", "u1", "10.0.0.1", topology.Primary, nil)
	w.pod("redis-3", "u3", "10.0.0.3", "", nil)
}

func TestSelect(t *testing.T) {
	all := byPods(map[string]string{"app": "redis"})
	for _, tc := range []struct {
		name     string
		selector v1alpha1.FaultSelector
		want     string // pods, or the reason of the problem
		says     []string
	}{
		{"the primary", v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary}, "redis-1", nil},
		{"one replica: the first by name", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectOne}, "redis-0", nil},
		{"all replicas; who does not answer is none", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectAll}, "redis-0 redis-2", nil},
		{"any role; who does not answer is no Redis", v1alpha1.FaultSelector{Role: v1alpha1.RoleAny, Mode: v1alpha1.SelectAll}, "redis-0 redis-1 redis-2", nil},
		{"nothing said is one of any", v1alpha1.FaultSelector{}, "redis-0", nil},
		{"a number", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(2))}, "redis-0 redis-1", nil},
		{"all that there are, by number", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(3))}, "redis-0 redis-1 redis-2", nil},
		{"more than there are", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount, Count: new(int32(4))}, v1alpha1.ReasonNoTarget, []string{"spec.select.count", "3"}},
		{"more replicas than there are", v1alpha1.FaultSelector{Role: v1alpha1.RoleReplica, Mode: v1alpha1.SelectCount, Count: new(int32(3))}, v1alpha1.ReasonNoTarget, []string{"spec.select.count", "2"}},
		{"mode Count without a count", v1alpha1.FaultSelector{Mode: v1alpha1.SelectCount}, v1alpha1.ReasonNoTarget, []string{"spec.select.count"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			redisPods(w)
			found, err := selected(t.Context(), w.deps(), all, tc.selector)
			if err != nil {
				problem := problemOf(t, err)
				if problem.Reason != tc.want || problem.Lasting {
					t.Errorf("problem %s (lasting %v), want %s, to be tried again", problem.Reason, problem.Lasting, tc.want)
				}
				for _, text := range tc.says {
					if !strings.Contains(problem.Message, text) {
						t.Errorf("message %q does not say %q", problem.Message, text)
					}
				}
				return
			}
			names := make([]string, len(found))
			for i, f := range found {
				names[i] = f.Pod
			}
			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSelectNobodyHasTheRole(t *testing.T) {
	w := newWorld(t)
	w.pod("redis-0", "u0", "10.0.0.1", topology.Replica, nil)
	w.pod("redis-1", "u1", "10.0.0.2", "", nil)
	_, err := selected(t.Context(), w.deps(), byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary})
	problem := problemOf(t, err)
	for _, text := range []string{"Primary", "redis-0 is Replica", "redis-1 did not answer", errSilent.Error()} {
		if !strings.Contains(problem.Message, text) {
			t.Errorf("message %q does not say %q", problem.Message, text)
		}
	}
	if problem.Reason != v1alpha1.ReasonNoTarget || problem.Lasting {
		t.Errorf("%+v", problem)
	}
}

// What is recorded of a target is all that an injector of another process needs.
func TestSelectRecords(t *testing.T) {
	w := newWorld(t)
	w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 })
	found, err := selected(t.Context(), w.deps(), byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{})
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Node: "node-1", Role: v1alpha1.RolePrimary, Address: "10.0.0.1:6379", RunID: "run-u0", RestartCount: 3, Container: "redis"}
	if !reflect.DeepEqual(found[0], want) {
		t.Errorf("recorded %+v, want %+v", found[0], want)
	}
}

func TestPods(t *testing.T) {
	w := newWorld(t,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "redis"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "redis", "tier": "cache"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bare"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "redis-9", Labels: map[string]string{"app": "redis", "tier": "cache"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.99"}},
	)
	cache := func(p *corev1.Pod) { p.Labels["tier"] = "cache" }
	w.pod("redis-1", "u1", "10.0.0.1", "", cache)
	w.pod("redis-0", "u0", "10.0.0.2", "", cache)
	w.pod("plain", "u2", "10.0.0.3", "", nil)
	w.pod("not-ready", "u7", "10.0.0.7", "", func(p *corev1.Pod) {
		cache(p)
		p.Status.Conditions[0].Status = corev1.ConditionFalse // a replica that is down is a target of its own right
	})
	w.pod("going", "u3", "10.0.0.4", "", func(p *corev1.Pod) {
		cache(p)
		p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"example.com/held"}
	})
	w.pod("no-address", "u4", "", "", cache)
	w.pod("pending", "u5", "10.0.0.5", "", func(p *corev1.Pod) { cache(p); p.Status.Phase = corev1.PodPending })
	w.pod("over", "u6", "10.0.0.6", "", func(p *corev1.Pod) { cache(p); p.Status.Phase = corev1.PodSucceeded })

	service := func(name string) *v1alpha1.ServiceReference { return &v1alpha1.ServiceReference{Name: name} }
	for _, tc := range []struct {
		name    string
		target  *v1alpha1.RedisTarget
		want    string // pods, or the reason of the problem
		lasting bool
		says    string
	}{
		{"the Service's selector", &v1alpha1.RedisTarget{Service: service("redis")}, "not-ready redis-0 redis-1", false, ""},
		{"podSelector wins over the Service", &v1alpha1.RedisTarget{Service: service("gone"), PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}}, "not-ready plain redis-0 redis-1", false, ""},
		{"expressions", &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}}, "plain", false, ""},
		{"no such Service", &v1alpha1.RedisTarget{Service: service("gone")}, v1alpha1.ReasonServiceNotFound, false, "spec.target.service.name"},
		{"a Service without a selector", &v1alpha1.RedisTarget{Service: service("bare")}, v1alpha1.ReasonNoTarget, true, "spec.target.podSelector"},
		{"addresses only", &v1alpha1.RedisTarget{Addresses: []string{"redis:6379"}}, v1alpha1.ReasonNoTarget, true, "spec.target.podSelector"},
		{"nothing matches", byPods(map[string]string{"app": "none"}), v1alpha1.ReasonNoTarget, false, "spec.target.podSelector"},
		{"a selector that is none", &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}}}}, v1alpha1.ReasonInvalidSpec, true, "spec.target.podSelector"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pods, err := on(w.deps(), tc.target).Pods(t.Context())
			if err != nil {
				problem := problemOf(t, err)
				if problem.Reason != tc.want || problem.Lasting != tc.lasting || !strings.Contains(problem.Message, tc.says) {
					t.Errorf("problem %+v, want %s, lasting %v, about %s", problem, tc.want, tc.lasting, tc.says)
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

// An API server that does not answer is no Problem of the spec: it is asked again.
func TestPodsPassesErrorsOn(t *testing.T) {
	w := newWorld(t)
	w.hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewInternalError(errors.New("etcd is away"))
	}
	_, err := on(w.deps(), &v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}}).Pods(t.Context())
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
		{"the port tells", []corev1.Container{container("proxy", "redis-proxy", 9000), container("db", "acme/cache:1", 6379)}, "db", "10.0.0.1:6379"},
		{"one of several ports", []corev1.Container{container("db", "acme/cache:1", 16379, 6379)}, "db", "10.0.0.1:6379"},
		{"the image tells", []corev1.Container{container("sidecar", "envoy", 9901), container("db", "docker.io/valkey/valkey:8", 7000)}, "db", "10.0.0.1:7000"},
		{"nothing tells: the first", []corev1.Container{container("a", "acme/a"), container("b", "acme/b")}, "a", "10.0.0.1:6379"},
		{"a port of its own", []corev1.Container{container("a", "acme/a", 6380)}, "a", "10.0.0.1:6380"},
		{"no container", nil, "", "10.0.0.1:6379"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: tc.containers}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
			if got := (target.Redis{}).Container(pod).Name; got != tc.container {
				t.Errorf("container %q, want %q", got, tc.container)
			}
			if got := addressOf(pod); got != tc.address {
				t.Errorf("address %q, want %q", got, tc.address)
			}
		})
	}
	if got := addressOf(&corev1.Pod{Status: corev1.PodStatus{PodIP: "fd00::1"}}); got != "[fd00::1]:6379" {
		t.Errorf("IPv6 address %q", got)
	}
}

func TestRestartCount(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", RestartCount: 9}, {Name: "redis", RestartCount: 2}}}}
	for container, want := range map[string]int32{"redis": 2, "proxy": 9, "none": 0} {
		if got := restartCount(pod, container); got != want {
			t.Errorf("%s: %d restarts, want %d", container, got, want)
		}
	}
}

// Many servers are asked side by side, each with its own answer.
func TestSelectKeepsAnswersApart(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		role := topology.Replica
		if i == 33 {
			role = topology.Primary
		}
		w.pod(fmt.Sprintf("redis-%02d", i), fmt.Sprintf("u%d", i), fmt.Sprintf("10.0.0.%d", i+1), role, nil)
	}
	found, err := selected(t.Context(), w.deps(), byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll})
	if err != nil || len(found) != 40 {
		t.Fatalf("%d found: %v", len(found), err)
	}
	for i, f := range found {
		if f.RunID != fmt.Sprintf("run-u%d", i) || (f.Role == v1alpha1.RolePrimary) != (i == 33) {
			t.Errorf("record %d: %+v", i, f)
		}
	}
}
