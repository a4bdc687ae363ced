package target_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestCPULimit(t *testing.T) {
	limited := func(cpu string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
			if cpu != "" {
				list[corev1.ResourceCPU] = resource.MustParse(cpu)
			}
			pod.Spec.Containers = []corev1.Container{
				{
					Name:      "exporter",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				},
				{
					Name:      "redis",
					Ports:     []corev1.ContainerPort{{ContainerPort: 6379}},
					Resources: corev1.ResourceRequirements{Limits: list},
				},
			}
		}
	}
	for want, limits := range map[float64][]string{0: {"", ""}, 0.25: {"2", "250m", ""}, 2: {"2"}} {
		w := faulttest.NewWorld(t)
		for i, cpu := range limits {
			w.Pod("redis-"+string(rune('0'+i)), "u"+string(rune('0'+i)), "10.0.0.1", topology.Primary, limited(cpu))
		}
		if got, err := faulttest.On(w.Deps(),
			faulttest.ByPods(map[string]string{"app": "redis"})).CPULimit(t.Context()); err != nil || got != want {
			t.Errorf("limits %q: %v, %v, want %v", limits, got, err, want)
		}
	}
	_, err := faulttest.On(faulttest.NewWorld(t).Deps(), &v1alpha1.RedisTarget{
		Addresses: []string{"redis:6379"},
	}).CPULimit(
		t.Context())
	if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNoTarget {
		t.Errorf("of addresses: %s", problem.Reason)
	}
}
