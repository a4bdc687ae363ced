package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/memredis"
)

func bySelector(test *v1alpha1.RedisLoadTest) { test.Spec.Target.Addresses = nil }

// waitsFor checks that a load test has not begun, with a reason and a message.
func (p *place) waitsFor(name, reason string, words ...string) {
	p.t.Helper()
	test := p.testHasReason(name, 20*time.Second, reason)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	for _, want := range words {
		if !strings.Contains(c.Message, want) {
			p.t.Errorf("%s waits: %s, want a message with %q", name, c.Message, want)
		}
	}
	if test.Status.StartTime != nil {
		p.t.Errorf("%s has begun at %s", name, test.Status.StartTime)
	}
}

// selectedPod makes a pod of Redis in a phase.
func (p *place) selectedPod(name, ip string, phase corev1.PodPhase, conditions ...corev1.PodCondition) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "redis"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "redis:7"}}},
	}
	p.create(pod)
	pod.Status = corev1.PodStatus{Phase: phase, PodIP: ip, Conditions: conditions}
	p.mustChange(p.client.Status().Update(p.t.Context(), pod))
	return pod
}

// Load test and fault may be there before their Redis, which comes pod by pod: they say what they wait for.
func TestAppliedBeforeRedis(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		w.kubelet.Start()
		startOperator(p, spy{})
		p.create(hzFault(func(f *v1alpha1.RedisFault) {
			f.Name, f.Spec.Duration, f.Spec.Trigger.After = "set", length(2*time.Second), length(time.Second)
		}))
		p.faultHasReason("set", 20*time.Second, v1alpha1.ReasonLoadTestNotFound)
		time.Sleep(time.Minute)
		p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
			bySelector(test)
			test.Spec.Load.Duration = length(30 * time.Second)
		}))
		p.waitsFor("run", v1alpha1.ReasonNoTarget, "spec.target.podSelector")
		p.faultHasReason("set", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
		time.Sleep(time.Minute)
		starting := p.selectedPod("redis-1", "", corev1.PodPending)
		p.waitsFor("run", v1alpha1.ReasonTargetNotReady, "pod redis-1 is Pending")
		w.startRedis("")
		p.waitsFor("run", v1alpha1.ReasonTargetNotReady, "pod redis-1 is Pending")
		starting.Status.Phase = corev1.PodSucceeded
		p.mustChange(p.client.Status().Update(t.Context(), starting))
		if test := p.testEnds("run", time.Minute); reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the load test: %s", where(test.Status.Conditions))
		}
		if f := p.faultEnds("set", time.Minute); reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the fault: %s", where(f.Status.Conditions))
		}
	})
}

// A fault that has its target from a load test does not follow that to another Redis: whoever may change the load test
// may not be allowed to break Redis.
func TestFaultDoesNotFollowItsLoadTest(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		elsewhere := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "billing"}}
		here := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}
		turn := func(to *metav1.LabelSelector, suspend bool) {
			p.mustChange(change(p, &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "run"}},
				func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Target.PodSelector, test.Spec.Suspend = to, suspend
				}))
		}
		waiting := func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend, test.Spec.Target.PodSelector = true, elsewhere }
		p.create(newLoadTest("run", redis.address(), waiting))
		p.create(newFault("kill", "run", v1alpha1.FaultPodKill, nil))
		p.create(newFault("own", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Target, f.Spec.DryRun = &v1alpha1.RedisTarget{PodSelector: here}, true
		}))
		p.faultHasReason("kill", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
		turn(here, true)
		f := p.faultHasReason("kill", 20*time.Second, v1alpha1.ReasonTargetChanged)
		if c := meta.FindStatusCondition(f.Status.Conditions,
			v1alpha1.ConditionComplete); !strings.Contains(c.Message, "status.target") ||
			f.Status.Target.PodSelector.MatchLabels["app"] != "billing" {
			t.Errorf("%s: %+v", c.Message, f.Status.Target)
		}
		p.mustChange(p.client.Delete(t.Context(), p.loadTest("run")))
		p.faultHasReason("kill", 20*time.Second, v1alpha1.ReasonLoadTestNotFound)
		p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				20 * time.Second)
		}))
		p.faultHasReason("kill", 20*time.Second, v1alpha1.ReasonTargetChanged)
		if f := p.faultEnds("own", time.Minute); reason(f.Status.Conditions) != v1alpha1.ReasonDryRun {
			t.Errorf("a fault with a target of its own: %s", where(f.Status.Conditions))
		}
		f = p.faultEnds("kill", 10*time.Minute)
		if failed := meta.FindStatusCondition(f.Status.Conditions,
			v1alpha1.ConditionFailed); failed.Status != metav1.ConditionTrue || f.Status.InjectedAt != nil ||
			len(redis.podsDeleted()) > 0 {
			t.Errorf("%s, injected at %v, deleted %v", where(f.Status.Conditions), f.Status.InjectedAt, redis.podsDeleted())
		}
	})
}

