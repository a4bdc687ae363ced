// Package node implements the faults NodeLoss and ZoneLoss, and the taint by which other faults keep
// pods off a node as well.
package node

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
)

// Kinds are the faults of nodes.
var Kinds = contract.Kinds{
	v1alpha1.FaultNodeLoss: newNodeLoss,
	v1alpha1.FaultZoneLoss: newZoneLoss,
}

// nodeLoss taints a node and deletes the target's pods on it without grace, as after the removal of
// the node. The node itself is not stopped.
type nodeLoss struct {
	contract.Deps
	name  string
	lasts time.Duration
}

func newNodeLoss(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.NodeLoss, v1alpha1.NodeLoss{})
	if spec.Action.SwitchesPower() {
		return powerLoss{Deps: deps, name: given.Node, lasts: spec.Stays()}
	}
	return nodeLoss{
		Deps:  deps,
		name:  given.Node,
		lasts: spec.Stays(),
	}
}

func (n nodeLoss) Traits() contract.Traits {
	return contract.Traits{
		Lasts:      n.lasts,
		Place:      contract.Place{Node: n.name},
		EndsServer: true,
		Abrupt:     true,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
		Taints:     true,
	}
}

func (n nodeLoss) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := n.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if target.Node != n.name {
		return elsewhere(target, n.name)
	}
	if err := pods.RequireController(pod); err != nil {
		return err
	}
	err = contract.Save(target, pods.ReplacedRecord{
		Controller: pods.ControllerOf(pod),
	})
	if err != nil {
		return err
	}
	if err := RequireRepelled(n.Deps, pod); err != nil {
		return err
	}
	return RequireOtherNode(ctx, n.Deps, pod, nil, n.name)
}

func elsewhere(target *v1alpha1.FaultTarget, node string) error {
	return problem.Invalid("spec.action.nodeLoss.node: pod %s is on node %s, not on %s", target.Pod,
		target.Node, node)
}

func (n nodeLoss) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	return pods.Ended(ctx, n.Deps, target)
}

func (n nodeLoss) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	ended, err := pods.Ended(ctx, n.Deps, target)
	if ended || err != nil {
		return contract.Progress{}, err
	}
	progress, err := Taint(ctx, n.Deps, n.name)
	if err != nil || !progress.Complete() {
		return progress, err
	}
	return contract.Progress{}, pods.RemoveTarget(ctx, n.Deps, target)
}

func (n nodeLoss) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	return Untaint(ctx, n.Deps, n.name)
}

func (n nodeLoss) ManualRevertCommand(*v1alpha1.FaultTarget) string {
	return ManualUntaint(n.Deps, n.name)
}

// Effect is confirmed once the pod was deleted and the node has the taint.
func (n nodeLoss) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	ended, err := pods.Ended(ctx, n.Deps, target)
	if err != nil {
		return contract.Unseen(err)
	}
	if !ended {
		return contract.NotObserved("pod %s (%s) still runs on node %s", target.Pod,
			target.UID, n.name)
	}
	record, _, err := contract.Load[pods.ReplacedRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	return KeptOff(ctx, n.Deps, target, record.Controller, n.name)
}

// KeptOff is the effect on a pod that has ended, of a fault that keeps pods off its node: confirmed
// while the node has the taint and no replacement is there.
func KeptOff(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget,
	controller pods.Controller, name string,
) (v1alpha1.Effect, string) {
	node, err := Read(ctx, deps, name)
	if err != nil {
		return contract.Unseen(err)
	}
	if !taintedBy(node, deps) {
		return contract.NotObserved("node %s does not have the fault's taint %s", name,
			v1alpha1.TaintFault)
	}
	found, err := pods.Replacements(ctx, deps, target, controller)
	if err != nil {
		return contract.Unseen(err)
	}
	if slices.ContainsFunc(found, func(p corev1.Pod) bool { return p.Spec.NodeName == name }) {
		return contract.NotObserved(
			"the replacement of pod %s was scheduled to node %s again", target.Pod, name)
	}
	return contract.Confirmed(
		"pod %s (%s) is gone from node %s, which is tainted; its replacement is %s", target.Pod,
		target.UID, name, whereabouts(found))
}

func whereabouts(found []corev1.Pod) string {
	switch {
	case len(found) == 0:
		return "not created yet"
	case found[0].Spec.NodeName == "":
		return "on no node" + pods.Unscheduled(&found[0])
	}
	return "on node " + found[0].Spec.NodeName
}
