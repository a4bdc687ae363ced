// Package podstate reads what the status and the spec of a pod say: whether it runs and is ready,
// how its containers ended. It is pure.
package podstate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// LastEnd is how a container ended last; nil = it never has.
func LastEnd(c *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if c.State.Terminated != nil {
		return c.State.Terminated
	}
	return c.LastTerminationState.Terminated
}

// TimesEnded is how often a container has ended: once more than it was restarted while it is not
// running.
func TimesEnded(c *corev1.ContainerStatus) int32 {
	if c.State.Terminated != nil {
		return c.RestartCount + 1
	}
	return c.RestartCount
}

// OOMKilled is the kubelet's reason of a container that the kernel has ended at its memory limit.
const OOMKilled = "OOMKilled"

// MemoryLimit is how much memory a pod's container may use: as the kubelet says, else as its spec
// does, else as its pod may as a whole; nil = there is no limit.
func MemoryLimit(pod *corev1.Pod, container string) *resource.Quantity {
	var all []corev1.ResourceList
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container && s.Resources != nil {
			all = append(all, s.Resources.Limits)
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			all = append(all, c.Resources.Limits)
		}
	}
	if pod.Spec.Resources != nil {
		all = append(all, pod.Spec.Resources.Limits)
	}
	for _, limits := range all {
		if limit, ok := limits[corev1.ResourceMemory]; ok {
			return &limit
		}
	}
	return nil
}

// Unready is why a pod that runs, or will run, is not ready, and since when; "" if it is, or has
// ended.
func Unready(p *corev1.Pod) (why string, since time.Time) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return "", since
	case p.DeletionTimestamp != nil: // when its grace period ends
		return Absence(p), p.DeletionTimestamp.Add(
			-time.Duration(ptr.Deref(p.DeletionGracePeriodSeconds, 0)) * time.Second)
	case Absence(p) != "":
		return Absence(p), p.CreationTimestamp.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return strings.TrimSuffix("is not ready: "+c.Message, ": "), c.LastTransitionTime.Time
		}
	}
	return "", since
}

// IsReady reports whether a pod's condition Ready is True.
func IsReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Absence is why a pod does not run; "" where it does.
func Absence(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "is terminating"
	case p.Status.Phase != corev1.PodRunning:
		return "is " + string(cmp.Or(p.Status.Phase, corev1.PodPending))
	case p.Status.PodIP == "":
		return "has no address"
	}
	return ""
}

// PatienceOf is how long a liveness probe fails before the kubelet restarts the container.
func PatienceOf(probe *corev1.Probe) time.Duration {
	return time.Duration(max(probe.PeriodSeconds, 1)*max(probe.FailureThreshold, 1)) * time.Second
}
