package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func losing(node string) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss, NodeLoss: &v1alpha1.NodeLoss{Node: node}},
		Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
	}
}

// spread is a primary with a replica on node-1 and another replica on node-2.
func spread(t *testing.T) *faulttest.World {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", nil)
	w.AddNode("node-2", nil)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	w.Pod("redis-2", "u2", "10.0.0.3", topology.Replica, func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	return w
}

func TestNodeLoss(t *testing.T) {
	w := spread(t)
	injector, targets := w.Aimed(Kinds, guard.Choose, losing("node-1"))
	if len(targets) != 2 || targets[0].Pod != "redis-0" || targets[1].Pod != "redis-1" {
		t.Fatalf("targets %+v, want the two on node-1", targets)
	}
	if traits := injector.Traits(); traits.Lasts != v1alpha1.DefaultFaultDuration || !traits.EndsServer ||
		!traits.Silences {
		t.Errorf("traits %+v", traits)
	}
	faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), "node-1")
	if len(w.Deleted) > 0 {
		t.Fatal("a pod was deleted before the scheduler could observe that the node is tainted")
	}
	for range 2 {
		for i := range targets {
			targets[i].InjectedAt = &metav1.MicroTime{Time: time.Now()}
			if err := faulttest.Called(injector.Inject(t.Context(), &targets[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := strings.Join(w.Deleted, " "); got != "u0 u1" {
		t.Errorf("deleted %s, want u0 u1", got)
	}
	if effect, why := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectConfirmed ||
		!strings.Contains(why, "not created yet") {
		t.Errorf("%s: %s", effect, why)
	}
	w.Pod("redis-0", "u0-new", "10.0.0.9", "", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	if effect, why := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectConfirmed ||
		!strings.Contains(why, "on node node-2") {
		t.Errorf("%s: %s", effect, why)
	}
	w.Pod("redis-1", "u1-new", "10.0.0.8", "", nil)
	if effect, why := injector.Effect(t.Context(), &targets[1]); effect != v1alpha1.EffectNotObserved ||
		!strings.Contains(why, "node-1 again") {
		t.Errorf("%s: %s", effect, why)
	}
	for i := range targets {
		if err := faulttest.Called(injector.Revert(t.Context(), &targets[i])); err != nil {
			t.Fatal(err)
		}
	}
	w.Tainted("node-1", "")
	if effect, why := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectNotObserved {
		t.Errorf("effect without the taint: %s: %s", effect, why)
	}
	if by := injector.ManualRevertCommand(
		&targets[0]); by !=
		"kubectl annotate node node-1 tainted-by.redquake.dev/uid-lose- && kubectl taint node node-1 redquake.dev/fault:NoSchedule-" {
		t.Errorf("manual command: %s", by)
	}
}

func TestNodeLossRefused(t *testing.T) {
	w := spread(t)
	deps := w.Of("lose")
	spec := losing("node-9")
	injector, err := Kinds.For(spec, deps)
	if err != nil {
		t.Fatal(err)
	}
	_, err = guard.Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis, spec,
		injector.Traits())
	if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNoTarget ||
		!strings.Contains(problem.Message, "node-9") || !strings.Contains(problem.Message, "redis-2 is on node-2") {
		t.Errorf("got %+v, want NoTarget with both nodes", problem)
	}
	spec = losing("node-1") // the guard counts the copies on other nodes, too
	spec.Allow = nil
	if injector, err = Kinds.For(spec, deps); err != nil {
		t.Fatal(err)
	}
	if _, err := guard.Choose(t.Context(), faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		spec, injector.Traits()); err != nil {
		t.Errorf("redis-2 was selected: %v, want only the pods on node-1", err)
	}
	w.Pod("redis-3", "u3", "10.0.0.4", topology.Replica, func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	if problem := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-3", UID: "u3", Node: "node-1"})); !strings.Contains(
		problem.Message, "redis-3 tolerates the taint") {
		t.Errorf("a pod that tolerates the taint: %+v", problem)
	}
	other := &v1alpha1.FaultTarget{Pod: "redis-2", UID: "u2", Node: "node-2"}
	if problem := faulttest.ProblemOf(t,
		injector.Preflight(t.Context(), other)); problem.Reason != v1alpha1.ReasonInvalidSpec ||
		!strings.Contains(problem.Message, "spec.action.nodeLoss.node") {
		t.Errorf("a pod on another node: %+v, want InvalidSpec with the field", problem)
	}
}

// A replaced pod is not deleted, and a revert before any injection touches no node.
func TestNodeLossReplacedAndRevertFirst(t *testing.T) {
	w := spread(t)
	injector, targets := w.Aimed(Kinds, guard.Choose, losing("node-1"))
	if err := faulttest.Called(injector.Revert(t.Context(), &targets[0])); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis-0", UID: "u0"},
		Status:     corev1.PodStatus{PodIP: "10.0.0.1"},
	}
	w.Replace(pod, "another")
	if err := faulttest.Called(injector.Inject(t.Context(), &targets[0])); err != nil {
		t.Fatal(err)
	}
	if len(w.Deleted) > 0 {
		t.Errorf("deleted %v", w.Deleted)
	}
	w.Tainted("node-1", "")
}
