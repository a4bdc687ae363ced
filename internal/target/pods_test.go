package target_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "redis", "tier": "cache"}},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "bare"}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "other",
				Name:      "redis-9",
				Labels:    map[string]string{"app": "redis", "tier": "cache"},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.99"},
		},
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
		{
			"podSelector has precedence over the Service",
			&v1alpha1.RedisTarget{
				Service:     service("gone"),
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			},
			"not-ready plain redis-0 redis-1",
			false,
			"",
		},
		{
			"expressions",
			&v1alpha1.RedisTarget{
				PodSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}},
				},
			},
			"plain",
			false,
			"",
		},
		{
			"no such Service",
			&v1alpha1.RedisTarget{Service: service("gone")},
			v1alpha1.ReasonServiceNotFound,
			false,
			"spec.target.service.name",
		},
		{
			"a Service without a selector",
			&v1alpha1.RedisTarget{Service: service("bare")},
			v1alpha1.ReasonNoTarget,
			true,
			"spec.target.podSelector",
		},
		{
			"addresses only",
			&v1alpha1.RedisTarget{Addresses: []string{"redis:6379"}},
			v1alpha1.ReasonNoTarget,
			true,
			"spec.target.podSelector",
		},
		{
			"nothing matches",
			faulttest.ByPods(map[string]string{"app": "none"}),
			v1alpha1.ReasonNoTarget,
			false,
			"spec.target.podSelector",
		},
		{
			"a selector that is none",
			&v1alpha1.RedisTarget{
				PodSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Like"}},
				},
			},
			v1alpha1.ReasonInvalidSpec,
			true,
			"spec.target.podSelector",
		},
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

// A Redis that starts is not loaded before all its pods are ready, but no pod keeps the load from its start for longer
// than the patience.
func TestReady(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	pod := func(name string, since time.Duration, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(since)},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning,
				PodIP: "10.0.0.1",
				Conditions: []corev1.PodCondition{
					{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(since)},
				},
			},
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	pending := func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }
	deleted := func(since, grace time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(ago(since-grace)), new(int64(grace.Seconds()))
		}
	}
	ofAJob := func(p *corev1.Pod) {
		unready(p)
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", Name: "form", UID: "u", Controller: new(true)},
		}
	}
	const patience = time.Minute
	for _, tc := range []struct {
		name  string
		since time.Duration // since the load was first to begin
		pod   corev1.Pod    // beside one that is ready
		want  string        // pods, or what is said of the one that is waited for
	}{
		{"ready", 0, pod("b", time.Second, nil), "a b"},
		{"it starts", 59 * time.Second, pod("b", time.Second, pending), "is Pending"},
		{"it is not ready", 59 * time.Second, pod("b", time.Second, unready), "is not ready"},
		{"it is not ready for long", 0, pod("b", patience, unready), "a b"},
		{"it is pending for long", 0, pod("b", patience, pending), "a"},
		{"it comes and goes", patience, pod("b", time.Second, unready), "a b"},
		{"it is recreated again and again", patience, pod("b", time.Second, pending), "a"},
		{"it is being deleted", 0, pod("b", time.Hour, deleted(time.Second, 30*time.Second)), "is terminating"},
		{"its deletion hangs", 0, pod("b", time.Hour, deleted(patience, 10*time.Minute)), "a"},
		{"it belongs to a Job", 0, pod("b", time.Second, ofAJob), "a"},
		{"it has ended", 0, pod("b", time.Second, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			redis := target.Redis{Spec: faulttest.ByPods(map[string]string{"app": "redis"})}
			found, err := redis.Ready([]corev1.Pod{pod("a", time.Hour, nil), tc.pod}, now.Add(-tc.since), now, patience)
			var got []string
			for _, p := range found {
				got = append(got, p.Name)
			}
			if err != nil {
				got = []string{faulttest.ProblemOf(t, err).Message}
			}
			if text := strings.Join(got, " "); err == nil && text != tc.want ||
				err != nil && !strings.Contains(text, "pod b "+tc.want) {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
	alone := []corev1.Pod{pod("a", time.Hour, unready)}
	if found, err := (target.Redis{Spec: faulttest.ByPods(nil)}).Ready(alone, now, now, patience); err != nil ||
		len(found) != 1 {
		t.Errorf("one that never is ready, alone: %v, %v", found, err)
	}
}

// An error of the API server is no Problem of the spec: the request is retried.
func TestPodsPassesErrorsOn(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Hooks.Get = func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewInternalError(errors.New("etcd is away"))
	}
	_, err := faulttest.On(w.Deps(), &v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis"}}).Pods(
		t.Context())
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
		{
			"identified by the port",
			[]corev1.Container{container("proxy", "redis-proxy", 9000), container("db", "acme/cache:1", 6379)},
			"db",
			"10.0.0.1:6379",
		},
		{"one of several ports", []corev1.Container{container("db", "acme/cache:1", 16379, 6379)}, "db", "10.0.0.1:6379"},
		{
			"identified by the image",
			[]corev1.Container{container("sidecar", "envoy", 9901), container("db", "docker.io/valkey/valkey:8", 7000)},
			"db",
			"10.0.0.1:7000",
		},
		{
			"not identified: the first",
			[]corev1.Container{container("a", "acme/a"), container("b", "acme/b")},
			"a",
			"10.0.0.1:6379",
		},
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
