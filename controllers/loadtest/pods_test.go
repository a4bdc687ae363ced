package loadtest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/children"
)

// A pod has ended once its agent has: a sidecar may go on for as long as the Job exists.
func TestPhaseWithASidecar(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "why"}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, tc := range []struct {
		name           string
		agent, sidecar corev1.ContainerState
		want           corev1.PodPhase
	}{
		{"both run", running, running, corev1.PodRunning},
		{"the agent is done", ended(0), running, corev1.PodSucceeded},
		{"the agent failed", ended(1), running, corev1.PodFailed},
		{"the sidecar failed", running, ended(1), corev1.PodRunning},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "istio-proxy", State: tc.sidecar}, {Name: children.AgentContainer, State: tc.agent},
		}}}
		if got := phaseOf(pod); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if got := terminationMessage(pod); tc.want == corev1.PodFailed && got != "ended with Error, exit code 1 why" {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}
