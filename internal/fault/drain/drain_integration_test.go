//go:build integration

package drain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// The real eviction API refuses by a budget, and what it says is understood: also before the budget's controller, which
// does not run here, has looked at it. It evicts no pod of another UID.
func TestEvictionsOfARealAPIServer(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	pod := runningPod(t, cluster)
	budget := budgetOver("redis", map[string]string{"app": "redis"}, 0)
	budget.Status = policyv1.PodDisruptionBudgetStatus{}
	faulttest.Must(t, cluster.Create(t.Context(), budget))
	injector, err := Kinds.For(draining(nil), contract.Deps{
		Redis:   target.Redis{Namespace: faulttest.Namespace, Live: cluster},
		Cluster: cluster,
	})
	faulttest.Must(t, err)
	hit := &v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID)}
	faulttest.Must(t, injector.Preflight(t.Context(), hit))
	inject := func() error { return faulttest.Called(injector.Inject(t.Context(), hit)) }

	faulttest.MustPrepare(t, inject(), "has not processed PodDisruptionBudget redis yet")
	counts := func(allowed int32) {
		budget.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1,
			ExpectedPods: 1,
		}
		faulttest.Must(t, cluster.Status().Update(t.Context(), budget))
	}
	counts(0)
	faulttest.MustPrepare(t, inject(), "The disruption budget redis needs 1 healthy pods and has 1 currently")
	if said := injector.(contract.Adviser).Advise(t.Context(), []v1alpha1.FaultTarget{*hit}); len(said) != 1 ||
		!strings.Contains(said[0], "PodDisruptionBudget redis (maxUnavailable 1) allows no eviction now") {
		t.Errorf("it advises %q", said)
	}
	counts(1)
	another := *hit
	another.UID = "another"
	faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &another)))
	if begun, err := injector.Begun(t.Context(), hit); begun || err != nil {
		t.Fatalf("a pod of another UID was evicted: %t, %v", begun, err)
	}
	faulttest.Must(t, inject())
	if begun, err := injector.Begun(t.Context(), hit); !begun || err != nil {
		t.Errorf("evicted: %t, %v", begun, err)
	}
}

// Two budgets over one pod are refused before anything begins: the API server answers such an eviction with an internal
// error.
func TestTwoBudgetsOfARealAPIServer(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	pod := runningPod(t, cluster)
	for _, name := range []string{"mine", "yours"} {
		budget := budgetOver(name, map[string]string{"app": "redis"}, 0)
		faulttest.Must(t, cluster.Create(t.Context(), budget))
		budget.Status.ObservedGeneration = budget.Generation
		faulttest.Must(t, cluster.Status().Update(t.Context(), budget))
		t.Cleanup(func() { _ = cluster.Delete(t.Context(), budget) })
	}
	injector, err := Kinds.For(draining(nil), contract.Deps{
		Redis:   target.Redis{Namespace: faulttest.Namespace, Live: cluster},
		Cluster: cluster,
	})
	faulttest.Must(t, err)
	hit := &v1alpha1.FaultTarget{Pod: pod.Name, UID: string(pod.UID)}
	problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), hit))
	if !strings.Contains(problem.Message, "mine, ") || !strings.Contains(problem.Message, "yours") {
		t.Errorf("%+v", problem)
	}
	if err := faulttest.Called(injector.Inject(t.Context(), hit)); err == nil ||
		!strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("the API server says %v", err)
	}
}

// runningPod is a pod that a kubelet would say is ready: the others are evicted whatever a budget says.
func runningPod(t *testing.T, cluster client.Client) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: faulttest.Namespace, GenerateName: "redis-", Labels: map[string]string{"app": "redis"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "redis", UID: "s", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "redis:7"}}},
	}
	faulttest.Must(t, cluster.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	faulttest.Must(t, cluster.Status().Update(t.Context(), pod))
	return pod
}
