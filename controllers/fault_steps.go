package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/lifecycle"
)

// perform does the one thing that was decided.
func (r *RedisFaultReconciler) perform(ctx context.Context, s *faultScope, d lifecycle.Decision[lifecycle.FaultAction]) outcome {
	switch d.Action {
	case lifecycle.FaultWait:
		return outcome{problem: s.seen.Problem}
	case lifecycle.FaultAddFinalizer:
		return r.setFinalizer(ctx, s, true)
	case lifecycle.FaultMakeLoad:
		return outcome{err: client.IgnoreAlreadyExists(r.Client.Create(ctx, children.ProbeLoadTest(s.fault)))}
	case lifecycle.FaultRecord:
		return r.record(ctx, s)
	case lifecycle.FaultInject:
		return r.inject(ctx, s)
	case lifecycle.FaultHold:
		err := s.keep(ctx)
		s.confirm(ctx, r.Clock.Now())
		r.sightings(ctx, s)
		return outcome{err: err}
	case lifecycle.FaultObserve:
		if s.fault.Status.Effect != v1alpha1.EffectConfirmed && s.traits.Lasts == 0 {
			s.confirm(ctx, r.Clock.Now())
		}
		r.sightings(ctx, s)
		return outcome{}
	case lifecycle.FaultRevert:
		return r.revert(ctx, s)
	case lifecycle.FaultSettle:
		r.settle(ctx, s)
		return outcome{settled: true}
	case lifecycle.FaultFinish:
		return r.finish(ctx, s, false)
	case lifecycle.FaultFail:
		return r.finish(ctx, s, true)
	case lifecycle.FaultRelease:
		r.unwatch(s.fault.UID)
		return r.setFinalizer(ctx, s, false)
	case lifecycle.FaultExpire:
		uid := s.fault.UID
		err := r.Client.Delete(ctx, s.fault, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		return outcome{deleted: true, err: client.IgnoreNotFound(err)}
	}
	return outcome{}
}

// setFinalizer adds or removes our finalizer by a patch that touches no other's.
func (r *RedisFaultReconciler) setFinalizer(ctx context.Context, s *faultScope, present bool) outcome {
	changed := s.fault.DeepCopy()
	if present {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerFault)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerFault)
	}
	// The list is replaced whole by a merge patch: the lock keeps a finalizer that another added meanwhile.
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(s.before, client.MergeFromWithOptimisticLock{}))
	return outcome{deleted: true, err: client.IgnoreNotFound(err)} // the patch brings the object back here
}

// record chooses the targets, checks them, and puts their records into the status: report stores them before anything is broken.
func (r *RedisFaultReconciler) record(ctx context.Context, s *faultScope) outcome {
	targets, err := r.choose(ctx, s)
	if err != nil {
		problem, err := asProblem(err)
		if err != nil {
			return outcome{err: err}
		}
		if problem.Lasting { // a record that is made anew may end here, with its servers looked at already
			r.unwatch(s.fault.UID)
		}
		return outcome{problem: problem, ended: problem.Lasting, failed: problem.Lasting}
	}
	if !r.Runs.Claim(s.run, s.fault.UID, r.Clock.Now()) {
		return outcome{} // another fault on the same load got there first
	}
	r.unwatch(s.fault.UID) // an earlier record's: who was what then is not what the fault meets
	r.watch(s)
	now := metav1.NewMicroTime(r.Clock.Now())
	for i := range targets {
		targets[i].IntendedAt = &now
	}
	status := &s.fault.Status
	status.Warnings = fault.Warnings(ctx, s.around, s.traits, targets)
	status.Targets, status.StartTime, status.LoadTest, status.LoadStartTime = targets, &now, s.test.Name, s.test.Status.StartTime
	status.Target = s.target.DeepCopy()
	return outcome{again: true}
}

