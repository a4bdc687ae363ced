// Package loadpods says of load pods why they do not start, and why they count as lost, as the
// cluster and their agents show it.
package loadpods

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/target/paging"
)

// FinishedWithRecord reports whether a pod has finished and its record is complete. A pod that was
// released before a restart of the operator is not queried any more: its state is in the
// checkpoint.
func FinishedWithRecord(pod collect.PodStatus) bool {
	return !pod.Gone && pod.Complete &&
		(pod.State == agent.Finished || pod.State == "" && pod.Problem == "")
}

// Failure returns why a running load pod counts as lost, "" if it does not.
func Failure(pod *corev1.Pod, job *batchv1.Job, status collect.PodStatus, now time.Time) string {
	switch {
	case status.State == agent.Failed:
		return fmt.Sprintf("%s failed: %s: %s", status.Name, status.Reason, status.Message)
	case pod == nil:
		return "the pod was deleted" + removal(nil, job)
	case Phase(pod) == corev1.PodFailed:
		return pod.Name + " " + Termination(pod)
	case Phase(pod) == corev1.PodSucceeded:
		return pod.Name + " ended before its record was pulled"
	case pod.DeletionTimestamp != nil:
		return pod.Name + " is being deleted" + removal(pod, job)
	case status.Problem != "":
		return pod.Name + ": " + status.ProblemText
	case !status.Reachable && now.Sub(status.UnreachableSince) > lifecycle.PodSilence:
		return fmt.Sprintf("%s gave no usable answer for %s: %s", pod.Name, lifecycle.PodSilence,
			status.Err)
	}
	return ""
}

// Phase is the phase of a pod, which has ended once its agent has, although a sidecar may go on.
func Phase(pod *corev1.Pod) corev1.PodPhase {
	if t := endOfAgent(pod); t != nil && t.ExitCode == 0 {
		return corev1.PodSucceeded
	} else if t != nil {
		return corev1.PodFailed
	}
	return pod.Status.Phase
}

// endOfAgent is how the agent of a pod has ended; nil while it has not.
func endOfAgent(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.Name == children.AgentContainer {
			return c.State.Terminated
		}
	}
	return nil
}

// Termination describes how the agent of a failed pod ended.
func Termination(pod *corev1.Pod) string {
	if t := endOfAgent(pod); t != nil {
		return strings.TrimSpace(fmt.Sprintf("ended with %s, exit code %d %s", t.Reason, t.ExitCode,
			withoutLog(t.Message))) + removal(pod, nil)
	}
	if pod.Status.Reason != "" {
		return strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message) + removal(pod, nil)
	}
	return "failed" + removal(pod, nil)
}

// withoutLog is a termination message without lines of the agent's log, which the kubelet takes
// where the agent has written no message: it was killed.
func withoutLog(message string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(message, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "{")
	}), " ")
}

// removals says what the reasons of the condition DisruptionTarget mean:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
var removals = map[string]string{
	corev1.PodReasonPreemptionByScheduler: "pre-empted by a pod of a higher priority",
	"DeletionByTaintManager":              "its node has a taint that it does not tolerate",
	"EvictionByEvictionAPI":               "evicted, as by a drain of its node",
	"DeletionByPodGC":                     "its node is gone",
	corev1.PodReasonTerminationByKubelet:  "ended by the kubelet, as under node pressure or at a shutdown of the node",
}

// removal is why Kubernetes removes a pod, nil where it is gone: its own condition, or its Job, nil
// where that cannot be the reason. It is empty where nothing says that.
func removal(pod *corev1.Pod, job *batchv1.Job) string {
	if pod != nil {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
				return fmt.Sprintf(": %s (%s)", cmp.Or(removals[c.Reason], "disrupted"),
					strings.TrimSuffix(c.Reason+": "+c.Message, ": "))
			}
		}
	}
	if job != nil && job.Spec.Suspend != nil && *job.Spec.Suspend {
		return fmt.Sprintf(": something has suspended Job %s, as a queue does that pre-empts it",
			job.Name)
	}
	return ""
}

// Explain says what keeps a pod from running; "" = nothing that shows.
func Explain(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "is not scheduled: " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return strings.TrimSpace("waits: "+w.Reason+" "+w.Message) + lastWords(&c)
		}
	}
	if pod.Status.PodIP == "" {
		return "is starting"
	}
	return ""
}

// mostWords is how much is shown of what a container wrote before it ended, bytes.
const mostWords = 300

// lastWords is what a container wrote that has ended and is to be started again; "" if nothing.
func lastWords(c *corev1.ContainerStatus) string {
	t := c.LastTerminationState.Terminated
	if t == nil || strings.TrimSpace(t.Message) == "" {
		return ""
	}
	words := strings.Join(strings.Fields(withoutLog(t.Message)), " ")
	if len(words) > mostWords {
		words = strings.ToValidUTF8(words[:mostWords], "") + "..."
	}
	return "; it had ended with: " + words
}

// JobTrouble returns the latest warning of the Job controller, such as an exceeded quota, which is
// reported by events only.
func JobTrouble(ctx context.Context, api client.Reader, job *batchv1.Job) string {
	if job == nil {
		return ""
	}
	var page corev1.EventList
	var newest *corev1.Event
	err := paging.Each(ctx, api, &page, func() bool {
		for i := range page.Items {
			e := &page.Items[i]
			if newest == nil || e.LastTimestamp.After(newest.LastTimestamp.Time) {
				newest = e
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(job.Namespace),
		client.MatchingFields{"involvedObject.uid": string(job.UID), "type": corev1.EventTypeWarning})
	if err != nil || newest == nil {
		return ""
	}
	return ": " + newest.Message
}

// Index is the completion index of a pod of a Job; ok = it has one.
func Index(pod *corev1.Pod) (index int, ok bool) {
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	return index, err == nil
}
