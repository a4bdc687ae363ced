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
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/target/paging"
)

// Orphan is a node that has taints or annotations of faults which do not exist any more: a
// finalizer was removed by force, or etcd was restored.
type Orphan struct {
	Node   string
	Faults []string // namespace/name, by name
	uids   []string // of these faults
	// what switches it on again, of those that may have switched it off
	on []powerhook.Request
}

// Orphans lists the nodes that faults have tainted, or switched off, which do not exist any more. A
// fault that may not be read counts as existing.
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
				one.add(&marked[i], uid, fault)
			}
		}
		if slices.Sort(one.Faults); len(one.uids) > 0 {
			found = append(found, one)
		}
	}
	return found, nil
}

// add adds a fault that does not exist any more.
func (o *Orphan) add(node *corev1.Node, uid, fault string) {
	o.Faults, o.uids = append(o.Faults, fault), append(o.uids, uid)
	if _, off := node.Annotations[v1alpha1.AnnotationPowerPrefix+uid]; off {
		namespace, name, _ := strings.Cut(fault, "/")
		o.on = append(o.on, powerhook.Request{
			Node:       node.Name,
			ProviderID: node.Spec.ProviderID,
			Power:      powerhook.On,
			Fault:      powerhook.Fault{Namespace: namespace, Name: name, UID: uid},
		})
	}
}

// Sweep removes the taints of the faults that Orphans finds, has the hook switch on the nodes that
// they have switched off, and returns the nodes that it released. What another fault or somebody
// else has set stays.
func Sweep(
	ctx context.Context, reader client.Reader, writer client.Writer, hook contract.PowerHook,
) ([]Orphan, error) {
	found, err := Orphans(ctx, reader)
	if err != nil {
		return nil, err
	}
	var swept []Orphan
	var failures []error
	for _, one := range found {
		err := one.switchOn(ctx, hook)
		if err == nil {
			err = one.release(ctx, reader, writer)
		}
		if client.IgnoreNotFound(err) != nil {
			failures = append(failures, err)
			continue
		}
		swept = append(swept, one)
	}
	return swept, errors.Join(failures...)
}

// switchOn has a node switched on that the lost faults may have switched off.
func (o Orphan) switchOn(ctx context.Context, hook contract.PowerHook) error {
	for _, on := range o.on {
		if hook == nil {
			return fmt.Errorf("node %s was switched off by RedisFault %s/%s, which does not exist any more, and no "+
				"power hook is configured", o.Node, on.Fault.Namespace, on.Fault.Name)
		}
		if err := hook.Switch(ctx, on); err != nil && !powerhook.Gone(err) {
			return err
		}
	}
	return nil
}

// release removes what the lost faults have set.
func (o Orphan) release(ctx context.Context, reader client.Reader, writer client.Writer) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node := &corev1.Node{}
		err := reader.Get(ctx, client.ObjectKey{Name: o.Node}, node)
		if err != nil {
			return fmt.Errorf("read node %s: %w", o.Node, err)
		}
		return patchNode(ctx, writer, node, func(node *corev1.Node) {
			for _, uid := range o.uids {
				release(node, uid)
			}
		})
	})
}

// marks are the faults whose annotations a node has: their UIDs, and their namespace/name.
func marks(node *corev1.Node) map[string]string {
	found := map[string]string{}
	for key, fault := range node.Annotations {
		for _, prefix := range []string{v1alpha1.AnnotationTaintPrefix, v1alpha1.AnnotationPowerPrefix} {
			if uid, ours := strings.CutPrefix(key, prefix); ours {
				found[uid] = fault
			}
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