// A Redis without one of its pods for long is loaded as it is.
func TestPodThatIsNotReadyForLong(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		w.startRedis("")
		w.kubelet.Start()
		startOperator(p, spy{})
		p.selectedPod("redis-1", w.subnet+"3", corev1.PodRunning, corev1.PodCondition{
			Type:               corev1.PodReady,
			Status:             corev1.ConditionFalse,
			Message:            "the disk is gone",
			LastTransitionTime: metav1.Now(),
		})
		p.create(newLoadTest("early", "", func(test *v1alpha1.RedisLoadTest) {
			bySelector(test)
			test.Spec.Pods.StartDeadline = *length(30 * time.Second)
		}))
		// for half of the time
		p.waitsFor("early", v1alpha1.ReasonTargetNotReady, "pod redis-1 is not ready: the disk is gone")
		if test := p.testEnds("early", time.Minute); reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the load test: %s", where(test.Status.Conditions))
		}
	})
}

// A Redis that does not serve yet is waited for, with the reason as the status, and until the start deadline.
func TestRedisThatDoesNotServeYet(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		server := w.startEngine()
		server.SetLoading(true)
		startOperator(p, spy{})
		p.create(newLoadTest("later", server.Address(), nil))
		p.create(newLoadTest("never", server.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.StartDeadline = *length(30 * time.Second)
		}))
		p.waitsFor("later", string(plan.TargetUnreachable), "0 of 1 load pods are ready", server.Address(), "LOADING")
		p.failed("never", time.Minute, string(plan.TargetUnreachable), "spec.pods.startDeadline: after 30s", "LOADING")
		server.Kill()
		time.Sleep(time.Minute)
		p.waitsFor("later", string(plan.TargetUnreachable), "is not ready: ")
		server.SetLoading(false)
		server.Restart()
		if test := p.testEnds("later", time.Minute); reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			test.Status.Summary.Errors > 0 {
			t.Errorf("the load test: %s", where(test.Status.Conditions))
		}
	})
}

// Load pods that were given a pod of Redis that has been replaced are replaced as well, until the load begins.
func TestRedisReplacedBeforeTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		p, t := w.place, w.t
		w.startEngine().Kill()
		startOperator(p, spy{})
		first := p.selectedPod("redis-0", w.subnet+"3", corev1.PodRunning)
		p.create(newLoadTest("run", "", bySelector))
		p.waitsFor("run", string(plan.TargetUnreachable), w.subnet+"3:6379 is not ready")
		p.mustChange(p.client.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
		memredis.Start(t, w.network, w.subnet+"4:6379", memredis.Options{})
		p.selectedPod("redis-0", w.subnet+"4", corev1.PodRunning)
		test := p.testEnds("run", time.Minute)
		if s := test.Status; reason(s.Conditions) != v1alpha1.ReasonSucceeded || s.Target == nil ||
			strings.Join(s.Target.Addresses, ",") != w.subnet+"4:6379" {
			t.Errorf("the load test: %s, %+v", where(s.Conditions), s.Target)
		}
	})
}