func (r *RedisFaultReconciler) choose(ctx context.Context, s *faultScope) ([]v1alpha1.FaultTarget, error) {
	if s.traits.EndsServer && s.fault.Spec.Action.Type != v1alpha1.FaultProcessCrash && losesReplacements(s.test) {
		return nil, &lifecycle.Problem{Reason: v1alpha1.ReasonInvalidSpec, Lasting: true, Message: fmt.Sprintf(
			"RedisLoadTest %s has no target.service: its load goes to the addresses of pods, and would never find the replacement of a killed one", s.test.Name)}
	}
	targets, err := fault.Guarded(ctx, s.around, s.target, &s.fault.Spec, s.traits)
	for i := 0; err == nil && i < len(targets); i++ {
		err = s.injector.Preflight(ctx, &targets[i])
	}
	return targets, err
}

// losesReplacements says whether a load knows its servers by the addresses of their pods alone, which a replacement does not take over. Sentinels
// and the nodes of a cluster tell of it.
func losesReplacements(test *v1alpha1.RedisLoadTest) bool {
	t := &test.Spec.Target
	found := test.Status.Target
	return t.Service == nil && len(t.Addresses) == 0 && t.Sentinel == nil && t.Topology != v1alpha1.TopologyCluster && (found == nil || found.Topology != v1alpha1.TopologyCluster)
}

// staleRecord is the age from which a record that nothing was done by is not acted on any more: roles may have changed since.
const staleRecord = 10 * time.Second

// inject breaks every target that is not broken yet. The instant just before the call is t0 of its target; the first is the fault's.
func (r *RedisFaultReconciler) inject(ctx context.Context, s *faultScope) outcome {
	status := &s.fault.Status
	if old, err := isOld(ctx, r.Live, "RedisFault", s.before); old || err != nil {
		return outcome{again: true, err: client.IgnoreNotFound(err)}
	}
	if r.Clock.Since(status.StartTime.Time) > staleRecord && r.untouched(ctx, s) {
		return r.record(ctx, s)
	}
	all := true
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.ActiveAt != nil {
			continue
		}
		at, took, err := r.injectOne(ctx, s.injector, t)
		var preparing *fault.Preparing
		if errors.As(err, &preparing) { // what was prepared may serve the other targets, too: it must be in effect before the first is broken
			all = false
			break
		}
		if err != nil && t.Progress == "" {
			all = false
			continue
		}
		s.noteInjected(t, at, took)
		if t.Progress != "" {
			all = false
			continue
		}
		now := metav1.NewMicroTime(r.Clock.Now())
		t.ActiveAt = &now
		if now.Sub(t.InjectedAt.Time) > fault.AskTimeout {
			once(status, now.Time, eventActive, t.Pod, "")
		}
	}
	return outcome{again: all}
}

// noteInjected keeps the instant at which a target was first broken; the first of them all is t0.
func (s *faultScope) noteInjected(t *v1alpha1.FaultTarget, at metav1.MicroTime, took time.Duration) {
	if t.InjectedAt != nil {
		return
	}
	status := &s.fault.Status
	t.InjectedAt = &at
	if status.InjectedAt == nil || at.Before(status.InjectedAt) {
		status.InjectedAt = &at
		if status.LoadStartTime != nil {
			status.InjectedOffset = new(v1alpha1.MicrosecondsOf(at.Sub(status.LoadStartTime.Time)))
		}
	}
	once(status, at.Time, eventInjected, t.Pod, fmt.Sprintf("%s; the call took %s", s.fault.Spec.Action.Type, format.Duration(took)))
}

// untouched says whether nothing was tried by the record: not by this process, and not by one that died.
func (r *RedisFaultReconciler) untouched(ctx context.Context, s *faultScope) bool {
	for i := range s.fault.Status.Targets {
		t := &s.fault.Status.Targets[i]
		if begun, err := s.injector.Begun(ctx, t); begun || err != nil || t.Attempts > 0 || t.InjectedAt != nil {
			return false
		}
		// What only prepares an injection (a cordon, a holder) may be there all the same, and a new record would not know of it.
		if s.injector.Revert(ctx, t) != nil {
			return false
		}
	}
	return s.test != nil && s.run != nil
}

