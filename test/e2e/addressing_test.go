//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestAddressing(t *testing.T) {
	t.Parallel()
	addressing(t)
}

// addressing loads the same Redis by each way to name it.
func addressing(t *testing.T) {
	n := newNamespace(t, "addressing")
	n.applyRedis(nil)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}
	cases := []struct {
		name   string
		target v1alpha1.RedisTarget
		want   string
	}{
		{"cluster-ip", v1alpha1.RedisTarget{Addresses: []string{n.redisAddress()}}, n.redisAddress()},
		{"pod-name", v1alpha1.RedisTarget{Addresses: []string{"redis-0.redis-headless:6379"}}, "redis-0.redis-headless:6379"},
		{"pod-selector", v1alpha1.RedisTarget{PodSelector: selector}, n.redisPod().Status.PodIP + ":6379"},
		{
			"headless",
			v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis-headless"}},
			"redis-headless." + n.name + ".svc:6379",
		},
	}
	for _, c := range cases {
		test := n.smallLoad(c.name, 4*time.Second)
		test.Spec.Target, test.Spec.Load.Rate = c.target, new(int32(100))
		test.Spec.Client.RequestTimeout = *span(10 * time.Second) // an error is one of addressing, not of a busy machine
		n.create(test)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := n.in(t)
			test := n.waitLoadTest(c.name, 2*patience, v1alpha1.ReasonSucceeded)
			if got := test.Status.Target; got == nil || len(got.Addresses) != 1 || got.Addresses[0] != c.want ||
				got.Server == "" || got.Version == "" {
				t.Errorf("target %+v, want %s and what answered there", got, c.want)
			}
			if s := test.Status.Summary; s.Requests != 400 || s.Errors != 0 {
				t.Errorf("%d requests, %d errors; want 400 and none", s.Requests, s.Errors)
			}
			n.recordIsWhole(test, n.record(test))
		})
	}
}
