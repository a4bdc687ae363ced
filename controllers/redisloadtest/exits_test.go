package redisloadtest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/builders"
)

// container is what a look at the container of redis-0 finds.
type container struct {
	uid     types.UID     // of its pod
	ended   int32         // times
	last    time.Duration // since the start of the load
	waiting string
}

func (c container) pod() *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "redis-0", UID: c.uid},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "redis", Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}
	status := corev1.ContainerStatus{Name: "redis", RestartCount: c.ended}
	if c.ended > 0 {
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode:   137,
			Reason:     "OOMKilled",
			FinishedAt: metav1.NewTime(t0.Add(c.last).Truncate(time.Second)),
		}
	}
	if c.waiting != "" {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.waiting}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	return pod
}

// Only ends within the load count, and none that a fault explains; a pod that replaces another goes on with its count,
// and so does another operator.
func TestExitsOfALoad(t *testing.T) {
	const once = "container redis of pod redis-0 ended once without a fault, the last time with exit code 137, " +
		"OOMKilled; its memory limit is 48Mi"
	for _, tt := range []struct {
		name    string
		looks   []container
		restart bool // of the operator, before the last look
		fault   bool // from 60 s to 81 s
		times   int32
		message string
	}{
		{"none", []container{{uid: "a"}, {uid: "a"}}, false, false, 0, ""},
		{"before the load", []container{{uid: "a", ended: 3, last: -time.Minute}}, false, false, 0, ""},
		{"one before the first look", []container{{uid: "a", ended: 4, last: 3 * time.Second}}, false, false, 1, once},
		{"in the second of the start", []container{{uid: "a", ended: 4}}, false, false, 1, once},
		{
			"two between two looks",
			[]container{
				{uid: "a", ended: 4, last: -time.Minute},
				{uid: "a", ended: 6, last: 15 * time.Second, waiting: "CrashLoopBackOff"},
			},
			false,
			false,
			2,
			"container redis of pod redis-0 ended 2 times without a fault, the last time with exit code 137, OOMKilled; its " +
				"memory limit is 48Mi; it waits to be started again: CrashLoopBackOff",
		},
		{"by a fault", []container{{uid: "a"}, {uid: "a", ended: 1, last: 61 * time.Second}}, false, true, 0, ""},
		{
			"by a fault, and long after it",
			[]container{{uid: "a"}, {uid: "a", ended: 1, last: 61 * time.Second}, {uid: "a", ended: 2, last: 100 * time.Second}},
			false,
			true,
			1,
			once,
		},
		{
			"in a pod, and in the one that replaces it",
			[]container{
				{uid: "a"},
				{uid: "a", ended: 1, last: 5 * time.Second},
				{uid: "b"},
				{uid: "b", ended: 1, last: 30 * time.Second},
			},
			false,
			false,
			2,
			"",
		},
		{
			"beside two operators",
			[]container{{uid: "a"}, {uid: "a", ended: 1, last: 5 * time.Second}, {uid: "a", ended: 3, last: 30 * time.Second}},
			true,
			false,
			3,
			"",
		},
	} {
		s := &scope.Test{
			Test: &v1alpha1.RedisLoadTest{},
			Plan: builders.Plan(),
			Run:  &runs.Run{},
			Seen: lifecycle.LoadTest{Course: lifecycle.Course{StartedAt: t0}},
		}
		if tt.fault {
			f := v1alpha1.RedisFault{
				Spec: v1alpha1.RedisFaultSpec{
					Action:           v1alpha1.Action{Type: v1alpha1.FaultProcessCrash},
					RecoveryDeadline: metav1.Duration{Duration: 20 * time.Second},
				},
			}
			f.Status.InjectedAt, f.Status.Impact = new(metav1.NewMicroTime(t0.Add(time.Minute))), &v1alpha1.Impact{}
			s.Faults = []v1alpha1.RedisFault{f}
		}
		for i, look := range tt.looks {
			if tt.restart && i == len(tt.looks)-1 {
				s.Run = &runs.Run{}
			}
			pod := look.pod()
			addExit(s, pod, &pod.Status.ContainerStatuses[0], t0.Add(5*time.Minute))
		}
		var got v1alpha1.ContainerExit
		if len(s.Test.Status.Exits) == 1 {
			got = s.Test.Status.Exits[0]
		}
		if len(s.Test.Status.Exits) > 1 || got.Times != tt.times || tt.message != "" && got.Message != tt.message {
			t.Errorf("%s: %+v, want %d: %s", tt.name, s.Test.Status.Exits, tt.times, tt.message)
		}
	}
}