func (r *RedisFaultReconciler) injectOne(ctx context.Context, injector fault.Injector, t *v1alpha1.FaultTarget) (at metav1.MicroTime, took time.Duration, err error) {
	// If it is broken already, an operator process that died before it could say so did it, just after it had stored the intent.
	begun, err := injector.Begun(ctx, t)
	before := metav1.NewMicroTime(r.Clock.Now())
	at = before
	if begun && t.IntendedAt != nil {
		at = *t.IntendedAt
	}
	if err == nil {
		err = injector.Inject(ctx, t)
		took = r.Clock.Now().Sub(before.Time)
		t.InjectionTook = new(v1alpha1.MicrosecondsOf(took))
	}
	if t.Progress == "" { // a step of an injection that is under way is no further attempt
		t.Attempts++
	}
	t.LastError, t.Progress = "", ""
	var preparing *fault.Preparing
	var steps *fault.InProgress
	switch {
	case errors.As(err, &preparing): // the breaking call is still to come
		t.IntendedAt, t.Progress = &before, limited(preparing.Message, 512)
		return at, took, err
	case errors.As(err, &steps):
		t.Progress = limited(steps.Message, 512)
		return at, took, err
	}
	if err != nil {
		// This attempt may have broken it all the same: then it is the one that counts.
		t.IntendedAt, t.LastError = &before, limited(err.Error(), 1024)
	}
	return at, took, err
}

// revert undoes every target that is not undone yet. What cannot be undone in time is given up, and told how to undo by hand.
func (r *RedisFaultReconciler) revert(ctx context.Context, s *faultScope) outcome {
	status := &s.fault.Status
	if status.RevertingSince == nil {
		if s.traits.Lasts > 0 && s.seen.InjectedAll && status.Effect != v1alpha1.EffectConfirmed && s.seen.RunsOut() {
			s.lastLook(ctx, r.Clock.Now())
		}
		now := metav1.NewMicroTime(r.Clock.Now())
		status.RevertingSince = &now
		for i := range status.Targets { // why an injection was not completed is told to the end
			if t := &status.Targets[i]; t.ActiveAt == nil && t.Progress != "" {
				t.LastError = limited("not complete: "+t.Progress, 1024)
			}
		}
	}
	problems, ended := make([]error, len(status.Targets)), make([]metav1.MicroTime, len(status.Targets))
	var undoing errgroup.Group
	undoing.SetLimit(1)
	if s.traits.Separate { // a deleted fault with many servers that do not answer must be gone in time, too
		undoing.SetLimit(16)
	}
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.RevertedAt == nil && !t.RevertAbandoned {
			undoing.Go(func() error {
				problems[i] = r.revertOne(ctx, s, t)
				ended[i] = metav1.NewMicroTime(r.Clock.Now())
				return nil
			})
		}
	}
	_ = undoing.Wait() // each target has its own
	all := true
	for i := range status.Targets {
		t := &status.Targets[i]
		if t.RevertedAt != nil || t.RevertAbandoned && problems[i] == nil {
			continue
		}
		if problems[i] != nil {
			all = false
			continue
		}
		t.RevertedAt = &ended[i]
		if s.traits.Lasts > 0 && t.InjectedAt != nil {
			once(status, ended[i].Time, eventReverted, t.Pod, "")
		}
	}
	if all {
		now := metav1.NewMicroTime(r.Clock.Now())
		status.RevertedAt = &now
	}
	return outcome{again: all}
}

