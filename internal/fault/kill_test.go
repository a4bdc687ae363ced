package fault

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
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
)

// killKinds are the faults that need nothing but scripted servers, each with what counts as having broken the target, and with what a target looks like once it works again.
var killKinds = []struct {
	name   string
	spec   v1alpha1.RedisFaultSpec
	broken func(w *world) int                 // how often something was broken
	heal   func(w *world, target *corev1.Pod) // as StatefulSet or kubelet would
}{
	{"PodKill", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, deletions, newPod},
	{"PodKill at once", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill, PodKill: &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))}}}, deletions, newPod},
	{"ProcessCrash", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}}, commands("shutdown"), newProcess},
	{"ProcessCrash by segfault", v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash, ProcessCrash: &v1alpha1.ProcessCrash{Method: v1alpha1.CrashSegfault}}}, commands("segfault"), newProcess},
}

func deletions(w *world) int { return len(w.deleted) }

func commands(kind string) func(*world) int {
	return func(w *world) int {
		n := 0
		for _, what := range w.servers.sent {
			if strings.HasPrefix(what, kind) {
				n++
			}
		}
		return n
	}
}

func newPod(w *world, target *corev1.Pod) {
	deleted := slices.Clone(w.deleted)
	w.replace(target, "replacement")
	w.deleted = deleted
}

func newProcess(w *world, target *corev1.Pod) {
	w.servers.servers[addressOf(target)] = topology.Server{RunID: "another", Role: topology.Primary}
	w.update(target, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount++ })
}

// contract is one injector before its target, with the record as the controller stored it.
type contractCase struct {
	*world
	pod      *corev1.Pod
	injector contract.Injector
	target   *v1alpha1.FaultTarget
}

func forEachKill(t *testing.T, check func(t *testing.T, c *contractCase, broken func() int, heal func())) {
	for _, kind := range killKinds {
		t.Run(kind.name, func(t *testing.T) {
			w := newWorld(t)
			pod := w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
			injector, err := For(&kind.spec, w.deps())
			if err != nil {
				t.Fatal(err)
			}
			found, err := selected(t.Context(), w.deps(), byPods(map[string]string{"app": "redis"}), v1alpha1.FaultSelector{})
			if err != nil {
				t.Fatal(err)
			}
			c := &contractCase{world: w, pod: pod, injector: injector, target: &found[0]}
			check(t, c, func() int { return kind.broken(w) }, func() { kind.heal(w, pod) })
		})
	}
}

func (c *contractCase) inject() {
	c.t.Helper()
	if err := called(c.injector.Inject(c.t.Context(), c.target)); err != nil {
		c.t.Errorf("inject: %v", err)
	}
}

func (c *contractCase) revert() {
	c.t.Helper()
	if err := called(c.injector.Revert(c.t.Context(), c.target)); err != nil {
		c.t.Errorf("revert: %v", err)
	}
}

func (c *contractCase) effect(want v1alpha1.Effect, says string) {
	c.t.Helper()
	if got, evidence := c.injector.Effect(c.t.Context(), c.target); got != want || !strings.Contains(evidence, says) {
		c.t.Errorf("effect %s (%s), want %s about %q", got, evidence, want, says)
	}
}

func TestKillBeforeAndAfter(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, broken func() int, heal func()) {
		if err := c.injector.Preflight(t.Context(), c.target); err != nil {
			t.Errorf("preflight: %v", err)
		}
		c.effect(v1alpha1.EffectNotObserved, "still")
		if n := broken(); n != 0 {
			t.Fatalf("%d things were broken before Inject", n)
		}
		c.inject()
		if n := broken(); n != 1 {
			t.Errorf("%d things were broken, want 1", n)
		}
		heal()
		c.effect(v1alpha1.EffectConfirmed, "")
		c.revert()
		if n := broken(); n != 1 {
			t.Errorf("%d things were broken in the end, want 1", n)
		}
	})
}

func TestKillInjectTwice(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, broken func() int, heal func()) {
		c.inject()
		heal()
		c.inject() // an operator that died before it could note the first
		c.inject()
		if n := broken(); n != 1 {
			t.Errorf("%d things were broken, want 1: the one that came instead must be left alone", n)
		}
	})
}

func TestKillRevertFirst(t *testing.T) {
	forEachKill(t, func(_ *testing.T, c *contractCase, broken func() int, _ func()) {
		c.revert()
		c.effect(v1alpha1.EffectNotObserved, "")
		if n := broken(); n != 0 {
			c.t.Errorf("Revert broke %d things", n)
		}
	})
}

func TestKillTargetGone(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, broken func() int, _ func()) {
		if err := c.cluster.Delete(t.Context(), c.pod); err != nil {
			t.Fatal(err)
		}
		before := broken()
		delete(c.servers.servers, c.target.Address)
		c.inject()
		c.revert()
		if n := broken() - before; n != 0 {
			t.Errorf("%d things were broken though the target is gone", n)
		}
	})
}

func TestKillTargetReplaced(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, broken func() int, _ func()) {
		c.replace(c.pod, "replacement")
		c.inject()
		c.revert()
		if n := broken(); n != 0 {
			t.Errorf("%d things were broken: the name belongs to another pod now", n)
		}
		if err := c.cluster.Get(t.Context(), client.ObjectKeyFromObject(c.pod), &corev1.Pod{}); err != nil {
			t.Errorf("the other pod: %v", err)
		}
	})
}

