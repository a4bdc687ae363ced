package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// resized are the resources that can be resized in place.
var resized = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// resizeRecord is the record of a container that is resized: its values before, of each resource
// that changes.
type resizeRecord struct {
	Limits         corev1.ResourceList `json:"limits"`
	Requests       corev1.ResourceList `json:"requests"`
	RevertingSince *time.Time          `json:"revertingSince,omitempty"`
	// Left are the present values of the resources that somebody else has resized meanwhile: the
	// revert leaves them.
	Left corev1.ResourceRequirements `json:"left,omitzero"`
}

func (r resizeRecord) before() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: r.Limits, Requests: r.Requests}
}

// wanted are the values that the container is to have: the limits of the spec, and a request
// wherever it had one. A request that equalled the limit is kept equal, since the pod's class of
// service may depend on that; another is lowered only where the limit would be below it.
func (r *resources) wanted(old corev1.ResourceRequirements) corev1.ResourceRequirements {
	want := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for name, limit := range r.limits {
		want.Limits[name] = limit
		request, ok := old.Requests[name]
		if !ok {
			continue
		}
		was := old.Limits[name]
		if request.Cmp(was) == 0 || request.Cmp(limit) > 0 {
			request = limit
		}
		want.Requests[name] = request
	}
	return want
}

// has reports whether a container has all these values; it may have others as well.
func has(container, want corev1.ResourceRequirements) bool {
	within := func(all, some corev1.ResourceList) bool {
		for name, q := range some {
			if there, ok := all[name]; !ok || there.Cmp(q) != 0 {
				return false
			}
		}
		return true
	}
	return within(container.Limits, want.Limits) && within(container.Requests, want.Requests)
}

// only are the values of some resources.
func only(
	of corev1.ResourceRequirements, names ...corev1.ResourceName,
) corev1.ResourceRequirements {
	some := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for _, name := range names {
		if limit, ok := of.Limits[name]; ok {
			some.Limits[name] = limit
		}
		if request, ok := of.Requests[name]; ok {
			some.Requests[name] = request
		}
	}
	return some
}

// compare sorts out what a container has: the resources that have the values from before the fault,
// or are to get them as they have the fault's; and those of somebody else.
func (r *resources) compare(
	container, old corev1.ResourceRequirements,
) (before, own, others []corev1.ResourceName) {
	for _, name := range resized {
		switch _, changed := r.limits[name]; {
		case !changed:
		case has(container, only(old, name)):
			before = append(before, name)
		case has(container, only(r.wanted(old), name)):
			own = append(own, name)
		default:
			others = append(others, name)
		}
	}
	return before, own, others
}

// inForce are the values that the kubelet reports for a container; nil where it reports none.
func inForce(pod *corev1.Pod, container string) *corev1.ResourceRequirements {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == container {
			return s.Resources
		}
	}
	return nil
}

func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}

// restarts reports whether the kubelet restarts the container to resize it.
func restarts(container *corev1.Container, name corev1.ResourceName) bool {
	return slices.ContainsFunc(container.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.ResourceName == name && p.RestartPolicy == corev1.RestartContainer
	})
}

// resizing is the patch that gives a container these values.
func resizing(uid, container string, to corev1.ResourceRequirements) map[string]any {
	patch := map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": container, "resources": to}}},
	}
	if uid != "" {
		patch["metadata"] = map[string]any{"uid": uid}
	}
	return patch
}

// said formats a container's resources: cpu 1 (requested 500m), memory 64Mi.
func said(of corev1.ResourceRequirements) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of.Limits)) {
		limit, text := of.Limits[name], ""
		request, ok := of.Requests[name]
		if ok && request.Cmp(limit) != 0 {
			text = fmt.Sprintf(" (requested %s)", request.String())
		}
		words = append(words, fmt.Sprintf("%s %s%s", name, limit.String(), text))
	}
	return strings.Join(words, ", ")
}
