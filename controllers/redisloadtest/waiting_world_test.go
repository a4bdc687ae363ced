package redisloadtest_test

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
	"github.com/redquake/redquake/internal/testing/operatortest"
)

func bySelector(test *v1alpha1.RedisLoadTest) { test.Spec.Target.Addresses = nil }

// waitsFor checks that a load test has not begun, with a reason and a message.
func waitsFor(p *operatortest.Place, name, reason string, words ...string) {
	p.T.Helper()
	test := p.TestHasReason(name, 20*time.Second, reason)
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionComplete)
	for _, want := range words {
		if !strings.Contains(c.Message, want) {
			p.T.Errorf("%s waits: %s, want a message with %q", name, c.Message, want)
		}
	}
	if test.Status.StartTime != nil {
		p.T.Errorf("%s has begun at %s", name, test.Status.StartTime)
	}
}

// selectedPod makes a pod of Redis in a phase.
func selectedPod(
	p *operatortest.Place, name, ip string, phase corev1.PodPhase, conditions ...corev1.PodCondition,
) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "redis"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "redis:7"}}},
	}
	p.Create(pod)
	pod.Status = corev1.PodStatus{Phase: phase, PodIP: ip, Conditions: conditions}
	p.MustChange(p.Client.Status().Update(p.T.Context(), pod))
	return pod
}

// Load test and fault may be there before their Redis, which comes pod by pod: they say what they wait for.
func TestAppliedBeforeRedis(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.HzFault(func(f *v1alpha1.RedisFault) {
			f.Name, f.Spec.Duration, f.Spec.Trigger.After = "set", operatortest.Length(2*time.Second),
				operatortest.Length(time.Second)
		}))
		p.FaultHasReason("set", 20*time.Second, v1alpha1.ReasonLoadTestNotFound)
		time.Sleep(time.Minute)
		p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
			bySelector(test)
			test.Spec.Load.Duration = operatortest.Length(30 * time.Second)
		}))
		waitsFor(p, "run", v1alpha1.ReasonNoTarget, "spec.target.podSelector")
		p.FaultHasReason("set", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
		time.Sleep(time.Minute)
		starting := selectedPod(p, "redis-1", "", corev1.PodPending)
		waitsFor(p, "run", v1alpha1.ReasonTargetNotReady, "pod redis-1 is Pending")
		w.StartRedis("")
		waitsFor(p, "run", v1alpha1.ReasonTargetNotReady, "pod redis-1 is Pending")
		starting.Status.Phase = corev1.PodSucceeded
		p.MustChange(p.Client.Status().Update(t.Context(), starting))
		if test := p.TestEnds("run", time.Minute); operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the load test: %s", operatortest.Where(test.Status.Conditions))
		}
		if f := p.FaultEnds("set", time.Minute); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the fault: %s", operatortest.Where(f.Status.Conditions))
		}
	})
}

// A fault that has its target from a load test does not follow that to another Redis: whoever may change the load test
// may not be allowed to break Redis.
func TestFaultDoesNotFollowItsLoadTest(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		elsewhere := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "billing"}}
		here := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}}
		turn := func(to *metav1.LabelSelector, suspend bool) {
			p.MustChange(operatortest.Change(p, &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "run"}},
				func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Target.PodSelector, test.Spec.Suspend = to, suspend
				}))
		}
		waiting := func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend, test.Spec.Target.PodSelector = true, elsewhere }
		p.CreateLoad(operatortest.Load(waiting))
		p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, nil))
		p.Create(operatortest.NewFault("own", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Target, f.Spec.DryRun = &v1alpha1.RedisTarget{PodSelector: here}, true
		}))
		p.FaultHasReason("kill", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
		turn(here, true)
		f := p.FaultHasReason("kill", 20*time.Second, v1alpha1.ReasonTargetChanged)
		if c := meta.FindStatusCondition(f.Status.Conditions,
			v1alpha1.ConditionComplete); !strings.Contains(c.Message, "status.target") ||
			f.Status.Target.PodSelector.MatchLabels["app"] != "billing" {
			t.Errorf("%s: %+v", c.Message, f.Status.Target)
		}
		p.MustChange(p.Client.Delete(t.Context(), p.LoadTest("run")))
		p.FaultHasReason("kill", 20*time.Second, v1alpha1.ReasonLoadTestNotFound)
		p.CreateLoad(operatortest.Lasting(20 * time.Second))
		p.FaultHasReason("kill", 20*time.Second, v1alpha1.ReasonTargetChanged)
		if f := p.FaultEnds("own", time.Minute); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonDryRun {
			t.Errorf("a fault with a target of its own: %s", operatortest.Where(f.Status.Conditions))
		}
		f = p.FaultEnds("kill", 10*time.Minute)
		if failed := meta.FindStatusCondition(f.Status.Conditions,
			v1alpha1.ConditionFailed); failed.Status != metav1.ConditionTrue || f.Status.InjectedAt != nil ||
			len(p.Redis.PodsDeleted()) > 0 {
			t.Errorf("%s, injected at %v, deleted %v", operatortest.Where(f.Status.Conditions), f.Status.InjectedAt,
				p.Redis.PodsDeleted())
		}
	})
}

