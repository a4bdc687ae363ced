package loadpods

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerContainer is the operator's container in its pod, beside which a mesh or a policy may have
// put others.
const managerContainer = "manager"

// OwnImage returns the image of the operator's own pod, by which its load pods are of the same
// build, wherever an installation takes its images from: an overlay, a chart or a mutating webhook
// changes it in one place.
func OwnImage(ctx context.Context, api client.Reader, own client.ObjectKey) (string, error) {
	var pod corev1.Pod
	if err := api.Get(ctx, own, &pod); err != nil {
		return "", fmt.Errorf("read the operator's own pod: %w", err)
	}
	var names []string
	for _, c := range pod.Spec.Containers {
		names = append(names, c.Name)
	}
	if i := slices.Index(names, managerContainer); i >= 0 {
		return pod.Spec.Containers[i].Image, nil
	}
	return "", fmt.Errorf("the operator's own pod %s has no container %s, but %s",
		own, managerContainer, strings.Join(names, ", "))
}
