package pod

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func TestPodKillPreflight(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("bare", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.OwnerReferences = nil })
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "bare", UID: "u0"}))
	if !problem.Lasting || problem.Reason != v1alpha1.ReasonInvalidSpec ||
		!strings.Contains(problem.Message, "no controller") {
		t.Errorf("%+v", problem)
	}
}

func TestPodKillGrace(t *testing.T) {
	for _, grace := range []*int64{nil, new(int64(0)), new(int64(7))} {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		var given client.DeleteOptions
		w.Hooks.Delete = func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			given.ApplyOptions(options)
			return nil
		}
		injector, err := Kinds.For(
			&v1alpha1.RedisFaultSpec{
				Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill, PodKill: &v1alpha1.PodKill{GracePeriodSeconds: grace}},
			}, w.Deps())
		if err != nil {
			t.Fatal(err)
		}
		if err := faulttest.Called(
			injector.Inject(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"})); err != nil {
			t.Fatal(err)
		}
		if (grace == nil) != (given.GracePeriodSeconds == nil) || grace != nil && *given.GracePeriodSeconds != *grace {
			t.Errorf("grace period %v, want %v", given.GracePeriodSeconds, grace)
		}
		if given.Preconditions == nil || given.Preconditions.UID == nil || *given.Preconditions.UID != "u0" {
			t.Errorf("deleted without a precondition of the UID: %+v", given.Preconditions)
		}
	}
}

func TestPodKillEffect(t *testing.T) {
	w := faulttest.NewWorld(t)
	pod := w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Finalizers = []string{"example.com/held"}
	})
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &faulttest.Case{
		World:    w,
		Pod:      pod,
		Injector: injector,
		Target:   &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0"},
	}
	c.Inject()
	c.Effect(v1alpha1.EffectInconclusive, "terminating")
	if err := w.Cluster.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = nil
	if err := w.Cluster.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.Effect(v1alpha1.EffectConfirmed, "gone")
	w.Pod("redis-0", "u1", "10.0.0.1", "", nil)
	w.Servers.Kill("10.0.0.1:6379")
	c.Effect(v1alpha1.EffectConfirmed, "u1 instead of u0")
	w.Servers.Start("10.0.0.1:6379", memredis.State{RunID: "run-u0"})
	c.Effect(v1alpha1.EffectInconclusive, "still has run_id")
	w.Servers.Start("10.0.0.1:6379", memredis.State{RunID: "run-u1"})
	c.Effect(v1alpha1.EffectConfirmed, "run-u1")
}

// Only an owner that is a controller replaces the pod.
func TestPodKillPreflightAsksTheController(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "not-a-controller", UID: "x"}}
	})
	injector, err := Kinds.For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	if p := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"})); !p.Lasting {
		t.Errorf("got %v, want a lasting problem", p)
	}
}
