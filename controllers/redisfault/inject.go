package redisfault

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/redisfault/turns"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/problem"
)

// inject injects the fault into every target that is not active yet. The instant just before the
// call is t0 of a target; the first one is that of the fault.
func (r *Reconciler) inject(ctx context.Context, s *scope.Fault) state.Outcome {
	if s.Fault.Spec.DryRun {
		return state.Outcome{Err: errDryRun}
	}
	status := &s.Fault.Status
	if s.Seen.Attempted {
		o, fresh := state.Fresh(ctx, r.APIReader, "RedisFault", s.Before)
		if !fresh {
			return o
		}
	} else if o, may := r.turns().MayAct(ctx, s); !may {
		return o
	}
	if err := r.reach().Connect(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	waits := status.Waiting
	status.Waiting = nil // not earlier: it had to keep its place
	s.Reverter = r.reach().ReverterOf(ctx, s.Fault)
	all, refused := false, error(nil)
	// Its end, and with it the revert, does not depend on this reconcile, nor on whether its result
	// can be stored.
	s.Reverter.During(ctx, func(ctx context.Context) {
		all, refused = r.injectAll(ctx, s,
			r.turns().CheckGuards)
	})
	known, _ := s.Reverter.Progress()
	known.Into(status)
	if refused != nil && !known.Reverting() && turns.RevertPreparations(ctx, s) {
		status.Waiting = waits
		return r.turns().StepBack(ctx, s, refused)
	}
	return state.Outcome{Again: all}
}

// guarding returns why targets may not be hit now; without a target, why nothing may be hit.
type guarding func(ctx context.Context, s *scope.Fault, hit ...*v1alpha1.FaultTarget) error

// injectAll reports whether the fault is active on all targets; or why the guard refuses the first
// one now, before anything was tried, where that may pass.
func (r *Reconciler) injectAll(
	ctx context.Context, s *scope.Fault, checkGuards guarding,
) (all bool, refused error) {
	if !r.prepared(ctx, s) {
		return false, nil
	}
	if len(s.Fault.Status.Targets) > 1 && guard.Together(&s.Fault.Spec, s.Traits) {
		return r.injectTogether(ctx, s, checkGuards)
	}
	all = true
	for i := range s.Fault.Status.Targets {
		t := &s.Fault.Status.Targets[i]
		if t.ActiveAt != nil {
			continue
		}
		if i > 0 && s.Reverter.Reverting() { // the revert has begun
			return false, nil
		}
		call := r.injectOne(ctx, s, t, checkGuards)
		if i == 0 && !s.Seen.Attempted && turns.MayPass(call.refused) {
			t.Attempts, t.LastError, t.NotSupported, t.Progress = 0, "", false, ""
			return false, call.refused
		}
		r.conclude(ctx, s, t, call)
		all = all && t.ActiveAt != nil
		// it may apply to the other targets, too: it must be complete before the first injection
		if call.progress.Stage == contract.StagePreparing && !s.Traits.Waits {
			break
		}
	}
	return all, nil
}

// prepared has everything made that the fault needs on all its targets, and reports whether it is
// there: none is broken before. A target that is broken already has it.
func (r *Reconciler) prepared(ctx context.Context, s *scope.Fault) bool {
	preparer, ok := s.Injector.(contract.Preparer)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	all := true
	for i := range s.Fault.Status.Targets {
		t := &s.Fault.Status.Targets[i]
		if t.InjectedAt != nil || t.ActiveAt != nil {
			continue
		}
		call := injection{before: metav1.NewMicroTime(r.Clock.Now())}
		call.progress, call.err = preparer.Prepare(ctx, t)
		if call.err == nil && call.progress.Complete() {
			continue
		}
		all = false
		r.note(ctx, s, t, call)
		r.conclude(ctx, s, t, call)
	}
	return all
}

// conclude records what a call has come to.
func (r *Reconciler) conclude(
	ctx context.Context, s *scope.Fault, t *v1alpha1.FaultTarget, call injection,
) {
	if call.err == nil && call.progress.Stage != contract.StagePreparing {
		markInjected(ctx, s, t, call)
	}
	if call.err == nil && call.progress.Complete() {
		t.ActiveAt = new(metav1.NewMicroTime(r.Clock.Now()))
	}
	s.Reverter.Learn(&s.Fault.Status, s.Injector, t.Pod)
}

// injection is one call of Inject.
type injection struct {
	at       metav1.MicroTime // t0 of the target, if it was injected
	offset   *time.Duration   // the same since the start of the load; nil = unknown
	before   metav1.MicroTime // when it was called
	took     time.Duration
	progress contract.Progress
	err      error
	refused  error // the same, also where it is waited for
}

// waited is the call of a fault that waits for what passes: it prepares meanwhile, for as long as
// that may take.
func (i injection) waited(ctx context.Context, traits contract.Traits) injection {
	i.refused = i.err
	if i.err != nil && traits.Waits && ctx.Err() == nil && passes(i.err) {
		i.progress, i.err = contract.Preparing("%v", i.err), nil
	}
	return i
}

// passes reports whether what keeps a target from being hit may pass: another copy is not in sync
// yet, another fault acts, or the API server did not do what it would do another time.
func passes(err error) bool {
	if _, moved := errors.AsType[guard.LostRole](err); moved {
		return false
	}
	if found, is := errors.AsType[*problem.Problem](err); is {
		return !found.Lasting || found.Reason == v1alpha1.ReasonBlastRadius
	}
	return !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err)
}

