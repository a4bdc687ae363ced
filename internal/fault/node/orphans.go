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
	"github.com/redquake/redquake/internal/target"
)

// Orphan is a node that was cordoned by faults which do not exist any more: a finalizer was removed by force, or etcd was restored.
type Orphan struct {
	Node   string
	Faults []string // namespace/name, by name
	keys   []string // of their annotations
}

// Orphans lists the nodes that were cordoned by faults which do not exist any more. A fault that may not be read counts as existing.
func Orphans(ctx context.Context, reader client.Reader) ([]Orphan, error) {
	var marked []corev1.Node
	var page corev1.NodeList
	err := target.EachPage(ctx, reader, &page, func() bool {
		for i := range page.Items {
			if cordonedByFault(&page.Items[i]) {
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
		keys, _, err := holders(ctx, reader, &marked[i], "")
		if err != nil {
			return nil, err
		}
		if len(keys) == 0 {
			continue
		}
		one := Orphan{Node: marked[i].Name, keys: keys}
		for _, key := range keys {
			one.Faults = append(one.Faults, marked[i].Annotations[key])
		}
		slices.Sort(one.Faults)
		found = append(found, one)
	}
	return found, nil
}

// Sweep uncordons the nodes that Orphans finds, and returns those that it released. A node that another fault or somebody else cordoned as well stays so.
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
			if err := reader.Get(ctx, client.ObjectKey{Name: one.Node}, node); err != nil {
				return fmt.Errorf("read node %s: %w", one.Node, err)
			}
			return patchNode(ctx, writer, node, func(node *corev1.Node) { release(node, one.keys...) })
		})
		if client.IgnoreNotFound(err) != nil {
			failures = append(failures, err)
			continue
		}
		swept = append(swept, one)
	}
	return swept, errors.Join(failures...)
}

// holders are the faults whose annotations a node has, without one of them: the annotations of those that do not exist any more, and a fault that does; "" = none.
func holders(ctx context.Context, reader client.Reader, node *corev1.Node, without string) (orphaned []string, holder string, err error) {
	for key, name := range node.Annotations {
		uid, ours := strings.CutPrefix(key, v1alpha1.AnnotationCordonPrefix)
		if !ours || key == without {
			continue
		}
		exists, err := faultExists(ctx, reader, name, uid)
		switch {
		case err != nil:
			return nil, "", err
		case !exists:
			orphaned = append(orphaned, key)
		case holder == "" || name < holder:
			holder = name
		}
	}
	return orphaned, holder, nil
}

// faultExists looks a fault up by namespace/name and UID. One that may not be read, or whose name is malformed, counts as existing.
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
