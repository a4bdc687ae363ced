package chaosmesh

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
)

func (c chaosMesh) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := c.available(ctx); err != nil {
		return err
	}
	pod, err := c.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return pods.Kill{Deps: c.Deps}.Preflight(ctx, target)
	}
	if err := c.sparesExpiry(ctx, target); err != nil {
		return err
	}
	record := &chaosRecord{}
	if c.spec.Action.Type == v1alpha1.FaultDiskDelay {
		err := c.recordVolume(ctx, pod, target, record)
		if err != nil {
			return err
		}
	}
	if err := c.recordPeers(ctx, target, record); err != nil {
		return err
	}
	if err := c.recordBefore(ctx, target, record); err != nil {
		return err
	}
	return contract.Save(target, *record)
}

func (c chaosMesh) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		begun, err := (pods.Kill{Deps: c.Deps}).Begun(ctx, target)
		if begun || err != nil {
			return begun, err
		}
	}
	child, err := c.child(ctx, target)
	return err == nil && child != nil && c.isOurs(child), err
}

func (c chaosMesh) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	record, _, err := contract.Load[chaosRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	child, err := c.child(ctx, target)
	if err != nil {
		return contract.Progress{}, err
	}
	if child == nil {
		return c.begin(ctx, target, record)
	}
	return c.injected(child)
}

// begin creates the child, unless the pod was deleted or replaced.
func (c chaosMesh) begin(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (contract.Progress, error) {
	pod, err := c.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
		return contract.Progress{}, nil
	}
	if err != nil {
		return contract.Progress{}, err
	}
	child, err := c.create(ctx, pod, target, record)
	if apierrors.IsAlreadyExists(err) {
		return contract.Underway("%s exists already", c.nameOf(child)), nil
	}
	if err != nil {
		return contract.Progress{}, fmt.Errorf("create %s: %w", c.nameOf(child), err)
	}
	return c.injected(child)
}

// injected is the progress of an injection, by its child.
func (c chaosMesh) injected(child object.Object) (contract.Progress, error) {
	name := c.nameOf(child)
	switch {
	case !c.isOurs(child):
		return contract.Progress{}, fmt.Errorf("%s belongs to another object: delete it", name)
	case child.GetDeletionTimestamp() != nil:
		return contract.Progress{}, fmt.Errorf("%s was deleted by somebody", name)
	}
	state := object.Read(child)
	switch {
	case state.Injected:
		return contract.Progress{}, nil
	case state.Stopped, state.Failure != "":
		return contract.Progress{}, fmt.Errorf("%s: %s", name, state)
	case time.Since(child.GetCreationTimestamp().Time) > chaosPatience:
		return contract.Progress{}, fmt.Errorf(
			"%s: Chaos Mesh has not broken the pod within %s (%s): is its controller up, and may it act "+
				"on namespace %s?", name, chaosPatience, state, c.Namespace)
	}
	return contract.Underway("%s: %s", name, state), nil
}

func (c chaosMesh) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	_, _, err := contract.Load[chaosRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	child, err := c.child(ctx, target)
	if err != nil || child == nil || !c.isOurs(child) {
		return contract.Progress{}, err
	}
	if child.GetDeletionTimestamp() == nil {
		if err := c.remove(ctx, child); err != nil {
			return contract.Progress{}, err
		}
		if child, err = c.child(ctx, target); err != nil || child == nil || !c.isOurs(child) {
			return contract.Progress{}, err
		}
	}
	state, name := object.Read(child), c.nameOf(child)
	at := child.GetDeletionTimestamp()
	if at != nil && time.Since(at.Time) > chaosPatience {
		return contract.Progress{}, fmt.Errorf("%s: Chaos Mesh has not reverted it within %s: %s", name,
			chaosPatience, state)
	}
	return contract.Underway("Chaos Mesh reverts %s: %s", name, state), nil
}

// ManualRevertCommand is for a Chaos Mesh that does not run, or cannot revert: deleting the pod
// removes what its agent changed in it. Chaos Mesh's annotation cleanFinalizer=forced does not
// help: while a recovery fails, the step that reads it is not reached (its
// controllers/common/step.go).
func (c chaosMesh) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	resource, name := object.Resource(c.kind), c.childName(target)
	text := fmt.Sprintf(
		`kubectl -n %[1]s delete %[2]s %[3]s --wait=false && kubectl -n %[1]s patch %[2]s %[3]s --type=merge -p `+
			`'{"metadata":{"finalizers":null}}'`,
		c.Namespace, resource, name)
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return text
	}
	return text +
		fmt.Sprintf("; then kubectl -n %s delete pod %s, which removes what Chaos Mesh left in it",
			c.Namespace, target.Pod)
}
