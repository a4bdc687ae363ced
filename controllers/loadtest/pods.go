package loadtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// observePods counts the load pods that are ready and those that are lost, and finds failed ones.
func (r *Reconciler) observePods(s *scope) {
	byIndex := map[int]*corev1.Pod{}
	for i := range s.pods {
		if index, ok := completionIndex(&s.pods[i]); ok {
			byIndex[index] = &s.pods[i]
		}
	}
	if s.seen.StartedAt.IsZero() {
		s.observeUnready(byIndex)
	} else {
		r.observeLostPods(s, byIndex)
	}
	s.seen.PodsReady = s.session.Ready
	s.seen.PodsLive = s.seen.PodsWanted - len(s.lost)
}

// observeUnready finds a pod that cannot start, and what the others wait for. The agent's reason takes precedence over the cluster's.
func (s *scope) observeUnready(byIndex map[int]*corev1.Pod) {
	for _, pod := range s.session.Pods {
		if pod.State == agent.Preparing && pod.Reachable {
			s.seen.PodsAwait = cmp.Or(s.seen.PodsAwait, pod.Reason)
		}
		if pod.State == agent.Failed && s.seen.AgentProblem == nil {
			s.seen.AgentProblem = &problem.Problem{Reason: cmp.Or(pod.Reason, "AgentFailed"), Message: fmt.Sprintf("load pod %s: %s", pod.Name, pod.Message)}
		}
	}
	for _, pod := range byIndex {
		if phaseOf(pod) == corev1.PodFailed && s.seen.AgentProblem == nil {
			s.seen.AgentProblem = &problem.Problem{Reason: "LoadPodFailed", Message: fmt.Sprintf("load pod %s: %s", pod.Name, terminationMessage(pod))}
		}
	}
}

// observeLostPods finds the pods that were lost since the start, and whether any pod received the start instant.
func (r *Reconciler) observeLostPods(s *scope, byIndex map[int]*corev1.Pod) {
	late := map[int]string{} // pods that did not receive the start instant in time
	for _, pod := range s.session.Pods {
		why := r.lostReason(byIndex[pod.Index], s.job, pod)
		// A pod that has not answered this process yet may be running: only the answers of all pods prove that none has started.
		s.seen.StartedAny = s.seen.StartedAny || !pod.StartAt.IsZero() || pod.Complete || pod.State == "" && why == ""
		if pod.Problem == collect.NotStarted && why != "" {
			late[pod.Index] = why
		} else if why != "" {
			s.lost[pod.Index] = why
		}
	}
	if s.seen.StartedAny { // otherwise all pods get a new start instant
		maps.Copy(s.lost, late)
	}
	s.keepFirstCauses()
	for _, index := range slices.Sorted(maps.Keys(s.lost)) {
		s.seen.PodsLost = append(s.seen.PodsLost, fmt.Sprintf("index %d: %s", index, s.lost[index]))
	}
}

// keepFirstCauses replaces what shows of lost pods now by what has shown first: an evicted pod is gone a moment later.
func (s *scope) keepFirstCauses() {
	for index, why := range s.lost {
		if s.run.Lost[index] == "" {
			if s.run.Lost == nil {
				s.run.Lost = map[int]string{}
			}
			s.run.Lost[index] = why
		}
		s.lost[index] = s.run.Lost[index]
	}
}

// lostReason returns why a load pod counts as lost, "" if it does not.
func (r *Reconciler) lostReason(pod *corev1.Pod, job *batchv1.Job, status collect.PodStatus) string {
	if finishedWithRecord(status) {
		return ""
	}
	why := r.failureOf(pod, job, status)
	if why == "" && status.Gone {
		return "it was lost earlier in the run"
	}
	return why
}

// finishedWithRecord reports whether a pod has finished and its record is complete. A pod that was released before a restart of the operator
// is not queried any more: its state is in the checkpoint.
func finishedWithRecord(pod collect.PodStatus) bool {
	return !pod.Gone && pod.Complete && (pod.State == agent.Finished || pod.State == "" && pod.Problem == "")
}

// failureOf returns why a running load pod counts as lost, "" if it does not.
func (r *Reconciler) failureOf(pod *corev1.Pod, job *batchv1.Job, status collect.PodStatus) string {
	switch {
	case status.State == agent.Failed:
		return fmt.Sprintf("%s failed: %s: %s", status.Name, status.Reason, status.Message)
	case pod == nil:
		return "the pod was deleted" + removal(nil, job)
	case phaseOf(pod) == corev1.PodFailed:
		return pod.Name + " " + terminationMessage(pod)
	case phaseOf(pod) == corev1.PodSucceeded:
		return pod.Name + " ended before its record was pulled"
	case pod.DeletionTimestamp != nil:
		return pod.Name + " is being deleted" + removal(pod, job)
	case status.Problem != "":
		return pod.Name + ": " + status.ProblemText
	case !status.Reachable && r.Clock.Since(status.UnreachableSince) > lifecycle.PodSilence:
		return fmt.Sprintf("%s gave no usable answer for %s: %s", pod.Name, lifecycle.PodSilence, status.Err)
	}
	return ""
}

