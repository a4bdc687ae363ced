package redisfault

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/announce"
	"github.com/redquake/redquake/controllers/redisfault/conditions"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/timeline"
)

// report writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, s *scope.Fault, d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome,
) error {
	if s.Seen.Finished {
		return nil
	}
	if s.Seen.Deleting && (!s.Seen.Recorded || !s.Seen.Finalizer) {
		return nil
	}
	status := &s.Fault.Status
	if status.LoadTest = s.Seen.LoadName; s.Seen.DryRun && s.Seen.OwnLoad { // it creates none
		status.LoadTest = ""
	}
	status.ObservedGeneration = s.Fault.Generation
	timeline.AddOwn(status, s.Fault.Spec.Action.Type, s.Traits.Lasts > 0)
	for _, other := range s.Meanwhile {
		timeline.AddBeside(status, other)
	}
	if s.PodsRead {
		timeline.AddPods(status, figures.FollowedPods(s), s.PodsAt)
	}
	now := metav1.NewMicroTime(r.Clock.Now())
	status.Overstayed = figures.Overstayed(s, now.Time)
	status.Holding = turns.Holds(s, o.Ended)
	warnOfRevert(s)
	conditions.LimitHeld(s)
	figures.SetResults(s, o, d, now)
	status.Display = conditions.Display(s)
	conditions.Set(s, d, o)
	err := figures.StoreResult(ctx, s, r.Client, o)
	if err != nil {
		return err
	}
	if !r.statusDue(s) {
		return nil
	}
	err = state.PatchStatus(ctx, r.Client, s.Fault, s.Before)
	if err != nil {
		return err
	}
	if s.Seen.Restored == "" { // no fault has ended
		r.count(s)
	}
	r.announcer().Emit(ctx, change(s))
	return nil
}

// announcer emits events.
func (r *Reconciler) announcer() announce.Announcer {
	return announce.Announcer{Recorder: r.Recorder, APIReader: r.APIReader}
}

// change is what the reconcile has changed.
func change(s *scope.Fault) *announce.Change {
	return &announce.Change{
		Before: s.Before,
		After:  s.Fault,
		Traits: s.Traits,
	}
}

// count counts what was just stored, as events are emitted for it.
func (r *Reconciler) count(s *scope.Fault) {
	r.Metrics.FaultStored(s.Fault.Spec.Action.Type, &s.Before.Status, &s.Fault.Status)
}

// warnOfRevert adds what the revert leaves to the warnings.
func warnOfRevert(s *scope.Fault) {
	warner, ok := s.Injector.(contract.Warner)
	if !ok {
		return
	}
	status := &s.Fault.Status
	for i := range status.Targets {
		for _, w := range fitting(warner.Warnings(&status.Targets[i])) {
			if !slices.Contains(status.Warnings, w) && len(status.Warnings) < mostWarnings {
				status.Warnings = append(status.Warnings, w)
			}
		}
	}
}

// statusDue reports whether the status is to be written: at once, except for figures that are not
// final, which are written every 2 s. What is seen of a setting before its load begins is not
// written unless it means something else: each write is a reason to look again.
func (r *Reconciler) statusDue(s *scope.Fault) bool {
	if equality.Semantic.DeepEqual(s.Before.Status, s.Fault.Status) {
		return false
	}
	steady := s.Fault.Status.DeepCopy() // without the figures that change all the time
	steady.Impact, steady.Display = s.Before.Status.Impact, s.Before.Status.Display
	if steady.Effect == s.Before.Status.Effect {
		steady.EffectEvidence = s.Before.Status.EffectEvidence
	}
	for i := range steady.Conditions {
		if s.Seen.Setting && steady.Conditions[i].Type == v1alpha1.ConditionComplete {
			continue
		}
		c := meta.FindStatusCondition(s.Before.Status.Conditions, steady.Conditions[i].Type)
		if c != nil && c.Status == steady.Conditions[i].Status &&
			c.Reason == steady.Conditions[i].Reason {
			steady.Conditions[i].Message = c.Message
		}
	}
	if !equality.Semantic.DeepEqual(s.Before.Status, *steady) {
		return true
	}
	return !(s.Seen.Setting && s.Run == nil) && r.Runs.Due(s.Run, s.Fault.UID, r.Clock.Now())
}
