package redisfault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/announce"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/timeline"
)

// report writes the status once, with what was observed and decided, and then emits events.
func (r *Reconciler) report(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.FaultAction], o outcome,
) error {
	if s.seen.Finished {
		return nil
	}
	if s.seen.Deleting && (!s.seen.Recorded || !s.seen.Finalizer) {
		return nil
	}
	status := &s.fault.Status
	if status.LoadTest = s.seen.LoadName; s.seen.DryRun && s.seen.OwnLoad { // it creates none
		status.LoadTest = ""
	}
	status.ObservedGeneration = s.fault.Generation
	timeline.AddOwn(status, s.fault.Spec.Action.Type, s.traits.Lasts > 0)
	if s.podsRead {
		timeline.AddPods(status, s.followedPods(), s.podsAt)
	}
	now := metav1.NewMicroTime(r.Clock.Now())
	status.Overstayed, status.Holding = s.overstayed(now.Time), s.holds(o.ended)
	s.warnOfRevert()
	s.limitHeld()
	s.setResults(o, d.Reason, now)
	status.Display = s.display()
	s.setConditions(d, o)
	if err := r.storeResult(ctx, s, o); err != nil {
		return err
	}
	if !r.statusDue(s) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.fault.DeepCopy(),
		state.OptimisticPatch(s.before)); err != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	if s.seen.Restored == "" { // no fault has ended
		r.count(s)
	}
	r.announcer().Emit(ctx, s.change())
	return nil
}

// announcer emits events.
func (r *Reconciler) announcer() announce.Announcer {
	return announce.Announcer{Recorder: r.Recorder, APIReader: r.APIReader}
}

// change is what the reconcile has changed.
func (s *scope) change() *announce.Change {
	return &announce.Change{Before: s.before, After: s.fault, Traits: s.traits}
}

// count counts what was just stored, as events are emitted for it.
func (r *Reconciler) count(s *scope) {
	r.Metrics.FaultStored(s.fault.Spec.Action.Type, &s.before.Status, &s.fault.Status)
}

// warnOfRevert adds what the revert leaves to the warnings.
func (s *scope) warnOfRevert() {
	warner, is := s.injector.(contract.Warner)
	if !is {
		return
	}
	status := &s.fault.Status
	for i := range status.Targets {
		for _, w := range fitting(warner.Warnings(&status.Targets[i])) {
			if !slices.Contains(status.Warnings, w) && len(status.Warnings) < mostWarnings {
				status.Warnings = append(status.Warnings, w)
			}
		}
	}
}

// setResults sets the figures, and when the fault has settled or ended, what follows from them.
func (s *scope) setResults(o outcome, reason string, now metav1.MicroTime) {
	status := &s.fault.Status
	if status.InjectedAt != nil && status.SettledTime == nil {
		s.setImpact(o.settled || o.ended)
		if o.settled || o.ended {
			status.SettledTime = &now
			s.judgeSettled()
		}
	}
	if !o.ended {
		return
	}
	s.setLosses()
	status.CompletionTime, status.Waiting = &now, nil
	if !o.failed && s.seen.Restored == "" {
		s.judge(reason)
	}
}

// atMostLate is how much longer than asked a fault may stay without a doubt.
const atMostLate = 2 * time.Second

// overstayed returns by how much longer than asked the fault has stayed on any target; nil if it
// has not. A revert that may take several steps is late by when it began, unless an attempt has
// failed.
func (s *scope) overstayed(now time.Time) *v1alpha1.Microseconds {
	status := &s.fault.Status
	if s.traits.Lasts == 0 || !s.seen.InjectedAll && status.RevertingSince == nil {
		return status.Overstayed
	}
	asked, since := s.seen.ActiveAt.Add(s.traits.Lasts), status.RevertingSince
	if since != nil && (!s.seen.InjectedAll || since.Time.Before(asked)) {
		asked = since.Time // it was ended early
	}
	var longest time.Duration
	for i := range status.Targets {
		t := &status.Targets[i]
		switch {
		case t.InjectedAt == nil:
		case since != nil && t.RevertAttempts == 0 && !s.traits.Separate:
			longest = max(longest, since.Sub(asked))
		case t.RevertedAt != nil:
			longest = max(longest, t.RevertedAt.Sub(asked))
		default:
			longest = max(longest, now.Sub(asked))
		}
	}
	// errors before the last attempt are not counted any more
	if old := status.Overstayed; old != nil {
		longest = max(longest, old.Duration())
	}
	if longest <= atMostLate {
		return nil
	}
	return new(v1alpha1.MicrosecondsOf(longest))
}

// statusDue reports whether the status is to be written: at once, except for figures that are not
// final, which are written every 2 s. What is seen of a setting before its load begins is not
// written unless it means something else: each write is a reason to look again.
func (r *Reconciler) statusDue(s *scope) bool {
	if equality.Semantic.DeepEqual(s.before.Status, s.fault.Status) {
		return false
	}
	steady := s.fault.Status.DeepCopy() // without the figures that change all the time
	steady.Impact, steady.Display = s.before.Status.Impact, s.before.Status.Display
	if steady.Effect == s.before.Status.Effect {
		steady.EffectEvidence = s.before.Status.EffectEvidence
	}
	for i := range steady.Conditions {
		if s.seen.Setting && steady.Conditions[i].Type == v1alpha1.ConditionComplete {
			continue
		}
		if c := meta.FindStatusCondition(s.before.Status.Conditions,
			steady.Conditions[i].Type); c != nil && c.Status == steady.Conditions[i].Status &&
			c.Reason == steady.Conditions[i].Reason {
			steady.Conditions[i].Message = c.Message
		}
	}
	if !equality.Semantic.DeepEqual(s.before.Status, *steady) {
		return true
	}
	return !(s.seen.Setting && s.run == nil) && r.Runs.Due(s.run, s.fault.UID, r.Clock.Now())
}
