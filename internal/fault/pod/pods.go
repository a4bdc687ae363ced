package pod

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
)

// ReplacedRecord is the record of a pod that is kept down, or lost with its node.
type ReplacedRecord struct {
	Controller Controller `json:"controller"`
}

// RemoveTarget deletes the target's pod, by its UID, without grace.
func RemoveTarget(ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget) error {
	return Remove(ctx, deps, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: target.Pod, UID: types.UID(target.UID)},
	})
}

// Remove deletes a pod, by its UID, without grace.
func Remove(ctx context.Context, deps contract.Deps, pod *corev1.Pod) error {
	return IgnoreGone(deps.Cluster.Delete(ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: deps.Namespace, Name: pod.Name}},
		client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)))
}

// keepsNames reports whether a replacement has the name of the pod that it replaces.
func (c Controller) keepsNames() bool {
	return c.Kind == "StatefulSet"
}

// Ended reports whether the recorded pod is terminating, deleted or replaced.
func Ended(ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := deps.Pod(ctx, target.Pod)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && (string(pod.UID) != target.UID || pod.DeletionTimestamp != nil), err
}

// Replacement is the pod that replaced the target's; nil while there is none.
func Replacement(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, controller Controller,
) (*corev1.Pod, error) {
	found, err := Replacements(ctx, deps, target, controller)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Replacements returns the pods that the target's controller created to replace it and that are not
// being deleted: the pod with its name, or, if the controller gives each pod a new name, all pods
// of the target that it created since the injection.
func Replacements(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, controller Controller,
) ([]corev1.Pod, error) {
	if controller.UID == "" || target.InjectedAt == nil {
		return nil, nil
	}
	all, err := candidates(ctx, deps, target, controller)
	if err != nil {
		return nil, err
	}
	since := target.InjectedAt.Time.Truncate(time.Second) // as coarse as creationTimestamp
	var found []corev1.Pod
	for _, pod := range all {
		if ControllerOf(&pod).UID != controller.UID || string(pod.UID) == target.UID ||
			pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Name == target.Pod ||
			!controller.keepsNames() && !pod.CreationTimestamp.Time.Before(since) {
			found = append(found, pod)
		}
	}
	return found, nil
}

// candidates are the pods among which the replacements are: of a StatefulSet the one of the
// target's name, whatever its labels.
func candidates(
	ctx context.Context, deps contract.Deps, target *v1alpha1.FaultTarget, controller Controller,
) ([]corev1.Pod, error) {
	if !controller.keepsNames() {
		return deps.LatestPods(ctx) // a new pod triggers a reconcile
	}
	if watched, ok := deps.Watched.Pods(); ok {
		if i := slices.IndexFunc(watched, func(p corev1.Pod) bool {
			return p.Name == target.Pod
		}); i >= 0 {
			return watched[i : i+1], nil
		}
	}
	pod, err := deps.Pod(ctx, target.Pod)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []corev1.Pod{*pod}, nil
}

// Controller identifies the controller of a pod, which replaces it.
type Controller struct {
	UID  types.UID `json:"uid"`
	Kind string    `json:"kind"`
	Name string    `json:"name"`
}

// ControllerOf is the controller of a pod; zero where it has none.
func ControllerOf(pod *corev1.Pod) Controller {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return Controller{
			UID:  owner.UID,
			Kind: owner.Kind,
			Name: owner.Name,
		}
	}
	return Controller{}
}

// RequireController returns a Problem where nothing would replace a pod.
func RequireController(pod *corev1.Pod) error {
	if metav1.GetControllerOf(pod) == nil {
		return problem.Invalid(
			"pod %s has no controller: nothing would replace it. Run Redis in a StatefulSet or Deployment",
			pod.Name)
	}
	return nil
}

// Unscheduled is the scheduler's message about a pod without a node; "" where there is none.
func Unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			return ": " + c.Message
		}
	}
	return ""
}

// IgnoreGone ignores that a pod which was to be deleted does not exist any more, or that its
// replacement has its name.
func IgnoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// ReplicasOf is spec.replicas of a StatefulSet, 1 by default.
func ReplicasOf(set *appsv1.StatefulSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}
