package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// keptDown is a pod kill that kills the replacements, too, until its time is over. An operator that dies lets them live: there is no way back
// to record.
type keptDown struct {
	podKill
	lasts time.Duration
}

var _ Keeper = keptDown{}

func (k keptDown) Traits() Traits {
	traits := k.podKill.Traits()
	traits.Lasts = k.lasts
	return traits
}

// undoController is where the pod's controller is recorded: its UID and kind.
const (
	undoController     = "controller"
	undoControllerKind = "controllerKind"
)

// Preflight also records whose pods are replacements.
func (k keptDown) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := k.podKill.Preflight(ctx, target); err != nil {
		return err
	}
	pod, err := k.pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	recordController(target, pod)
	return nil
}

// Keep deletes every replacement at once.
func (k keptDown) Keep(ctx context.Context, target *v1alpha1.FaultTarget) error {
	found, err := k.replacements(ctx, target)
	if err != nil {
		return err
	}
	var failed error
	for i := range found {
		failed = errors.Join(failed, k.remove(ctx, &found[i]))
	}
	return failed
}

// Effect also sees a replacement that serves: then it was not kept down.
func (k keptDown) Effect(ctx context.Context, target *v1alpha1.FaultTarget) (v1alpha1.Effect, string) {
	found, err := k.replacements(ctx, target)
	if err != nil {
		return v1alpha1.EffectInconclusive, err.Error()
	}
	for i := range found {
		if found[i].Status.PodIP == "" {
			continue
		}
		if _, err := k.Servers.Ask(ctx, Address(&found[i]), k.Login); err == nil {
			return v1alpha1.EffectNotObserved, fmt.Sprintf("the replacement %s (%s) serves", found[i].Name, found[i].UID)
		}
	}
	return k.podKill.Effect(ctx, target)
}

func recordController(target *v1alpha1.FaultTarget, pod *corev1.Pod) {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		setUndo(target, undoController, string(owner.UID))
		setUndo(target, undoControllerKind, owner.Kind)
	}
}

// replacements are the pods that the target's controller made in its place and that are not being deleted: of its name, or, where a controller
// gives each pod a new name, all that it made since the injection.
func (s Surroundings) replacements(ctx context.Context, target *v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	controller, known := undoValue(target, undoController)
	if !known || target.InjectedAt == nil {
		return nil, nil
	}
	kind, _ := undoValue(target, undoControllerKind)
	var all corev1.PodList
	if err := s.Cluster.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil { // the cache: a new pod wakes the controller anyway
		return nil, err
	}
	since := target.InjectedAt.Time.Truncate(time.Second) // as coarse as creationTimestamp
	var found []corev1.Pod
	for _, pod := range all.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil || string(owner.UID) != controller || string(pod.UID) == target.UID || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Name == target.Pod || kind != "StatefulSet" && !pod.CreationTimestamp.Time.Before(since) {
			found = append(found, pod)
		}
	}
	return found, nil
}

// remove deletes this very pod at once, without grace.
func (s Surroundings) remove(ctx context.Context, pod *corev1.Pod) error {
	return ignoreGone(s.Cluster.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: pod.Name}},
		client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)))
}

// removeTarget is the same for the pod that is hit.
func (s Surroundings) removeTarget(ctx context.Context, target *v1alpha1.FaultTarget) error {
	return s.remove(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: target.Pod, UID: types.UID(target.UID)}})
}
