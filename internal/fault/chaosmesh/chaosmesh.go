// Package chaosmesh is the faults that Chaos Mesh injects, by objects that package object writes and reads.
package chaosmesh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// available says whether the API server serves the child's kind, by a request: a watch on an absent kind would keep the operator from starting.
func (c chaosMesh) available(ctx context.Context) error {
	err := c.Live.List(ctx, object.NewList(c.kind), client.InNamespace(c.Namespace), client.Limit(1))
	if unknownKind(err) {
		return &problem.Problem{Reason: v1alpha1.ReasonEngineUnavailable,
			Message: fmt.Sprintf("spec.engine: this cluster knows no %s: Chaos Mesh is not installed", object.Resource(c.kind))}
	}
	return err
}

// unknownKind says whether the API server serves no such kind; of a single object, that it is absent looks the same where its kind went lately.
func unknownKind(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// childName is the same for the same fault and pod, and another for each other: a fault that is made anew under its name finds no old child.
func (c chaosMesh) childName(target *v1alpha1.FaultTarget) string {
	sum := sha256.Sum256([]byte(string(c.Owner.UID) + "/" + target.UID))
	return c.Owner.Name + "-" + hex.EncodeToString(sum[:5])
}

// child is what was created for a target; nil where there is none, or where its kind is unknown.
func (c chaosMesh) child(ctx context.Context, target *v1alpha1.FaultTarget) (object.Object, error) {
	child := object.New(c.kind)
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.childName(target)}, child)
	switch {
	case unknownKind(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return child, nil
}

func (c chaosMesh) isOurs(child object.Object) bool {
	return slices.ContainsFunc(child.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == c.Owner.UID })
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
		pod, err := c.Pod(ctx, target.Pod)
		if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != target.UID {
			return contract.Progress{}, nil // gone: its name belongs to nobody, or to its replacement
		}
		if err != nil {
			return contract.Progress{}, err
		}
		child, err = c.create(ctx, pod, target, record)
		if apierrors.IsAlreadyExists(err) {
			return contract.Underway("%s is there already", c.nameOf(child)), nil
		} else if err != nil {
			return contract.Progress{}, err
		}
	}
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

func (c chaosMesh) create(ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget, record chaosRecord) (object.Object, error) {
	hit := object.Hit{Namespace: c.Namespace, Pod: target.Pod, Container: target.Container, VolumePath: record.VolumePath, Lasts: contract.DurationOf(c.spec) + chaosMargin, Peers: c.peers(record)}
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		grace := cmp.Or(pod.Spec.TerminationGracePeriodSeconds, new(int64(corev1.DefaultTerminationGracePeriodSeconds)))
		if own := c.spec.Action.PodKill; own != nil && own.GracePeriodSeconds != nil {
			grace = own.GracePeriodSeconds
		}
		hit.Grace = time.Duration(*grace) * time.Second
	}
	child := object.Child(c.spec, hit)
	child.SetNamespace(c.Namespace)
	child.SetName(c.childName(target))
	child.SetLabels(map[string]string{v1alpha1.LabelFault: c.Owner.Name})
	owner := c.Owner
	owner.BlockOwnerDeletion = nil // a child that hangs must not hold the fault
	child.SetOwnerReferences([]metav1.OwnerReference{owner})
	return child, c.Cluster.Create(ctx, child)
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
		uid := child.GetUID()
		err := c.Cluster.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !unknownKind(err) && !apierrors.IsConflict(err) {
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

func (c chaosMesh) nameOf(child object.Object) string {
	return c.kind.Kind + " " + child.GetName()
}

// Types are the types of faults that Chaos Mesh knows.
func Types() []v1alpha1.FaultType { return object.Types() }
