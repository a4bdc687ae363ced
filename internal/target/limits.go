package target

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// CPULimit is the lowest CPU limit of the target's Redis containers, in cores; 0 where none has
// one. It returns a Problem where the target names no pods.
func (r Redis) CPULimit(ctx context.Context) (float64, error) {
	pods, err := r.Pods(ctx)
	if err != nil {
		return 0, err
	}
	lowest := 0.0
	for i := range pods {
		container := r.Container(&pods[i])
		limit, ok := container.Resources.Limits[corev1.ResourceCPU]
		if n := limit.AsApproximateFloat64(); ok && n > 0 && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest, nil
}
