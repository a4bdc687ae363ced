package redisfault

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/podwatch"
	"github.com/redquake/redquake/internal/timeline"
)

// needsPods reports whether the pods of the fault's target are part of its timeline.
func needsPods(f *v1alpha1.RedisFault) bool {
	return f.Status.StartTime != nil && f.Status.SettledTime == nil && !f.Spec.DryRun
}

// watchPods follows the pods of the fault's target. Without pods that can be determined there is
// nothing to follow.
func (r *Reconciler) watchPods(ctx context.Context, s *scope.Fault) {
	defer func() { s.Deps.Watched = r.Term.Find(s.Fault.UID).Pods() }()
	if s.Target == nil || r.Term.Find(s.Fault.UID).Pods() != nil {
		return
	}
	selector, err := s.Deps.Selector(ctx)
	if err != nil { // the Service was deleted, or access was revoked: the state of the pods is unknown
		return
	}
	pods := r.Term.FollowPods(s.Fault,
		func(following context.Context, changed func()) *podwatch.Watch {
			return podwatch.Begin(following, r.APIReader, s.Fault.Namespace, selector, changed)
		})
	if pods == nil { // the manager stops
		return
	}
	waits, stop := context.WithTimeout(ctx, confine.AskTimeout)
	defer stop()
	pods.Synced(waits)
}

// watchServers polls the servers of the target from before the injection on. A failure to do so
// does not prevent the injection.
func (r *Reconciler) watchServers(s *scope.Fault) {
	if s.Target != nil {
		r.Term.WatchServers(s.Fault, s.Deps.Redis,
			s.Traits.Lasts+s.Fault.Spec.MarkWait()+s.Fault.Spec.RecoveryDeadline.Duration+10*time.Minute)
	}
}

// recordSightings adds what was seen of the servers, and what the injector has observed, to the
// timeline.
func (r *Reconciler) recordSightings(ctx context.Context, s *scope.Fault) {
	status := &s.Fault.Status
	if status.InjectedAt == nil {
		return
	}
	all := r.Term.Find(s.Fault.UID).Sightings()
	if follower, ok := s.Injector.(contract.Follower); ok {
		ctx, cancel := context.WithTimeout(ctx, confine.AskTimeout)
		defer cancel()
		for i := range status.Targets {
			all = append(all, follower.Follow(ctx, &status.Targets[i])...)
		}
	}
	for _, seen := range all {
		at := seen.At
		if !seen.Coarse && at.Before(status.InjectedAt.Time) {
			continue // observed during an earlier attempt: not an effect of the fault
		}
		if seen.Coarse {
			at = timeline.Estimate(r.Clock.Now(), metav1.NewTime(at))
		}
		timeline.Append(status, at, seen.Event, seen.Object, seen.Message)
	}
}

// journal adds the present pods to the journal of a fault that waits. A target of addresses has no
// known pods.
func (r *Reconciler) journal(s *scope.Fault) {
	if pods, ok := s.Deps.Watched.Pods(); ok {
		r.Term.NotePods(s.Fault, faultrun.NewSnapshot(r.Clock.Now(), pods, func(pod *corev1.Pod) string {
			return s.Deps.Container(pod).Name
		}))
	}
}

// markedLate is how late a mark may be for the pods of before to count as those that were hit.
const markedLate = 2 * time.Second

// replay sets the pods just before t0 as targets, and adds what has happened to them since then to
// the timeline.
func (r *Reconciler) replay(s *scope.Fault) {
	journal := r.Term.Find(s.Fault.UID).Journal()
	if journal == nil {
		return
	}
	status := &s.Fault.Status
	then, later := journal.Since(status.InjectedAt.Add(-markedLate))
	status.Targets = nil
	for _, pod := range then[:min(len(then), 1000)] {
		t := v1alpha1.FaultTarget{
			Pod:        pod.Name,
			UID:        string(pod.UID),
			Node:       pod.Spec.NodeName,
			Container:  pod.Spec.Containers[0].Name,
			RevertedAt: status.RevertedAt,
		}
		for _, c := range pod.Status.ContainerStatuses {
			t.RestartCount = c.RestartCount
		}
		status.Targets = append(status.Targets, t)
	}
	for _, one := range later {
		timeline.AddPods(status, one.Pods, one.At)
	}
}