// A Redis without one of its pods for long is loaded as it is.
func TestPodThatIsNotReadyForLong(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		w.StartRedis("")
		w.Kubelet.Start()
		operatortest.StartOperator(p, operatortest.Spy{})
		selectedPod(p, "redis-1", w.Subnet+"3", corev1.PodRunning, corev1.PodCondition{
			Type:               corev1.PodReady,
			Status:             corev1.ConditionFalse,
			Message:            "the disk is gone",
			LastTransitionTime: metav1.Now(),
		})
		p.Create(operatortest.NewLoadTest("early", "", func(test *v1alpha1.RedisLoadTest) {
			bySelector(test)
			test.Spec.Pods.StartDeadline = *operatortest.Length(30 * time.Second)
		}))
		// for half of the time
		waitsFor(p, "early", v1alpha1.ReasonTargetNotReady, "pod redis-1 is not ready: the disk is gone")
		if test := p.TestEnds("early", time.Minute); operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("the load test: %s", operatortest.Where(test.Status.Conditions))
		}
	})
}

// A Redis that does not serve yet is waited for, with the reason as the status, and until the start deadline.
func TestRedisThatDoesNotServeYet(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		server := w.StartEngine()
		server.SetLoading(true)
		operatortest.StartOperator(p, operatortest.Spy{})
		p.Create(operatortest.NewLoadTest("later", server.Address(), nil))
		p.Create(operatortest.NewLoadTest("never", server.Address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Pods.StartDeadline = *operatortest.Length(30 * time.Second)
		}))
		waitsFor(p, "later", string(plan.TargetUnreachable), "0 of 1 load pods are ready", server.Address(), "LOADING")
		failed(p, "never", time.Minute, string(plan.TargetUnreachable), "spec.pods.startDeadline: after 30s", "LOADING")
		server.Kill()
		time.Sleep(time.Minute)
		waitsFor(p, "later", string(plan.TargetUnreachable), "is not ready: ")
		server.SetLoading(false)
		server.Restart()
		if test := p.TestEnds("later",
			time.Minute); operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			test.Status.Summary.Errors > 0 {
			t.Errorf("the load test: %s", operatortest.Where(test.Status.Conditions))
		}
	})
}

// Load pods that were given a pod of Redis that has been replaced are replaced as well, until the load begins.
func TestRedisReplacedBeforeTheStart(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		w.StartEngine().Kill()
		operatortest.StartOperator(p, operatortest.Spy{})
		first := selectedPod(p, "redis-0", w.Subnet+"3", corev1.PodRunning)
		p.Create(operatortest.NewLoadTest("run", "", bySelector))
		waitsFor(p, "run", string(plan.TargetUnreachable), w.Subnet+"3:6379 is not ready")
		p.MustChange(p.Client.Delete(t.Context(), first, client.GracePeriodSeconds(0)))
		memredis.Start(t, w.Network, w.Subnet+"4:6379", memredis.Options{})
		selectedPod(p, "redis-0", w.Subnet+"4", corev1.PodRunning)
		test := p.TestEnds("run", time.Minute)
		if s := test.Status; operatortest.Reason(s.Conditions) != v1alpha1.ReasonSucceeded || s.Target == nil ||
			strings.Join(s.Target.Addresses, ",") != w.Subnet+"4:6379" {
			t.Errorf("the load test: %s, %+v", operatortest.Where(s.Conditions), s.Target)
		}
	})
}
