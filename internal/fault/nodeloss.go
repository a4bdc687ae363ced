package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
)

// nodeLoss takes a node away from Redis: it gets no new pods, and the target's pods on it are deleted without grace, as after the node's
// removal. The node itself goes on.
type nodeLoss struct {
	Surroundings
	name  string
	lasts time.Duration
}

func newNodeLoss(spec *v1alpha1.RedisFaultSpec, around Surroundings) Injector {
	return nodeLoss{Surroundings: around, name: nodeToLose(spec), lasts: durationOf(spec)}
}

// nodeToLose is the node that a fault takes away; "" where it is none of that kind.
func nodeToLose(spec *v1alpha1.RedisFaultSpec) string {
	if spec.Action.Type != v1alpha1.FaultNodeLoss || spec.Action.NodeLoss == nil {
		return ""
	}
	return spec.Action.NodeLoss.Node
}

// onNode is the servers whose pods a fault can hit: all, or those on the node that it takes away. It returns a Problem where there is none.
func onNode(found []server, node string) ([]server, error) {
	if node == "" {
		return found, nil
	}
	var there []server
	var others []string
	for _, s := range found {
		if s.pod.Spec.NodeName == node {
			there = append(there, s)
		} else {
			others = append(others, s.pod.Name+" is on "+s.pod.Spec.NodeName)
		}
	}
	if len(there) == 0 {
		return nil, &lifecycle.Problem{Reason: v1alpha1.ReasonNoTarget,
			Message: fmt.Sprintf("spec.action.nodeLoss.node: no server of the target is on node %s: %s", node, strings.Join(others, ", "))}
	}
	return there, nil
}

func (n nodeLoss) Traits() Traits {
	return Traits{Lasts: n.lasts, EndsServer: true, Silences: true, WholePod: true}
}

func (n nodeLoss) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := n.pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if target.Node != n.name {
		return invalid("spec.action.nodeLoss.node: pod %s is on node %s, not on %s", target.Pod, target.Node, n.name)
	}
	if metav1.GetControllerOf(pod) == nil {
		return invalid("pod %s has no controller: nothing would replace it. Run Redis in a StatefulSet or Deployment", target.Pod)
	}
	recordController(target, pod)
	return n.elsewhere(ctx, pod, nil, n.name)
}

func (n nodeLoss) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return n.ended(ctx, target)
}

func (n nodeLoss) Inject(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if ended, err := n.ended(ctx, target); ended || err != nil {
		return err
	}
	changed, err := n.cordon(ctx, n.name)
	if err != nil {
		return err
	}
	if changed {
		return &Preparing{fmt.Sprintf("node %s is unschedulable from now on", n.name)}
	}
	return n.removeTarget(ctx, target)
}

func (n nodeLoss) Revert(ctx context.Context, _ *v1alpha1.FaultTarget) error {
	return n.uncordon(ctx, n.name)
}

func (n nodeLoss) ManualRevertCommand(*v1alpha1.FaultTarget) string { return n.manualUncordon(n.name) }

// Effect is confirmed when the pod is gone from the node and the node takes none.
func (n nodeLoss) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	ended, err := n.ended(ctx, target)
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	if !ended {
		return v1alpha1.EffectNotObserved, fmt.Sprintf("pod %s (%s) still runs on node %s", target.Pod, target.UID, n.name)
	}
	node, err := n.node(ctx, n.name)
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	if !node.Spec.Unschedulable {
		return v1alpha1.EffectNotObserved, fmt.Sprintf("node %s takes pods", n.name)
	}
	found, err := n.replacements(ctx, target)
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	if slices.ContainsFunc(found, func(p corev1.Pod) bool { return p.Spec.NodeName == n.name }) {
		return v1alpha1.EffectNotObserved, fmt.Sprintf("the replacement of pod %s came up on node %s again", target.Pod, n.name)
	}
	return v1alpha1.EffectConfirmed, fmt.Sprintf("pod %s (%s) is gone from node %s, which is unschedulable; its replacement is %s", target.Pod, target.UID, n.name, whereabouts(found))
}

func whereabouts(found []corev1.Pod) string {
	switch {
	case len(found) == 0:
		return "still to come"
	case found[0].Spec.NodeName == "":
		return "on no node" + unscheduled(&found[0])
	}
	return "on node " + found[0].Spec.NodeName
}