func TestKillCancelled(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, broken func() int, _ func()) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := called(c.injector.Inject(ctx, c.target)); !errors.Is(err, context.Canceled) {
			t.Errorf("inject after the context ended: %v", err)
		}
		if n := broken(); n != 0 {
			t.Errorf("%d things were broken after the context ended", n)
		}
		if effect, _ := c.injector.Effect(ctx, c.target); effect == v1alpha1.EffectConfirmed {
			t.Error("what could not be asked is confirmed")
		}
		c.inject()
		if n := broken(); n != 1 {
			t.Errorf("%d things were broken by the next try, want 1", n)
		}
	})
}

// Whatever else refuses the breaking call is an error, and not a success.
func TestKillRefused(t *testing.T) {
	forEachKill(t, func(t *testing.T, c *contractCase, _ func() int, _ func()) {
		refusal := apierrors.NewForbidden(corev1.Resource("pods"), "redis-0", errors.New("a webhook says no"))
		c.hooks.Delete = func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal }
		c.servers.refuse = refusal
		if err := called(c.injector.Inject(t.Context(), c.target)); !apierrors.IsForbidden(err) {
			t.Errorf("inject: %v, want the refusal", err)
		}
		c.effect(v1alpha1.EffectNotObserved, "")
	})
}

func TestPodKillPreflight(t *testing.T) {
	w := newWorld(t)
	w.pod("bare", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.OwnerReferences = nil })
	injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	problem := problemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "bare", UID: "u0"}))
	if !problem.Lasting || problem.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(problem.Message, "no controller") {
		t.Errorf("%+v", problem)
	}
}

func TestPodKillGrace(t *testing.T) {
	for _, grace := range []*int64{nil, new(int64(0)), new(int64(7))} {
		w := newWorld(t)
		w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		var given client.DeleteOptions
		w.hooks.Delete = func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			given.ApplyOptions(options)
			return nil
		}
		injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill, PodKill: &v1alpha1.PodKill{GracePeriodSeconds: grace}}}, w.deps())
		if err != nil {
			t.Fatal(err)
		}
		if err := called(injector.Inject(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"})); err != nil {
			t.Fatal(err)
		}
		if (grace == nil) != (given.GracePeriodSeconds == nil) || grace != nil && *given.GracePeriodSeconds != *grace {
			t.Errorf("grace period %v, want %v", given.GracePeriodSeconds, grace)
		}
		if given.Preconditions == nil || given.Preconditions.UID == nil || *given.Preconditions.UID != "u0" {
			t.Errorf("deleted without asking for the very pod: %+v", given.Preconditions)
		}
	}
}

func TestPodKillEffect(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/held"} })
	injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &contractCase{world: w, pod: pod, injector: injector, target: &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0"}}
	c.inject()
	c.effect(v1alpha1.EffectInconclusive, "terminating")
	if err := w.cluster.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	pod.Finalizers = nil
	if err := w.cluster.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	c.effect(v1alpha1.EffectConfirmed, "gone")
	w.pod("redis-0", "u1", "10.0.0.1", "", nil)
	delete(w.servers.servers, "10.0.0.1:6379")
	c.effect(v1alpha1.EffectConfirmed, "u1 instead of u0")
	w.servers.servers["10.0.0.1:6379"] = topology.Server{RunID: "run-u0"}
	c.effect(v1alpha1.EffectInconclusive, "still has run_id")
	w.servers.servers["10.0.0.1:6379"] = topology.Server{RunID: "run-u1"}
	c.effect(v1alpha1.EffectConfirmed, "run-u1")
}

func TestProcessCrashPreflight(t *testing.T) {
	w := newWorld(t)
	w.pod("once", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	w.pod("redis-0", "u1", "10.0.0.2", "", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways })
	injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	stays := problemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "once", UID: "u0", RunID: "r"}))
	if !stays.Lasting || !strings.Contains(stays.Message, "restartPolicy Never") {
		t.Errorf("%+v", stays)
	}
	silent := problemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u1", Address: "10.0.0.2:6379"}))
	if silent.Lasting || !strings.Contains(silent.Message, "10.0.0.2:6379") {
		t.Errorf("%+v", silent)
	}
}

func TestProcessCrashEffect(t *testing.T) {
	w := newWorld(t)
	pod := w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultProcessCrash}}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &contractCase{world: w, pod: pod, injector: injector, target: &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", Address: "10.0.0.1:6379", RunID: "run-u0", Container: "redis"}}
	c.effect(v1alpha1.EffectNotObserved, "run-u0")
	delete(w.servers.servers, c.target.Address)
	c.effect(v1alpha1.EffectInconclusive, errSilent.Error())
	w.update(pod, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 })
	c.effect(v1alpha1.EffectConfirmed, "1 restarts instead of 0")
	w.servers.servers[c.target.Address] = topology.Server{RunID: "run-new"}
	c.effect(v1alpha1.EffectConfirmed, "run-new instead of run-u0")
	w.replace(pod, "u1")
	c.effect(v1alpha1.EffectInconclusive, "replaced")
}

func TestForUnknownType(t *testing.T) {
	_, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: "Meteor"}}, contract.Deps{})
	if problem := problemOf(t, err); !problem.Lasting || problem.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(problem.Message, "Meteor") {
		t.Errorf("%+v", problem)
	}
}

// An owner that is no controller replaces nothing.
func TestPodKillPreflightAsksTheController(t *testing.T) {
	w := newWorld(t)
	w.pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "not-a-controller", UID: "x"}}
	})
	injector, err := For(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}, w.deps())
	if err != nil {
		t.Fatal(err)
	}
	if p := problemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"})); !p.Lasting {
		t.Errorf("%v may heal by itself", p)
	}
}