func (r *RedisFaultReconciler) revertOne(ctx context.Context, s *faultScope, t *v1alpha1.FaultTarget) error {
	err := s.injector.Revert(ctx, t)
	t.Progress = ""
	if err == nil {
		if t.ActiveAt != nil { // else it says why the injection was not completed
			t.LastError = ""
		}
		return nil
	}
	var steps *fault.InProgress
	if errors.As(err, &steps) {
		t.Progress, t.RevertAttempts = limited(steps.Message, 512), 0
	} else {
		t.RevertAttempts++
	}
	t.LastError = limited(err.Error(), 1024)
	since := s.fault.Status.RevertingSince.Time
	if gone := s.fault.DeletionTimestamp; gone != nil && gone.After(since) {
		since = gone.Time
	}
	// Steps may take their time, and one error after many of them is no reason to leave the rest undone; but nobody waits who wants the object gone.
	stuck := steps == nil && t.RevertAttempts >= lifecycle.RevertAttempts
	if r.Clock.Since(since) > lifecycle.RevertPatience && (stuck || s.seen.Deleting) {
		t.RevertAbandoned, t.ManualRevertCommand = true, limited(s.injector.ManualRevertCommand(t), 2048)
	}
	return err
}

// finish ends the fault, and the probe load with it if it was the fault's own.
func (r *RedisFaultReconciler) finish(ctx context.Context, s *faultScope, failed bool) outcome {
	if s.seen.OwnLoad && s.test != nil && metav1.IsControlledBy(s.test, s.fault) && !isFinished(s.test.Status.Conditions) && !s.test.Spec.Abort {
		changed := s.test.DeepCopy()
		changed.Spec.Abort = true
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, changed, client.MergeFrom(s.test))); err != nil {
			return outcome{err: err}
		}
	}
	if s.seen.SettledAt.IsZero() {
		r.settle(ctx, s)
	}
	return outcome{ended: true, failed: failed}
}

// settle takes the last look at Redis and the cluster: everything is undone, and recovery was judged.
func (r *RedisFaultReconciler) settle(ctx context.Context, s *faultScope) {
	if s.seen.InjectedAny && s.traits.Lasts == 0 {
		s.confirm(ctx, r.Clock.Now())
	}
	r.sightings(ctx, s)
	r.unwatch(s.fault.UID)
	s.tellRoles(ctx, r.Clock.Now())
}

// lastLook is the last chance to see the effect. That it is not there proves nothing now: an operator that died may have begun to undo it.
func (s *faultScope) lastLook(ctx context.Context, now time.Time) {
	status := &s.fault.Status
	before := status.Effect
	s.confirm(ctx, now)
	if status.Effect == v1alpha1.EffectNotObserved && before != v1alpha1.EffectNotObserved {
		status.Effect = v1alpha1.EffectInconclusive
	}
}

// confirm asks Redis and the cluster what the fault did, all targets at once. Confirmed needs every one.
func (s *faultScope) confirm(ctx context.Context, now time.Time) {
	status := &s.fault.Status
	ctx, cancel := context.WithTimeout(ctx, fault.AskTimeout)
	defer cancel()
	effects, evidence := make([]v1alpha1.Effect, len(status.Targets)), make([]string, len(status.Targets))
	var asking errgroup.Group
	asking.SetLimit(16)
	for i := range status.Targets {
		asking.Go(func() error {
			effects[i], evidence[i] = s.injector.Effect(ctx, &status.Targets[i])
			return nil
		})
	}
	_ = asking.Wait() // it has no errors: Effect tells its own
	effect := v1alpha1.EffectConfirmed
	switch {
	case slices.Contains(effects, v1alpha1.EffectNotObserved):
		effect = v1alpha1.EffectNotObserved
	case slices.Contains(effects, v1alpha1.EffectInconclusive):
		effect = v1alpha1.EffectInconclusive
	}
	text := limited(strings.Join(evidence, "; "), 1024)
	// It was there: what is seen now may only be its loss, and a server that does not answer now takes nothing back.
	if status.Effect == v1alpha1.EffectConfirmed && (s.traits.Lasts > 0 || effect == v1alpha1.EffectInconclusive) {
		if effect == v1alpha1.EffectNotObserved {
			once(status, now, eventEffectLost, status.Targets[0].Pod, text)
		}
		return
	}
	status.Effect, status.EffectEvidence = effect, text
}

// limited cuts a text to what a field of the status holds, at the end of a character.
func limited(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-3], "") + "..."
}
