package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// fieldManager owns what a fault changes in a node. By it a revert sees whether the cordon is still the fault's.
const fieldManager = "redquake-cordon"

// Cordon makes a node unschedulable. If it changed the node it is not complete yet, as the scheduler observes the change a little later.
// A fault marks the node by an annotation, by which it is reverted. A node with the annotation of another fault is waited for, unless that fault does not exist any more:
// then the node is taken over. A node that somebody else made unschedulable is not changed.
func Cordon(ctx context.Context, deps contract.Deps, name string) (contract.Progress, error) {
	node, err := Read(ctx, deps, name)
	if err != nil {
		return contract.Progress{}, err
	}
	if _, ours := node.Annotations[cordonKey(deps)]; ours && node.Spec.Unschedulable {
		return contract.Progress{}, nil
	}
	orphaned, holder, err := holders(ctx, deps.Live, node, cordonKey(deps))
	if err != nil {
		return contract.Progress{}, err
	}
	if holder != "" {
		return contract.Preparing("waiting for RedisFault %s, which holds node %s", holder, name), nil
	}
	if node.Spec.Unschedulable && (len(orphaned) == 0 || !cordonIsOurs(node)) {
		return contract.Progress{}, nil
	}
	err = patchNode(ctx, deps.Cluster, node, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		for _, key := range orphaned {
			delete(node.Annotations, key)
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

// Uncordon reverts Cordon. A node that somebody else cordoned since then stays so.
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
	err = patchNode(ctx, deps.Cluster, node, func(node *corev1.Node) { release(node, cordonKey(deps)) })
	if apierrors.IsConflict(err) { // its kubelet updated it
		return contract.Underway("node %s changed meanwhile: uncordoning it again", name), nil
	}
	return contract.Progress{}, err
}

// release removes annotations of faults, and with the last one the cordon if it is a fault's.
func release(node *corev1.Node, keys ...string) {
	for _, key := range keys {
		delete(node.Annotations, key)
	}
	if !cordonedByFault(node) && cordonIsOurs(node) {
		node.Spec.Unschedulable = false
	}
}

// cordonIsOurs reports whether nobody but a fault has set spec.unschedulable since it was last unset. Who repeats a cordon, as kubectl drain does on a cordoned node, changes
// nothing there, and cannot be seen. Without managed fields the cordon counts as the fault's.
func cordonIsOurs(node *corev1.Node) bool {
	for _, entry := range node.ManagedFields {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if _, owns := owned.Spec["f:unschedulable"]; owns && entry.Manager != fieldManager {
			return false
		}
	}
	return true
}

// ManualUncordon is the command that does the same.
func ManualUncordon(deps contract.Deps, node string) string {
	return fmt.Sprintf("kubectl uncordon %s && kubectl annotate node %s %s-", node, node, cordonKey(deps))
}

// patchNode returns a conflict for a node that was changed since it was read.
func patchNode(ctx context.Context, cluster client.Writer, node *corev1.Node, change func(*corev1.Node)) error {
	before := node.DeepCopy()
	change(node)
	if err := cluster.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager)); err != nil {
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
