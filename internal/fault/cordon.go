package fault

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// cordon makes a node unschedulable and says whether it had to: the caller then waits for a moment, as the scheduler learns of it a little later.
// Each fault leaves an annotation of its own there, by which it finds its way back, and which keeps one fault from lifting another's cordon. A
// node that somebody else made unschedulable is left as it is.
func (s Surroundings) cordon(ctx context.Context, name string) (changed bool, err error) {
	node, err := s.node(ctx, name)
	if err != nil {
		return false, err
	}
	if _, ours := node.Annotations[s.cordonKey()]; ours && node.Spec.Unschedulable {
		return false, nil
	}
	if node.Spec.Unschedulable && !cordonedByFault(node) {
		return false, nil
	}
	err = s.patchNode(ctx, node, func(node *corev1.Node) {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[s.cordonKey()] = s.Namespace + "/" + s.Owner.Name
		node.Spec.Unschedulable = true
	})
	if apierrors.IsConflict(err) { // its kubelet reports every few seconds
		return false, &Preparing{fmt.Sprintf("node %s changes at this moment", name)}
	}
	return err == nil, err
}

// uncordon takes back what cordon did. The last fault that leaves makes the node schedulable again.
func (s Surroundings) uncordon(ctx context.Context, name string) error {
	node, err := s.node(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ours := node.Annotations[s.cordonKey()]; !ours {
		return nil
	}
	err = s.patchNode(ctx, node, func(node *corev1.Node) {
		delete(node.Annotations, s.cordonKey())
		if !cordonedByFault(node) {
			node.Spec.Unschedulable = false
		}
	})
	if apierrors.IsConflict(err) { // its kubelet was faster
		return &InProgress{fmt.Sprintf("node %s changed meanwhile: opening it again", name)}
	}
	return err
}

// manualUncordon is the command for it.
func (s Surroundings) manualUncordon(node string) string {
	return fmt.Sprintf("kubectl uncordon %s && kubectl annotate node %s %s-", node, node, s.cordonKey())
}

// patchNode refuses to change a node that changed meanwhile: it is read and tried again.
func (s Surroundings) patchNode(ctx context.Context, node *corev1.Node, change func(*corev1.Node)) error {
	before := node.DeepCopy()
	change(node)
	return s.Cluster.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (s Surroundings) cordonKey() string {
	return v1alpha1.AnnotationCordonPrefix + string(s.Owner.UID)
}

func cordonedByFault(node *corev1.Node) bool {
	for key := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.AnnotationCordonPrefix) {
			return true
		}
	}
	return false
}

func (s Surroundings) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, s.Live.Get(ctx, client.ObjectKey{Name: name}, node)
}
