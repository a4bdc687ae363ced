//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// badTarget is a target that a load test cannot load, and the expected message.
type badTarget struct {
	name   string
	target v1alpha1.RedisTarget
	reason string
	words  []string
}

func TestBadTargets(t *testing.T) {
	t.Parallel()
	badTargets(t)
}

// badTargets runs load tests, all or those named, on such targets. Each must fail within its budget with a message that
// names the cause.
func badTargets(t *testing.T, only ...string) {
	n := newNamespace(t, "badtarget")
	n.applyRedis(withPassword)
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "passwords"},
		StringData: map[string]string{"right": password, "wrong": "e2e-not-it"},
	})
	n.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "nobody"}, Ports: []corev1.ServicePort{{Port: 6379}},
	}})
	address := "redis." + n.name + ".svc:6379"
	const apiServer = "kubernetes.default.svc:443" // TLS, and HTTP within
	login := func(secret, key string) *v1alpha1.RedisAuth {
		return &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: secret, Key: key}}
	}
	service := func(name string) v1alpha1.RedisTarget {
		return v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: name}}
	}
	with := func(target v1alpha1.RedisTarget, edit func(*v1alpha1.RedisTarget)) v1alpha1.RedisTarget {
		edit(&target)
		return target
	}
	cases := []badTarget{
		{"no-service", service("nowhere"), v1alpha1.ReasonServiceNotFound, []string{"spec.target.service.name", "nowhere"}},
		{
			"no-port",
			with(service("redis"), func(r *v1alpha1.RedisTarget) { r.Service.Port = 6380 }),
			v1alpha1.ReasonServiceNotFound,
			[]string{"spec.target.service.port", "6380"},
		},
		{"no-endpoint", service("nobody"), v1alpha1.ReasonNoEndpoints, []string{"spec.target.service.name", "nobody:6379"}},
		{"no-secret", with(service("redis"), func(r *v1alpha1.RedisTarget) {
			r.Auth = login("no-such",
				"right")
		}), v1alpha1.ReasonSecretNotFound, []string{"passwordSecretRef", "no-such"}},
		{"no-key", with(service("redis"), func(r *v1alpha1.RedisTarget) {
			r.Auth = login("passwords",
				"no-such")
		}), v1alpha1.ReasonSecretNotFound, []string{"passwordSecretRef", "no-such"}},
		{"no-password", service("redis"), string(plan.AuthenticationFailed), []string{address}},
		{"wrong-password", with(service("redis"), func(r *v1alpha1.RedisTarget) {
			r.Auth = login("passwords",
				"wrong")
		}), string(plan.AuthenticationFailed), []string{address}},
		{
			"tls-on-plain",
			with(service("redis"), func(r *v1alpha1.RedisTarget) { r.TLS = &v1alpha1.RedisTLS{} }),
			string(plan.TLSFailed),
			[]string{address},
		},
		{"plain-on-tls", v1alpha1.RedisTarget{Addresses: []string{apiServer}}, string(plan.TLSFailed), []string{apiServer}},
		{
			"not-redis",
			v1alpha1.RedisTarget{Addresses: []string{apiServer}, TLS: &v1alpha1.RedisTLS{InsecureSkipVerify: true}},
			string(plan.NotRedis),
			[]string{apiServer},
		},
		{
			"no-listener",
			v1alpha1.RedisTarget{Addresses: []string{"redis-0.redis-headless:6380"}},
			string(plan.TargetUnreachable),
			[]string{"redis-0.redis-headless:6380"},
		},
	}
	cases = slices.DeleteFunc(cases, func(c badTarget) bool { return len(only) > 0 && !slices.Contains(only, c.name) })
	for _, c := range cases {
		test := n.smallLoad(c.name, 5*time.Second)
		test.Spec.Target = c.target
		test.Spec.Pods.StartDeadline = *span(30 * time.Second) // for those that could pass
		n.create(test)
	}
	good := n.smallLoad("right-password", 2*time.Second)
	good.Spec.Target = with(service("redis"), func(r *v1alpha1.RedisTarget) { r.Auth = login("passwords", "right") })
	n.create(good)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { n.in(t).fails(c.name, 2*patience, c.reason, c.words...) })
	}
	t.Run(good.Name, func(t *testing.T) {
		n := n.in(t)
		if test := n.waitLoadTest(good.Name, 2*patience, v1alpha1.ReasonSucceeded); test.Status.Summary.Requests != 400 {
			t.Errorf("%d requests, want 400", test.Status.Summary.Requests)
		}
	})
}

const password = "e2e-right"

// withPassword makes the Redis of the samples require a password.
func withPassword(object *unstructured.Unstructured) {
	if object.GetKind() != "StatefulSet" {
		return
	}
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	server, ok := containers[0].(map[string]any)
	if !ok {
		return
	}
	args, _, _ := unstructured.NestedSlice(server, "args")
	server["args"] = append(args, "--requirepass", password)
	server["env"] = []any{map[string]any{"name": "REDISCLI_AUTH", "value": password}} // for the readiness probe
	_ = unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")
}
