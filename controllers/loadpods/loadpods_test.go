package loadpods

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/collect"
)

// A pod has ended once its agent has: a sidecar may go on for as long as the Job exists.
func TestPhaseWithASidecar(t *testing.T) {
	ended := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "why"},
		}
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
		if got := Phase(pod); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if got := Termination(pod); tc.want == corev1.PodFailed && got != "ended with Error, exit code 1 why" {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// The message of a lost load pod names what has removed it.
func TestRemovalIsNamed(t *testing.T) {
	running := collect.PodStatus{State: agent.Running, Reachable: true}
	condition := func(reason, message string) corev1.PodCondition {
		return corev1.PodCondition{
			Type:    corev1.DisruptionTarget,
			Status:  corev1.ConditionTrue,
			Reason:  reason,
			Message: message,
		}
	}
	deleted := func(c ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "load-0", DeletionTimestamp: new(metav1.Now())},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: c},
		}
	}
	failed := func(terminated *corev1.ContainerStateTerminated, c ...corev1.PodCondition) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "load-0"},
			Status:     corev1.PodStatus{Phase: corev1.PodFailed, Conditions: c},
		}
		if terminated != nil {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: children.AgentContainer, State: corev1.ContainerState{Terminated: terminated}},
			}
		}
		return pod
	}
	evicted := failed(nil)
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "The node was low on resource: memory"
	suspended := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "run-load"}, Spec: batchv1.JobSpec{Suspend: new(true)}}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		job  *batchv1.Job
		want string
	}{
		"deleted by somebody": {deleted(), &batchv1.Job{}, "load-0 is being deleted"},
		"evicted": {
			deleted(condition("EvictionByEvictionAPI", "Eviction API: evicting")), nil,
			"load-0 is being deleted: evicted, as by a drain of its node (EvictionByEvictionAPI: Eviction API: evicting)",
		},
		"pre-empted": {
			deleted(condition("PreemptionByScheduler", "default-scheduler: preempting")), nil,
			"pre-empted by a pod of a higher priority (PreemptionByScheduler: default-scheduler: preempting)",
		},
		"by a taint": {
			deleted(condition("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")), nil,
			"its node has a taint that it does not tolerate (DeletionByTaintManager",
		},
		"its node is gone": {
			deleted(condition("DeletionByPodGC", "PodGC: node no longer exists")), nil,
			"its node is gone (DeletionByPodGC",
		},
		"by the kubelet": {
			failed(nil, condition("TerminationByKubelet", "The node was low on resource: memory")), nil,
			"load-0 failed: ended by the kubelet, as under node pressure or at a shutdown of the node (TerminationByKubelet: The node was low",
		},
		"for a reason to come": {deleted(condition("Another", "")), nil, "is being deleted: disrupted (Another)"},
		"by the kubelet, once": {evicted, nil, "load-0 Evicted The node was low on resource: memory"},
		"a suspended Job": {
			deleted(), suspended,
			"load-0 is being deleted: something has suspended Job run-load, as a queue does that pre-empts it",
		},
		"it is gone by now": {nil, suspended, "the pod was deleted: something has suspended Job run-load"},
		"out of memory": {
			failed(&corev1.ContainerStateTerminated{
				ExitCode: 137,
				Reason:   "OOMKilled",
				Message:  `{"level":"INFO","msg":"Running"}` + "\n" + `{"level":"INFO"}`,
			}),
			nil,
			"load-0 ended with OOMKilled, exit code 137",
		},
	} {
		got := Failure(tc.pod, tc.job, running, time.Now())
		if !strings.Contains(got, tc.want) || name == "deleted by somebody" && got != tc.want ||
			strings.Contains(got, "INFO") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What keeps a load pod from running is said of its sidecars, too, with what one that ended wrote last.
func TestExplain(t *testing.T) {
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
	}
	long := strings.Repeat("x ", 500)
	for _, tc := range []struct {
		name          string
		client, agent corev1.ContainerStatus
		want          string
	}{
		{
			"image",
			corev1.ContainerStatus{State: waits("ErrImagePull", "not found")},
			corev1.ContainerStatus{State: waits("PodInitializing", "")},
			"waits: ErrImagePull not found",
		},
		{
			"crashes",
			corev1.ContainerStatus{
				State:                waits("CrashLoopBackOff", "back-off 10s"),
				LastTerminationState: ended("{\"level\":\"info\"}\nno module\n  named redis\n"),
			},
			corev1.ContainerStatus{},
			"waits: CrashLoopBackOff back-off 10s; it had ended with: no module named redis",
		},
		{
			"writes much",
			corev1.ContainerStatus{State: waits("CrashLoopBackOff", ""), LastTerminationState: ended(long)},
			corev1.ContainerStatus{},
			"waits: CrashLoopBackOff; it had ended with: " + long[:300] + "...",
		},
		{"nothing", corev1.ContainerStatus{}, corev1.ContainerStatus{}, ""},
	} {
		got := Explain(&corev1.Pod{Status: corev1.PodStatus{
			PodIP:                 "10.0.0.1",
			InitContainerStatuses: []corev1.ContainerStatus{tc.client},
			ContainerStatuses:     []corev1.ContainerStatus{tc.agent},
		}})
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
