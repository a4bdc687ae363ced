package chaosmesh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/problem"
)

// child reads the object of a target; nil where it does not exist, or its kind is not installed.
func (c chaosMesh) child(ctx context.Context, target *v1alpha1.FaultTarget) (object.Object, error) {
	child := object.New(c.kind)
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.childName(target)}, child)
	switch {
	case unknownKind(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", c.kind.Kind, c.childName(target), err)
	}
	return child, nil
}

func (c chaosMesh) isOurs(child object.Object) bool {
	return slices.ContainsFunc(child.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.UID == c.Owner.UID
	})
}

func (c chaosMesh) create(
	ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget, record chaosRecord,
) (object.Object, error) {
	hit := object.Hit{
		Namespace:  c.Namespace,
		Pod:        target.Pod,
		Container:  target.Container,
		VolumePath: record.VolumePath,
		Lasts:      c.spec.Stays() + chaosMargin,
		Peers:      c.peers(record),
	}
	if c.spec.Action.Type == v1alpha1.FaultPodKill {
		grace := cmp.Or(pod.Spec.TerminationGracePeriodSeconds,
			new(int64(corev1.DefaultTerminationGracePeriodSeconds)))
		own := c.spec.Action.PodKill
		if own != nil && own.GracePeriodSeconds != nil {
			grace = own.GracePeriodSeconds
		}
		hit.Grace = time.Duration(*grace) * time.Second
	}
	child := object.Child(c.spec, hit)
	child.SetNamespace(c.Namespace)
	child.SetName(c.childName(target))
	child.SetLabels(map[string]string{v1alpha1.LabelFault: c.Owner.Name})
	owner := c.Owner
	owner.BlockOwnerDeletion = nil // a child whose deletion hangs must not block that of the fault
	child.SetOwnerReferences([]metav1.OwnerReference{owner})
	return child, c.Cluster.Create(ctx, child)
}

// childName is unique for the UIDs of the fault and the pod: a fault that is created again under
// the same name finds no old child.
func (c chaosMesh) childName(target *v1alpha1.FaultTarget) string {
	sum := sha256.Sum256([]byte(string(c.Owner.UID) + "/" + target.UID))
	return c.Owner.Name + "-" + hex.EncodeToString(sum[:5])
}

// remove deletes this very child. Chaos Mesh's finalizer keeps it until the pod is reverted.
func (c chaosMesh) remove(ctx context.Context, child object.Object) error {
	uid := child.GetUID()
	err := c.Cluster.Delete(ctx, child, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !unknownKind(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s: %w", c.nameOf(child), err)
	}
	return nil
}

func (c chaosMesh) nameOf(child object.Object) string {
	return c.kind.Kind + " " + child.GetName()
}

// available checks by a request that the API server serves the child's kind: a watch on a kind that
// is not installed would keep the operator from starting.
func (c chaosMesh) available(ctx context.Context) error {
	err := c.Live.List(ctx, object.NewList(c.kind), client.InNamespace(c.Namespace), client.Limit(1))
	if unknownKind(err) {
		return &problem.Problem{
			Reason: v1alpha1.ReasonEngineUnavailable,
			Message: fmt.Sprintf("spec.engine: this cluster does not serve %s: Chaos Mesh is not installed",
				object.Resource(c.kind)),
		}
	}
	return err
}

// unknownKind reports whether the API server does not serve the kind. For a single object that
// cannot be distinguished from its absence where the kind was removed recently.
func unknownKind(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err)
}

// sparesExpiry refuses to set the clock of a server forward that has keys with an expiry: they
// expire early, and do not come back. How many expire depends on their remaining times, which only
// a scan would show. A replica is no exception, as it may be promoted meanwhile.
func (c chaosMesh) sparesExpiry(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if c.spec.Action.Type != v1alpha1.FaultClockSkew || c.spec.Action.ClockSkew.Offset.Duration <= 0 ||
		slices.Contains(c.spec.Allow, v1alpha1.AllowExpiry) {
		return nil
	}
	info, err := c.Info(ctx, target.Address, "keyspace")
	if err != nil {
		return fmt.Errorf("spec.action.clockSkew: read how many keys expire: %w", err)
	}
	expiring := int64(0)
	for field := range info {
		_, err := strconv.Atoi(strings.TrimPrefix(field, "db"))
		if err == nil && strings.HasPrefix(field, "db") {
			n, _ := strconv.ParseInt(info.Pairs(field)["expires"], 10, 64)
			expiring += n
		}
	}
	if expiring == 0 {
		return nil
	}
	return problem.TooWide(
		"spec.action.clockSkew.offset: pod %s has %d keys with an expiry: those that expire within %s "+
			"would be lost at once, and cannot be restored; spec.allow: [%s] lifts this guard",
		target.Pod, expiring, c.spec.Action.ClockSkew.Offset.Duration, v1alpha1.AllowExpiry)
}
