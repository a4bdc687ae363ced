package redisloadtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/controllers/loadpods"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/problem"
)

// observePods counts the load pods that are ready and those that are lost, and finds failed ones.
func (r *Reconciler) observePods(s *scope.Test) {
	byIndex := map[int]*corev1.Pod{}
	for i := range s.Pods {
		if index, ok := loadpods.Index(&s.Pods[i]); ok {
			byIndex[index] = &s.Pods[i]
		}
	}
	if s.Seen.StartedAt.IsZero() {
		observeUnready(s, byIndex)
	} else {
		r.observeLostPods(s, byIndex)
	}
	s.Seen.PodsReady = s.Session.Ready
	s.Seen.PodsLive = s.Seen.PodsWanted - len(s.Lost)
}

// observeUnready finds a pod that cannot start, and what the others wait for. The agent's reason
// takes precedence over the cluster's.
func observeUnready(s *scope.Test, byIndex map[int]*corev1.Pod) {
	for _, pod := range s.Session.Pods {
		if pod.State == agent.Preparing && pod.Reachable {
			s.Seen.PodsAwait = cmp.Or(s.Seen.PodsAwait, pod.Reason)
		}
		if pod.State == agent.Failed && s.Seen.AgentProblem == nil {
			s.Seen.AgentProblem = &problem.Problem{
				Reason:  cmp.Or(pod.Reason, "AgentFailed"),
				Message: fmt.Sprintf("load pod %s: %s", pod.Name, pod.Message),
			}
		}
	}
	for _, pod := range byIndex {
		if loadpods.Phase(pod) == corev1.PodFailed && s.Seen.AgentProblem == nil {
			s.Seen.AgentProblem = &problem.Problem{
				Reason:  "LoadPodFailed",
				Message: fmt.Sprintf("load pod %s: %s", pod.Name, loadpods.Termination(pod)),
			}
		}
	}
}

// observeLostPods finds the pods that were lost since the start, and whether any pod received the
// start instant.
func (r *Reconciler) observeLostPods(s *scope.Test, byIndex map[int]*corev1.Pod) {
	late := map[int]string{} // pods that did not receive the start instant in time
	for _, pod := range s.Session.Pods {
		why := r.lostReason(byIndex[pod.Index], s.Job, pod)
		// A pod that has not answered this process yet may be running: only the answers of all pods prove
		// that none has started.
		s.Seen.StartedAny = s.Seen.StartedAny || !pod.StartAt.IsZero() || pod.Complete ||
			pod.State == "" && why == ""
		if pod.Problem == collect.NotStarted && why != "" {
			late[pod.Index] = why
		} else if why != "" {
			s.Lost[pod.Index] = why
		}
	}
	if s.Seen.StartedAny { // otherwise all pods get a new start instant
		maps.Copy(s.Lost, late)
	}
	keepFirstCauses(s)
	for _, index := range slices.Sorted(maps.Keys(s.Lost)) {
		s.Seen.PodsLost = append(s.Seen.PodsLost, fmt.Sprintf("index %d: %s", index, s.Lost[index]))
	}
}

// keepFirstCauses replaces what shows of lost pods now by what has shown first: an evicted pod is
// gone a moment later.
func keepFirstCauses(s *scope.Test) {
	for index, why := range s.Lost {
		if s.Run.Lost[index] == "" {
			if s.Run.Lost == nil {
				s.Run.Lost = map[int]string{}
			}
			s.Run.Lost[index] = why
		}
		s.Lost[index] = s.Run.Lost[index]
	}
}

// lostReason returns why a load pod counts as lost, "" if it does not.
func (r *Reconciler) lostReason(
	pod *corev1.Pod, job *batchv1.Job, status collect.PodStatus,
) string {
	if loadpods.FinishedWithRecord(status) {
		return ""
	}
	why := loadpods.Failure(pod, job, status, r.Clock.Now())
	if why == "" && status.Gone {
		return "it was lost earlier in the run"
	}
	return why
}

// explainPods describes why the load is not ready, with the messages of the scheduler, the kubelet,
// the quota and the agents.
func (r *Reconciler) explainPods(ctx context.Context, s *scope.Test) string {
	var why []string
	// pods with a message of the cluster: that their agents do not answer follows from it
	explained := map[string]bool{}
	for i := range s.Pods {
		if text := loadpods.Explain(&s.Pods[i]); text != "" {
			why, explained[s.Pods[i].Name] = append(why, s.Pods[i].Name+" "+text), true
		}
	}
	for _, p := range s.Session.Pods {
		switch {
		case p.State == agent.Preparing && p.Message != "":
			why = append(why, p.Name+" "+p.Message)
		case p.Address != "" && !p.Reachable && p.Err != "" && !explained[p.Name]:
			why = append(why, fmt.Sprintf("%s does not answer the operator at %s: %s", p.Name, p.Address,
				p.Err))
		}
	}
	if missing := s.Seen.PodsWanted - len(s.Pods); missing > 0 {
		why = append(why, fmt.Sprintf("%d not created yet%s", missing,
			loadpods.JobTrouble(ctx, r.APIReader, s.Job)))
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
