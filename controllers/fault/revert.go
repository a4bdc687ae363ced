package fault

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
)

// revert reverts every target that is not reverted yet.
func (r *Reconciler) revert(ctx context.Context, s *scope) outcome {
	status := &s.fault.Status
	r.beginRevert(ctx, s)
	complete, ended := make([]bool, len(status.Targets)), make([]metav1.MicroTime, len(status.Targets))
	var reverting errgroup.Group
	reverting.SetLimit(1)
	if s.traits.Separate { // a deleted fault must be removed in time even if many servers do not answer
		reverting.SetLimit(16)
	}
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.RevertedAt == nil && !t.RevertAbandoned {
			reverting.Go(func() error {
				complete[i] = r.revertOne(ctx, s, t)
				ended[i] = metav1.NewMicroTime(r.Clock.Now())
				return nil
			})
		}
	}
	_ = reverting.Wait() // no revert returns an error
	all := true
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.RevertedAt != nil || t.RevertAbandoned {
			continue
		}
		if !complete[i] {
			all = false
			continue
		}
		t.RevertedAt = &ended[i]
		if s.traits.Lasts > 0 && t.InjectedAt != nil {
			appendEvent(status, ended[i].Time, eventReverted, t.Pod, "")
		}
	}
	s.markReverted(r.Clock.Now())
	return outcome{again: all}
}

// beginRevert records that the revert has begun: there are no injections after that.
func (r *Reconciler) beginRevert(ctx context.Context, s *scope) {
	status := &s.fault.Status
	if status.RevertingSince != nil {
		return
	}
	if s.seen.LastLook() {
		s.confirmBeforeRevert(ctx, r.Clock.Now())
	}
	now := metav1.NewMicroTime(r.Clock.Now())
	status.RevertingSince = &now
	for i := range status.Targets { // the reason why an injection is incomplete remains in the status
		if t := &status.Targets[i]; t.ActiveAt == nil && t.Progress != "" {
			t.LastError = state.Truncate("not complete: "+t.Progress, 1024)
		}
	}
}

// revertOne calls Revert for one target and records the result.
func (r *Reconciler) revertOne(ctx context.Context, s *scope, t *v1alpha1.FaultTarget) (complete bool) {
	logger := s.logOf(ctx, t)
	progress, err := s.injector.Revert(ctx, t)
	t.Progress = ""
	switch {
	case err != nil:
		t.RevertAttempts++
		t.LastError = state.Truncate(err.Error(), 1024)
		logger.V(1).Info("Retrying to revert", "attempts", t.RevertAttempts, "cause", err.Error())
		return false
	case !progress.Complete():
		t.Progress, t.RevertAttempts = state.Truncate(progress.Message, 512), 0
		t.LastError = state.Truncate(progress.Message, 1024)
		logger.V(1).Info("Revert is under way", "progress", t.Progress)
		return false
	}
	if t.ActiveAt != nil { // otherwise it is the reason why the injection is incomplete
		t.LastError = ""
	}
	logger.Info("Reverted")
	return true
}

// abandon abandons the revert of the targets where it has failed for too long, and shows the commands to revert them manually.
func (r *Reconciler) abandon(ctx context.Context, s *scope) outcome {
	now := r.Clock.Now()
	for _, p := range s.seen.Pending {
		i := slices.IndexFunc(s.fault.Status.Targets, func(t v1alpha1.FaultTarget) bool { return t.Pod == p.Pod })
		if i < 0 || !s.seen.Abandons(p, now) {
			continue
		}
		t := &s.fault.Status.Targets[i]
		t.RevertAbandoned, t.ManualRevertCommand = true, state.Truncate(s.injector.ManualRevertCommand(t), 2048)
		s.logOf(ctx, t).Info("Abandoned the revert", "attempts", t.RevertAttempts, "cause", t.LastError, "manualRevertCommand", t.ManualRevertCommand)
	}
	s.markReverted(now)
	return outcome{again: true}
}

// markReverted records when nothing was left to revert.
func (s *scope) markReverted(at time.Time) {
	status := &s.fault.Status
	open := func(t v1alpha1.FaultTarget) bool { return t.RevertedAt == nil && !t.RevertAbandoned }
	if status.RevertedAt == nil && !slices.ContainsFunc(status.Targets, open) {
		now := metav1.NewMicroTime(at)
		status.RevertedAt = &now
	}
}