// phaseOf is the phase of a pod, which has ended once its agent has, although a sidecar may go on.
func phaseOf(pod *corev1.Pod) corev1.PodPhase {
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
		if c := &pod.Status.ContainerStatuses[i]; c.Name == children.AgentContainer {
			return c.State.Terminated
		}
	}
	return nil
}

// terminationMessage describes how the agent of a failed pod ended.
func terminationMessage(pod *corev1.Pod) string {
	if t := endOfAgent(pod); t != nil {
		return strings.TrimSpace(fmt.Sprintf("ended with %s, exit code %d %s", t.Reason, t.ExitCode, withoutLog(t.Message))) + removal(pod, nil)
	}
	if pod.Status.Reason != "" {
		return strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message) + removal(pod, nil)
	}
	return "failed" + removal(pod, nil)
}

// withoutLog is a termination message without lines of the agent's log, which the kubelet takes where the agent has written no message: it was killed.
func withoutLog(message string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(message, "\n"), func(line string) bool { return strings.HasPrefix(line, "{") }), " ")
}

// removals says what the reasons of the condition DisruptionTarget mean: https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
var removals = map[string]string{
	corev1.PodReasonPreemptionByScheduler: "pre-empted by a pod of a higher priority",
	"DeletionByTaintManager":              "its node has a taint that it does not tolerate",
	"EvictionByEvictionAPI":               "evicted, as by a drain of its node",
	"DeletionByPodGC":                     "its node is gone",
	corev1.PodReasonTerminationByKubelet:  "ended by the kubelet, as under node pressure or at a shutdown of the node",
}

// removal is why Kubernetes removes a pod, nil where it is gone: its own condition, or its Job, nil where that cannot be the reason. It is empty where nothing says that.
func removal(pod *corev1.Pod, job *batchv1.Job) string {
	if pod != nil {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
				return fmt.Sprintf(": %s (%s)", cmp.Or(removals[c.Reason], "disrupted"), strings.TrimSuffix(c.Reason+": "+c.Message, ": "))
			}
		}
	}
	if job != nil && job.Spec.Suspend != nil && *job.Spec.Suspend {
		return fmt.Sprintf(": something has suspended Job %s, as a queue does that pre-empts it", job.Name)
	}
	return ""
}

// explainPods describes why the load is not ready, with the messages of the scheduler, the kubelet, the quota and the agents.
func (r *Reconciler) explainPods(ctx context.Context, s *scope) string {
	var why []string
	explained := map[string]bool{} // pods with a message of the cluster: that their agents do not answer follows from it
	for i := range s.pods {
		if text := explainPod(&s.pods[i]); text != "" {
			why, explained[s.pods[i].Name] = append(why, s.pods[i].Name+" "+text), true
		}
	}
	for _, p := range s.session.Pods {
		switch {
		case p.State == agent.Preparing && p.Message != "":
			why = append(why, p.Name+" "+p.Message)
		case p.Address != "" && !p.Reachable && p.Err != "" && !explained[p.Name]:
			why = append(why, fmt.Sprintf("%s does not answer the operator at %s: %s", p.Name, p.Address, p.Err))
		}
	}
	if missing := s.seen.PodsWanted - len(s.pods); missing > 0 {
		why = append(why, fmt.Sprintf("%d not created yet%s", missing, r.jobTrouble(ctx, s.job)))
	}
	if len(why) == 0 {
		return "connecting"
	}
	slices.Sort(why)
	why = slices.Compact(why)
	if len(why) > 3 {
		why = append(why[:3], fmt.Sprintf("and %d more", len(why)-3))
	}
	return strings.Join(why, "; ")
}

func explainPod(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "is not scheduled: " + c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return strings.TrimSpace("waits: " + w.Reason + " " + w.Message)
		}
	}
	if pod.Status.PodIP == "" {
		return "is starting"
	}
	return ""
}

// jobTrouble returns the latest warning of the Job controller, such as an exceeded quota, which is reported by events only.
func (r *Reconciler) jobTrouble(ctx context.Context, job *batchv1.Job) string {
	if job == nil {
		return ""
	}
	var page corev1.EventList
	var newest *corev1.Event
	err := target.EachPage(ctx, r.APIReader, &page, func() bool {
		for i := range page.Items {
			if e := &page.Items[i]; newest == nil || e.LastTimestamp.After(newest.LastTimestamp.Time) {
				newest = e
			}
		}
		page.Items = nil // the next page must not be decoded over these
		return true
	}, client.InNamespace(job.Namespace), client.MatchingFields{"involvedObject.uid": string(job.UID), "type": corev1.EventTypeWarning})
	if err != nil || newest == nil {
		return ""
	}
	return ": " + newest.Message
}

func completionIndex(pod *corev1.Pod) (int, bool) {
	index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	return index, err == nil
}
