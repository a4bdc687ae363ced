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
	"github.com/redquake/redquake/internal/fault/contract"
)

// keptDown is a pod kill that kills the replacements, too, until its time is over. An operator that dies lets them live: there is nothing
// to revert.
type keptDown struct {
	podKill
	lasts time.Duration
}

var _ contract.Keeper = keptDown{}

func (k keptDown) Traits() contract.Traits {
	traits := k.podKill.Traits()
	traits.Lasts = k.lasts
	return traits
}

// podController is who replaces a pod.
type podController struct {
	UID  types.UID `json:"uid"`
	Kind string    `json:"kind"`
}

// controllerOf is the controller of a pod; zero where it has none.
func controllerOf(pod *corev1.Pod) podController {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return podController{UID: owner.UID, Kind: owner.Kind}
	}
	return podController{}
}

// replacedRecord is the record of a pod that is kept down.
type replacedRecord struct {
	Controller podController `json:"controller"`
}

// Preflight also records whose pods are replacements.
func (k keptDown) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	if err := k.podKill.Preflight(ctx, target); err != nil {
		return err
	}
	pod, err := k.pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	return contract.Save(target, replacedRecord{Controller: controllerOf(pod)})
}

// pods are the replacements that are there now.
func (k keptDown) pods(ctx context.Context, target *v1alpha1.FaultTarget) ([]corev1.Pod, error) {
	record, _, err := contract.Load[replacedRecord](target)
	if err != nil {
		return nil, err
	}
	return k.replacements(ctx, target, record.Controller)
}

// Inject kills the pod, unless its replacements could not be found.
func (k keptDown) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	if _, _, err := contract.Load[replacedRecord](target); err != nil {
		return contract.Progress{}, err
	}
	return k.podKill.Inject(ctx, target)
}

// Keep deletes every replacement at once.
func (k keptDown) Keep(ctx context.Context, target *v1alpha1.FaultTarget) error {
	found, err := k.pods(ctx, target)
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
	found, err := k.pods(ctx, target)
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

// replacements are the pods that the target's controller made in its place and that are not being deleted: of its name, or, where a controller
// gives each pod a new name, all that it made since the injection.
func (s Surroundings) replacements(ctx context.Context, target *v1alpha1.FaultTarget, controller podController) ([]corev1.Pod, error) {
	if controller.UID == "" || target.InjectedAt == nil {
		return nil, nil
	}
	var all corev1.PodList
	if err := s.Cluster.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil { // the cache: a new pod wakes the controller anyway
		return nil, err
	}
	since := target.InjectedAt.Time.Truncate(time.Second) // as coarse as creationTimestamp
	var found []corev1.Pod
	for _, pod := range all.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil || owner.UID != controller.UID || string(pod.UID) == target.UID || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Name == target.Pod || controller.Kind != "StatefulSet" && !pod.CreationTimestamp.Time.Before(since) {
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
