package timeline

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
)

// crashed is a pod whose container was restarted n times, ended last with a reason, and waits for its next start if it
// is in back-off.
func crashed(pod corev1.Pod, n int32, reason string, code int32, backOff bool) corev1.Pod {
	c := &pod.Status.ContainerStatuses[0]
	c.RestartCount = n
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(20 * time.Second)}}
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason:     reason,
		ExitCode:   code,
		FinishedAt: stamp(4 * time.Second),
	}
	if backOff {
		c.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{
				Reason:  "CrashLoopBackOff",
				Message: "back-off 20s restarting failed container",
			},
		}
	}
	pod.Spec.Containers = []corev1.Container{
		{
			Name: "redis",
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")},
			},
		},
	}
	return pod
}

// A replacement that does not stay up, and a target that ends again, are named with how often and why; what the fault
// itself ended is not.
func TestContainersThatDoNotStayUpAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		looks []corev1.Pod
		want  map[string]string // event to the end of its message
	}{
		{"a replacement that runs", []corev1.Pod{replacement("redis-0", "new")}, nil},
		{
			"a replacement in a crash loop",
			[]corev1.Pod{
				crashed(replacement("redis-0", "new"), 1, "Error", 1, false),
				crashed(replacement("redis-0", "new"), 4, "Error", 1, true),
			},
			map[string]string{
				"ContainerExited":  "container redis ended 4 times, the last time with exit code 1, Error",
				"CrashLoopBackOff": "container redis ended 4 times, the last time with exit code 1, Error; back-off 20s restarting failed container",
			},
		},
		{
			"a replacement that is killed for its memory",
			[]corev1.Pod{crashed(replacement("redis-0", "new"), 1, "OOMKilled", 137, false)},
			map[string]string{
				"OOMKilled": "container redis ended once, the last time with exit code 137, OOMKilled; its memory limit is 48Mi",
			},
		},
		{
			"a target that the fault ended",
			[]corev1.Pod{crashed(redisPod("redis-0", "old", nil), 2, "Error", 139, false)},
			nil,
		},
		{
			"a target that ends again",
			[]corev1.Pod{crashed(redisPod("redis-0", "old", nil), 3, "Error", 1, false)},
			map[string]string{
				"ContainerExited": "container redis ended 2 times, the last time with exit code 1, Error",
			},
		},
		{
			"a target that is killed for its memory",
			[]corev1.Pod{crashed(redisPod("redis-0", "old", nil), 2, "OOMKilled", 137, true)},
			map[string]string{
				"OOMKilled":        "container redis ended once, the last time with exit code 137, OOMKilled; its memory limit is 48Mi",
				"CrashLoopBackOff": "container redis ended once, the last time with exit code 137, OOMKilled; back-off 20s restarting failed container",
			},
		},
		{
			"a target that was killed for its memory before the fault",
			[]corev1.Pod{crashed(redisPod("redis-0", "old", nil), 1, "OOMKilled", 137, false)},
			nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := hit()
			s.Targets[0].RestartCount = 1
			for i, pod := range tc.looks {
				AddPods(s, []corev1.Pod{pod}, after(time.Duration(10*(i+1))*time.Second))
			}
			got := map[string]v1alpha1.TimelineEvent{}
			for _, e := range s.Timeline {
				switch e.Event {
				case Exited, OOMKilled, BackOff:
					got[e.Event] = e
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("timeline %s, want %d events of containers that ended", timelineText(s), len(tc.want))
			}
			for event, message := range tc.want {
				if got[event].Message != message {
					t.Errorf("%s: %q, want %q", event, got[event].Message, message)
				}
				if event != BackOff && !strings.HasPrefix(got[event].At.UTC().Format(time.TimeOnly), "03:04:09") {
					t.Errorf("%s at %s, want the time of the first end", event, got[event].At)
				}
				if sourceOf(event) != v1alpha1.PhaseKubernetes {
					t.Errorf("%s is attributed to %q", event, sourceOf(event))
				}
			}
		})
	}
}
