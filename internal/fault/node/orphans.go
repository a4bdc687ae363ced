package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target/paging"
)

// Orphan is a node that has taints or annotations of faults which do not exist any more: a
// finalizer was removed by force, or etcd was restored.
type Orphan struct {
	Node   string
	Faults []string // namespace/name, by name
	uids   []string // of these faults
}

// Orphans lists the nodes that faults have tainted which do not exist any more. A fault that may
// not be read counts as existing.
func Orphans(ctx context.Context, reader client.Reader) ([]Orphan, error) {
	var marked []corev1.Node
	var page corev1.NodeList
	err := paging.Each(ctx, reader, &page, func() bool {
		for i := range page.Items {
			if len(marks(&page.Items[i])) > 0 {
				marked = append(marked, page.Items[i])
			}
		}
		page.Items = nil
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var found []Orphan
	for i := range marked {
		one := Orphan{Node: marked[i].Name}
		for uid, fault := range marks(&marked[i]) {
			exists, err := faultExists(ctx, reader, fault, uid)
			if err != nil {
				return nil, err
			}
			if !exists {
				one.Faults, one.uids = append(one.Faults, fault), append(one.uids, uid)
			}
		}
		if slices.Sort(one.Faults); len(one.uids) > 0 {
			found = append(found, one)
		}
	}
	return found, nil
}

// Sweep removes the taints of the faults that Orphans finds, and returns the nodes that it
// released. What another fault or somebody else has set stays.
func Sweep(ctx context.Context, reader client.Reader, writer client.Writer) ([]Orphan, error) {
	found, err := Orphans(ctx, reader)
	if err != nil {
		return nil, err
	}
	var swept []Orphan
	var failures []error
	for _, one := range found {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			node := &corev1.Node{}
			err := reader.Get(ctx, client.ObjectKey{Name: one.Node}, node)
			if err != nil {
				return fmt.Errorf("read node %s: %w", one.Node, err)
			}
			return patchNode(ctx, writer, node, func(node *corev1.Node) {
				for _, uid := range one.uids {
					release(node, uid)
				}
			})
		})
		if client.IgnoreNotFound(err) != nil {
			failures = append(failures, err)
			continue
		}
		swept = append(swept, one)
	}
	return swept, errors.Join(failures...)
}

// marks are the faults whose annotations a node has: their UIDs, and their namespace/name.
func marks(node *corev1.Node) map[string]string {
	found := map[string]string{}
	for key, fault := range node.Annotations {
		uid, ours := strings.CutPrefix(key, v1alpha1.AnnotationTaintPrefix)
		if ours {
			found[uid] = fault
		}
	}
	return found
}

// faultExists looks a fault up by namespace/name and UID. One that may not be read, or whose name
// is malformed, counts as existing.
func faultExists(ctx context.Context, reader client.Reader, name, uid string) (bool, error) {
	namespace, name, valid := strings.Cut(name, "/")
	if !valid {
		return true, nil
	}
	fault := &v1alpha1.RedisFault{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, fault)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read RedisFault %s/%s: %w", namespace, name, err)
	}
	return string(fault.UID) == uid, nil
}
