package node

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// Cordon makes a node unschedulable. If it changed the node it is not complete yet, as the scheduler observes the change a little later.
// Each fault adds its own annotation to the node, by which it is reverted, and which keeps one fault from reverting another's cordon. A
// node that somebody else made unschedulable is not changed.
func Cordon(ctx context.Context, deps contract.Deps, name string) (contract.Progress, error) {
	node, err := Read(ctx, deps, name)
	if err != nil {
		return contract.Progress{}, err
	}
	if _, ours := node.Annotations[cordonKey(deps)]; ours && node.Spec.Unschedulable {
		return contract.Progress{}, nil
	}
	if node.Spec.Unschedulable && !cordonedByFault(node) {
		return contract.Progress{}, nil
	}
	err = patchNode(ctx, deps, node, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[cordonKey(deps)] = deps.Namespace + "/" + deps.Owner.Name
		node.Spec.Unschedulable = true
	})
	if apierrors.IsConflict(err) { // its kubelet updates it every few seconds
		return contract.Preparing("node %s was changed meanwhile: cordoning it again", name), nil
	} else if err != nil {
		return contract.Progress{}, err
	}
	return contract.Preparing("node %s is unschedulable from now on", name), nil
}

// Uncordon reverts Cordon. The last fault with an annotation makes the node schedulable again.
func Uncordon(ctx context.Context, deps contract.Deps, name string) (contract.Progress, error) {
	node, err := Read(ctx, deps, name)
	if apierrors.IsNotFound(err) {
		return contract.Progress{}, nil
	}
	if err != nil {
		return contract.Progress{}, err
	}
	if _, ours := node.Annotations[cordonKey(deps)]; !ours {
		return contract.Progress{}, nil
	}
	err = patchNode(ctx, deps, node, func(node *corev1.Node) {
		delete(node.Annotations, cordonKey(deps))
		if !cordonedByFault(node) {
			node.Spec.Unschedulable = false
		}
	})
	if apierrors.IsConflict(err) { // its kubelet updated it
		return contract.Underway("node %s changed meanwhile: uncordoning it again", name), nil
	}
	return contract.Progress{}, err
}

// ManualUncordon is the command that does the same.
func ManualUncordon(deps contract.Deps, node string) string {
	return fmt.Sprintf("kubectl uncordon %s && kubectl annotate node %s %s-", node, node, cordonKey(deps))
}

// patchNode returns a conflict for a node that was changed since it was read.
func patchNode(ctx context.Context, deps contract.Deps, node *corev1.Node, change func(*corev1.Node)) error {
	before := node.DeepCopy()
	change(node)
	if err := deps.Cluster.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch node %s: %w", before.Name, err)
	}
	return nil
}

func cordonKey(deps contract.Deps) string {
	return v1alpha1.AnnotationCordonPrefix + string(deps.Owner.UID)
}

func cordonedByFault(node *corev1.Node) bool {
	for key := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.AnnotationCordonPrefix) {
			return true
		}
	}
	return false
}

// Read reads a node from the API server.
func Read(ctx context.Context, deps contract.Deps, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := deps.Live.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return node, nil
}
