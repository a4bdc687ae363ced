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
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/problem"
)

// observePods counts the load pods that are ready and those that are lost, and finds failed ones.
func (r *Reconciler) observePods(s *scope) {
	byIndex := map[int]*corev1.Pod{}
	for i := range s.pods {
		if index, ok := loadpods.Index(&s.pods[i]); ok {
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

// observeUnready finds a pod that cannot start, and what the others wait for. The agent's reason
// takes precedence over the cluster's.
func (s *scope) observeUnready(byIndex map[int]*corev1.Pod) {
	for _, pod := range s.session.Pods {
		if pod.State == agent.Preparing && pod.Reachable {
			s.seen.PodsAwait = cmp.Or(s.seen.PodsAwait, pod.Reason)
		}
		if pod.State == agent.Failed && s.seen.AgentProblem == nil {
			s.seen.AgentProblem = &problem.Problem{
				Reason:  cmp.Or(pod.Reason, "AgentFailed"),
				Message: fmt.Sprintf("load pod %s: %s", pod.Name, pod.Message),
			}
		}
	}
	for _, pod := range byIndex {
		if loadpods.Phase(pod) == corev1.PodFailed && s.seen.AgentProblem == nil {
			s.seen.AgentProblem = &problem.Problem{
				Reason:  "LoadPodFailed",
				Message: fmt.Sprintf("load pod %s: %s", pod.Name, loadpods.Termination(pod)),
			}
		}
	}
}

// observeLostPods finds the pods that were lost since the start, and whether any pod received the
// start instant.
func (r *Reconciler) observeLostPods(s *scope, byIndex map[int]*corev1.Pod) {
	late := map[int]string{} // pods that did not receive the start instant in time
	for _, pod := range s.session.Pods {
		why := r.lostReason(byIndex[pod.Index], s.job, pod)
		// A pod that has not answered this process yet may be running: only the answers of all pods prove
		// that none has started.
		s.seen.StartedAny = s.seen.StartedAny || !pod.StartAt.IsZero() || pod.Complete ||
			pod.State == "" && why == ""
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

// keepFirstCauses replaces what shows of lost pods now by what has shown first: an evicted pod is
// gone a moment later.
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
func (r *Reconciler) explainPods(ctx context.Context, s *scope) string {
	var why []string
	// pods with a message of the cluster: that their agents do not answer follows from it
	explained := map[string]bool{}
	for i := range s.pods {
		if text := loadpods.Explain(&s.pods[i]); text != "" {
			why, explained[s.pods[i].Name] = append(why, s.pods[i].Name+" "+text), true
		}
	}
	for _, p := range s.session.Pods {
		switch {
		case p.State == agent.Preparing && p.Message != "":
			why = append(why, p.Name+" "+p.Message)
		case p.Address != "" && !p.Reachable && p.Err != "" && !explained[p.Name]:
			why = append(why, fmt.Sprintf("%s does not answer the operator at %s: %s", p.Name, p.Address,
				p.Err))
		}
	}
	if missing := s.seen.PodsWanted - len(s.pods); missing > 0 {
		why = append(why, fmt.Sprintf("%d not created yet%s", missing,
			loadpods.JobTrouble(ctx, r.APIReader, s.job)))
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
