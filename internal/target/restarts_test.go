package target_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/target"
)

func TestRestartCount(t *testing.T) {
	pod := &corev1.Pod{
		Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", RestartCount: 9}, {Name: "redis", RestartCount: 2}},
		},
	}
	for container, want := range map[string]int32{"redis": 2, "proxy": 9, "none": 0} {
		if got := (target.Redis{}).RestartCount(pod, container); got != want {
			t.Errorf("%s: %d restarts, want %d", container, got, want)
		}
	}
}