// injectOne calls Inject for one target and records the result.
func (r *Reconciler) injectOne(
	ctx context.Context, s *scope.Fault, t *v1alpha1.FaultTarget, checkGuards guarding,
) injection {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	// If the injection has begun already, a process ended before it could record that: it had stored
	// the intent just before.
	begun, err := s.Injector.Begun(ctx, t)
	if err == nil && !begun && t.InjectedAt == nil {
		err = checkGuards(ctx, s, t)
	}
	call := r.hit(ctx, s, t, begun, err)
	r.note(ctx, s, t, call)
	return call
}

// hit calls Inject for a target, unless err says why not. Targets may be hit concurrently.
func (r *Reconciler) hit(
	ctx context.Context, s *scope.Fault, t *v1alpha1.FaultTarget, begun bool, err error,
) injection {
	before := metav1.NewMicroTime(r.Clock.Now())
	call := injection{
		at:     before,
		offset: s.OffsetNow(before.Time),
		before: before,
		err:    err,
	}
	if begun && t.IntendedAt != nil {
		call.at = *t.IntendedAt
		// not before the first of several targets, which was hit before this one was called
		if first := s.Fault.Status.InjectedAt; first != nil && call.at.Before(first) {
			call.at = *first
		}
		call.offset = s.OffsetOf(call.at.Time)
	}
	if err == nil {
		call.progress, call.err = s.Injector.Inject(ctx, t)
		call.took = r.Clock.Now().Sub(before.Time)
		t.InjectionTook = new(v1alpha1.DurationOf(call.took))
	}
	return call.waited(ctx, s.Traits)
}

// note records the attempt on a target.
func (r *Reconciler) note(
	ctx context.Context, s *scope.Fault, t *v1alpha1.FaultTarget, call injection,
) {
	before := call.before
	if t.Progress == "" { // a step of an incomplete injection is not another attempt
		t.Attempts++
	}
	failed, notSupported := t.LastError, t.NotSupported
	t.LastError, t.NotSupported, t.Progress = "", false, ""
	logger, targets := s.LogOf(ctx, t), len(s.Fault.Status.Targets)
	switch {
	// the revert begins: the reason is that of the attempts before
	case call.err != nil && failed != "" && errors.Is(ctx.Err(), context.Canceled):
		t.IntendedAt, t.LastError, t.NotSupported = &before, failed, notSupported
	case call.err != nil:
		// The call may have had its effect despite the error: then t0 is that of this attempt.
		t.IntendedAt = &before
		t.LastError = faultrun.Shorten(call.err.Error(), faultrun.MaxError, targets)
		found, _ := problem.From(call.err)
		t.NotSupported = found != nil && found.Reason == v1alpha1.ReasonNotSupported
		logger.V(1).Info("Retrying to inject", "attempts", t.Attempts, "cause", call.err.Error())
	case call.progress.Stage == contract.StagePreparing: // the call that injects is still to come
		t.IntendedAt = &before
		t.Progress = faultrun.Shorten(call.progress.Message, faultrun.MaxProgress, targets)
		logger.V(1).Info("Preparing the injection", "progress", t.Progress)
	case !call.progress.Complete():
		t.Progress = faultrun.Shorten(call.progress.Message, faultrun.MaxProgress, targets)
		logger.V(1).Info("Injection is under way", "progress", t.Progress)
	}
}

// markInjected records the first injection of a target. The first of all targets is t0 of the
// fault.
func markInjected(ctx context.Context, s *scope.Fault, t *v1alpha1.FaultTarget, call injection) {
	if t.InjectedAt != nil {
		return
	}
	status, at := &s.Fault.Status, call.at
	t.InjectedAt = &at
	if status.InjectedAt == nil || at.Before(status.InjectedAt) {
		status.InjectedAt = &at
		status.InjectedOffset = nil
		if call.offset != nil {
			status.InjectedOffset = new(v1alpha1.DurationOf(*call.offset))
		}
	}
	s.LogOf(ctx, t).Info("Injected", "role", t.Role, "at", at.Time, "took", call.took)
}
