package target

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// LastEnd is how a container ended last; nil = it never has.
func LastEnd(c *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}

// TimesEnded is how often a container has ended: once more than it was restarted while it is not running.
func TimesEnded(c *corev1.ContainerStatus) int32 {
	if c.State.Terminated != nil {
		return c.RestartCount + 1
	}
	return c.RestartCount
}

// MemoryLimit is the memory limit of a pod's container, as its spec writes it; "" = it has none.
func MemoryLimit(pod *corev1.Pod, container string) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if limit, has := c.Resources.Limits[corev1.ResourceMemory]; has && c.Name == container {
			return limit.String()
		}
	}
	return ""
}

// ServerPods lists the pods of a target that may be of Redis, by name, in whatever state.
func (r Redis) ServerPods(ctx context.Context) ([]corev1.Pod, error) {
	all, err := r.AllPods(ctx)
	return slices.DeleteFunc(all, func(p corev1.Pod) bool { return !isServer(&p) }), err
}
