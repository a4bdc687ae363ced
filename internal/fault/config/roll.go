package config

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// templateEdit is a change of a StatefulSet's template, with the state before it.
type templateEdit struct {
	StatefulSet string                           `json:"statefulSet"`
	UID         string                           `json:"uid"`
	Before      []string                         `json:"before"` // what the source returned
	After       []string                         `json:"after"`  //
	Strategy    appsv1.StatefulSetUpdateStrategy `json:"strategy"`

	optionSource
}

// apply writes what the source sets and the strategy in one patch, unless the StatefulSet has
// changed since it was read.
func (t ioThreads) apply(
	ctx context.Context, set *appsv1.StatefulSet, source optionSource, words []string,
	strategy appsv1.StatefulSetUpdateStrategy,
) error {
	changed := set.DeepCopy()
	container := containerIn(&changed.Spec.Template.Spec, source.Container)
	if container == nil {
		return fmt.Errorf("the template of StatefulSet %s has no longer a container %s", set.Name,
			source.Container)
	}
	source.set(container, words)
	changed.Spec.UpdateStrategy = strategy
	if reflect.DeepEqual(set, changed) {
		return nil
	}
	if err := t.Cluster.Patch(ctx, changed,
		client.StrategicMergeFrom(set, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patch the template of StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

func containerIn(pod *corev1.PodSpec, name string) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == name {
			return &pod.Containers[i]
		}
	}
	return nil
}
