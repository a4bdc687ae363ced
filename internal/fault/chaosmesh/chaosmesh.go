// Package chaosmesh is the faults that Chaos Mesh injects, by objects that package object writes and reads.
package chaosmesh

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

const (
	noShard    = target.NoShard
	askTimeout = target.AskTimeout

	// chaosPatience is how long Chaos Mesh may take to break a pod, or to revert that, before that counts as an error: the controller then goes on
	// asking for as long as it does after any other error, and no longer.
	chaosPatience = 20 * time.Second
	// chaosMargin is by how much a child outlasts its fault: its time counts from its creation, the fault's from its injection. It ends
	// by itself only where the operator never comes back.
	chaosMargin = time.Minute
)

// chaosMesh lets Chaos Mesh break the pod, through an object of its own that belongs to the fault: the child. Creating it is the injection, and that
// is reverted when the child is gone, which Chaos Mesh keeps from going until then. What Chaos Mesh says proves nothing: the effect is asked of Redis.
type chaosMesh struct {
	contract.Deps
	spec *v1alpha1.RedisFaultSpec
	kind schema.GroupVersionKind
}

// New returns the injector of a fault by Chaos Mesh, or a Problem where that does not know its type.
func New(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) (contract.Injector, error) {
	kind, known := object.Kind(spec.Action.Type)
	if !known {
		return nil, problem.Invalid("spec.engine: ChaosMesh knows no fault %q", spec.Action.Type)
	}
	return chaosMesh{Deps: deps, spec: spec, kind: kind}, nil
}

func (c chaosMesh) Traits() contract.Traits {
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return contract.Traits{EndsServer: true, NewPod: true, Silences: true, WholePod: true}
	}
	parted := c.spec.Action.Type == v1alpha1.FaultNetworkPartition
	return contract.Traits{Lasts: contract.DurationOf(c.spec), Silences: parted, WholePod: parted}
}

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
	record := &chaosRecord{}
	if c.spec.Action.Type == v1alpha1.FaultDiskDelay {
		if err := c.recordVolume(ctx, pod, target, record); err != nil {
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
		if begun, err := (pods.Kill{Deps: c.Deps}).Begun(ctx, target); begun || err != nil {
			return begun, err
		}
	}
	child, err := c.child(ctx, target)
	return err == nil && child != nil && c.isOurs(child), err
}

func (c chaosMesh) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
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
func (c chaosMesh) begin(ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord) (contract.Progress, error) {
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
		return contract.Progress{}, fmt.Errorf("%s: Chaos Mesh has not broken the pod within %s (%s): is its controller up, and may it act on namespace %s?", name, chaosPatience, state, c.Namespace)
	}
	return contract.Underway("%s: %s", name, state), nil
}

func (c chaosMesh) Revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	if _, _, err := contract.Load[chaosRecord](target); err != nil {
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
	if at := child.GetDeletionTimestamp(); at != nil && time.Since(at.Time) > chaosPatience {
		return contract.Progress{}, fmt.Errorf("%s: Chaos Mesh has not reverted it within %s: %s", name, chaosPatience, state)
	}
	return contract.Underway("Chaos Mesh reverts %s: %s", name, state), nil
}

// ManualRevertCommand is for a Chaos Mesh that is down, or cannot revert: what its agent left in the pod goes with the pod. Chaos Mesh's own annotation
// cleanFinalizer=forced is of no use: while a recovery fails, the step that reads it is not reached (its controllers/common/step.go; seen live).
func (c chaosMesh) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	resource, name := object.Resource(c.kind), c.childName(target)
	text := fmt.Sprintf(`kubectl -n %[1]s delete %[2]s %[3]s --wait=false && kubectl -n %[1]s patch %[2]s %[3]s --type=merge -p '{"metadata":{"finalizers":null}}'`, c.Namespace, resource, name)
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		return text
	}
	return text + fmt.Sprintf("; then kubectl -n %s delete pod %s, which rids it of what is left in it", c.Namespace, target.Pod)
}

// Types are the types of faults that Chaos Mesh knows.
func Types() []v1alpha1.FaultType { return object.Types() }
