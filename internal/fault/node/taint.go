package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// Taint keeps new pods off a node by the fault's own taint. It changes neither spec.unschedulable,
// which belongs to kubectl cordon and drain, nor other taints. If it changed the node it is not
// complete yet, as the scheduler observes the change a little later.
//
// The taint's value is the fault's UID; an annotation that is set with it has the fault's name. A
// node has a taint of one key and effect once, so the taint of another fault is waited for, unless
// that fault does not exist any more: then the node is taken over.
func Taint(ctx context.Context, deps contract.Deps, name string) (contract.Progress, error) {
	node, err := Read(ctx, deps, name)
	if err != nil {
		return contract.Progress{}, err
	}
	if taintedBy(node, deps) {
		return contract.Progress{}, nil
	}
	if at := taintIndex(node); at >= 0 {
		held := &node.Spec.Taints[at]
		holder, named := node.Annotations[v1alpha1.AnnotationTaintPrefix+held.Value]
		if !named {
			return contract.Preparing(
				"waiting until somebody removes the taint %s from node %s: no annotation says of which fault it is",
				held.ToString(), name), nil
		}
		exists, err := faultExists(ctx, deps.Live, holder, held.Value)
		if err != nil {
			return contract.Progress{}, err
		} else if exists {
			return contract.Preparing("waiting for RedisFault %s, which holds node %s", holder, name), nil
		}
	}
	err = patchNode(ctx, deps.Cluster, node, func(node *corev1.Node) { hold(node, deps) })
	if apierrors.IsConflict(err) { // its kubelet updates it every few seconds
		return contract.Preparing("node %s was changed meanwhile: tainting it again", name), nil
	} else if err != nil {
		return contract.Progress{}, err
	}
	return contract.Preparing("node %s is tainted from now on", name), nil
}

// Untaint reverts Taint. A node that does not exist any more, or was replaced by another of its
// name, has nothing to revert.
func Untaint(ctx context.Context, deps contract.Deps, name string) (contract.Progress, error) {
	node, err := Read(ctx, deps, name)
	if apierrors.IsNotFound(err) {
		return contract.Progress{}, nil
	}
	if err != nil {
		return contract.Progress{}, err
	}
	_, marked := node.Annotations[annotationOf(deps)]
	if !marked && !taintedBy(node, deps) {
		return contract.Progress{}, nil
	}
	err = patchNode(ctx, deps.Cluster, node, func(node *corev1.Node) {
		release(node,
			string(deps.Owner.UID))
	})
	switch {
	case apierrors.IsConflict(err): // its kubelet updated it
		return contract.Underway("node %s changed meanwhile: untainting it again", name), nil
	case apierrors.IsNotFound(err):
		return contract.Progress{}, nil
	}
	return contract.Progress{}, err
}

// hold gives a node the fault's taint, in place of that of a lost fault.
func hold(node *corev1.Node, deps contract.Deps) {
	if at := taintIndex(node); at >= 0 {
		release(node, node.Spec.Taints[at].Value)
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[annotationOf(deps)] = deps.Namespace + "/" + deps.Owner.Name
	node.Spec.Taints = append(node.Spec.Taints, taintOf(deps))
}

// release removes the taint and the annotation of a fault. Either may be missing, as somebody may
// have removed it.
func release(node *corev1.Node, uid string) {
	delete(node.Annotations, v1alpha1.AnnotationTaintPrefix+uid)
	delete(node.Annotations, v1alpha1.AnnotationPowerPrefix+uid)
	at := taintIndex(node)
	if at >= 0 && node.Spec.Taints[at].Value == uid {
		node.Spec.Taints = slices.Delete(node.Spec.Taints, at, at+1)
	}
}

// ManualUntaint is the command that does the same. kubectl fails where a taint is missing, but not
// where an annotation is.
func ManualUntaint(deps contract.Deps, node string) string {
	return fmt.Sprintf("kubectl annotate node %s %s- && kubectl taint node %s %s:%s-", node,
		annotationOf(deps), node, v1alpha1.TaintFault, corev1.TaintEffectNoSchedule)
}

// RequireRepelled returns a Problem where a pod tolerates the fault's taint: its replacement could
// be scheduled to the tainted node.
func RequireRepelled(deps contract.Deps, pod *corev1.Pod) error {
	taint := taintOf(deps)
	for i := range pod.Spec.Tolerations {
		if pod.Spec.Tolerations[i].ToleratesTaint(klog.Background(), &taint, false) {
			return problem.Unsupported(
				"pod %s tolerates the taint %s by spec.tolerations[%d]: its replacement could be scheduled "+
					"to the tainted node. Let it tolerate the taints that it needs to, by their keys",
				pod.Name, taint.Key, i)
		}
	}
	return nil
}

// patchNode returns a conflict for a node that was changed, or replaced, since it was read.
func patchNode(
	ctx context.Context, cluster client.Writer, node *corev1.Node, change func(*corev1.Node),
) error {
	before := node.DeepCopy()
	change(node)
	err := cluster.Patch(ctx, node,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("patch node %s: %w", before.Name, err)
	}
	return nil
}

func taintOf(deps contract.Deps) corev1.Taint {
	return corev1.Taint{
		Key:    v1alpha1.TaintFault,
		Value:  string(deps.Owner.UID),
		Effect: corev1.TaintEffectNoSchedule,
	}
}

func annotationOf(deps contract.Deps) string {
	return v1alpha1.AnnotationTaintPrefix + string(deps.Owner.UID)
}

// taintIndex is the place of a fault's taint among those of a node; -1 = it has none.
func taintIndex(node *corev1.Node) int {
	return slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == v1alpha1.TaintFault && t.Effect == corev1.TaintEffectNoSchedule
	})
}

func taintedBy(node *corev1.Node, deps contract.Deps) bool {
	at := taintIndex(node)
	return at >= 0 && node.Spec.Taints[at].Value == string(deps.Owner.UID)
}

// Read reads a node from the API server.
func Read(ctx context.Context, deps contract.Deps, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := deps.Live.Get(ctx, client.ObjectKey{Name: name}, node)
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return node, nil
}
