//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// TestDrain evicts a primary and its two replicas at once: without a budget all are away at the same time, with one that
// lets one go at a time two are always there, and one that lets none go refuses for good. A watch of the test's own
// counts the pods, and the plan has said what the budget does before.
func TestDrain(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "drain")
	n.applySentinels(3)
	n.create(n.steadyLoad("base", sentinelTarget(), 25*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	for _, c := range []struct {
		scenario string
		budget   *policyv1.PodDisruptionBudgetSpec
		warns    string // by the plan
		least    int    // ready at any time
	}{
		{
			"drainAtOnce", nil,
			"redis-ha-0, redis-ha-1, redis-ha-2 are all copies of their data, and no PodDisruptionBudget selects any of them", 0,
		},
		{"drainByBudget", &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}, "", 2},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			n := n.in(t)
			n.sentinelsAgree()
			n.flows("redis-ha")
			n.withBudget(c.budget)
			drained := faultOn("base", kebab(c.scenario), v1alpha1.FaultDrain, allDrained)
			n.warnsOfCopies(drained, c.warns)
			least := n.leastReady("redis-ha", 3)
			done := n.breaks(c.scenario, "redis-ha", drained, nil)
			if got := least(); got != c.least {
				t.Errorf("%d of 3 servers were ready at the least, want %d", got, c.least)
			}
			if waited := strings.Count(done.Status.EffectEvidence, "its eviction was refused for "); waited != c.least {
				t.Errorf("the evidence names %d refusals, want %d: %s", waited, c.least, done.Status.EffectEvidence)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		n := n.in(t)
		n.sentinelsAgree()
		n.withBudget(&policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))})
		before := n.currentState("redis-ha")
		refused := faultOn("base", "drain-refused", v1alpha1.FaultDrain, func(s *v1alpha1.RedisFaultSpec) {
			allDrained(s)
			s.Action.Drain = &v1alpha1.Drain{Timeout: *span(30 * time.Second)}
		})
		n.warnsOfCopies(refused, "PodDisruptionBudget redis (minAvailable 100%) allows no eviction now")
		n.create(refused)
		done := n.waitFault(refused.Name, patience, v1alpha1.ReasonInjectionFailed)
		text := ""
		for _, c := range done.Status.Conditions {
			text += c.Message + "\n"
		}
		if !strings.Contains(text, "was refused for 30s (spec.action.drain.timeout): The disruption budget redis needs 3 healthy pods") {
			t.Errorf("it says %s", text)
		}
		n.waitForState("redis-ha", before)
	})
}

func allDrained(s *v1alpha1.RedisFaultSpec) {
	s.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	s.Allow = []v1alpha1.Allowance{v1alpha1.AllowAllCopies}
	s.RecoveryDeadline = *span(time.Minute)
}

// withBudget puts a PodDisruptionBudget over the servers until the end of the test, once the disruption controller
// knows it; nil = none.
func (n *namespace) withBudget(spec *policyv1.PodDisruptionBudgetSpec) {
	n.Helper()
	if spec == nil {
		return
	}
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis-ha"}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: *spec}
	n.create(budget)
	n.Cleanup(func() { _ = cluster.Delete(context.Background(), budget) })
	n.eventually(patience, "the budget counts", func() (bool, string) {
		found := n.get(budget.Name, budget)
		return found && budget.Status.ObservedGeneration > 0 && budget.Status.ExpectedPods == 3,
			fmt.Sprintf("%+v", budget.Status)
	})
}

// warnsOfCopies expects what a dry run of a fault says of the copies; "" = nothing.
func (n *namespace) warnsOfCopies(fault *v1alpha1.RedisFault, want string) {
	n.Helper()
	dry := fault.DeepCopy()
	dry.Name += "-plan"
	dry.Spec.DryRun = true
	n.create(dry)
	said := n.waitFault(dry.Name, patience, v1alpha1.ReasonDryRun).Status.Warnings
	about := slices.DeleteFunc(slices.Clone(said), func(w string) bool { return !strings.Contains(w, "PodDisruptionBudget") })
	if (want == "") != (len(about) == 0) || !strings.Contains(strings.Join(about, "\n"), want) {
		n.Errorf("the plan warns of %q, want %q", said, want)
	}
}

// leastReady watches the pods of an app until its result is asked for: how many were ready at the same time, at least.
func (n *namespace) leastReady(app string, now int) (least func() int) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), 20*time.Minute)
	done := make(chan int, 1)
	go func() { done <- fewestReady(ctx, n.name, app, now) }()
	return func() int {
		cancel()
		return <-done
	}
}

// fewestReady is the least number of pods that were ready, by a watch that begins anew wherever the API server ends it.
func fewestReady(ctx context.Context, namespace, app string, now int) int {
	ready, fewest := map[string]bool{}, now
	for ctx.Err() == nil {
		changes, err := cluster.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels{"app": app})
		if err != nil {
			await.Pass(100*time.Millisecond, "the time to the next try of a watch")
			continue
		}
		for e := range changes.ResultChan() {
			pod, is := e.Object.(*corev1.Pod)
			if !is {
				continue
			}
			ready[pod.Name] = e.Type != watch.Deleted && pod.DeletionTimestamp == nil && isReady(pod)
			count := 0
			for _, yes := range ready {
				if yes {
					count++
				}
			}
			if len(ready) == now { // all have been seen
				fewest = min(fewest, count)
			}
		}
	}
	return fewest
}

// TestDrainOfANode drains the node of Redis: its pod comes up on the other one, and the node takes pods again.
func TestDrainOfANode(t *testing.T) {
	n := newNamespace(t, "drain-node")
	n.applyRedis(nil)
	before := n.redisPod()
	n.create(n.steadyLoad("base", standaloneTarget(), 15*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	n.flows("redis")
	bothNodes.Lock()
	defer bothNodes.Unlock()
	done := n.breaks("drainOfNode", "redis", faultOn("base", "drain", v1alpha1.FaultDrain, func(s *v1alpha1.RedisFaultSpec) {
		s.Action.Drain, s.Duration = &v1alpha1.Drain{Node: before.Spec.NodeName}, span(10*time.Second)
		s.RecoveryDeadline = *span(time.Minute)
	}), map[string]string{"outage": "1s"})
	if !strings.Contains(done.Status.EffectEvidence, "which is tainted") {
		t.Errorf("the evidence is %q", done.Status.EffectEvidence)
	}
	n.checkNothingLeft(done, before.Spec.NodeName)
	if after := n.podReady("redis-0", patience); after.Spec.NodeName == before.Spec.NodeName {
		t.Errorf("the replacement is on node %s again", after.Spec.NodeName)
	}
}
