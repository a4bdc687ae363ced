package redisfault

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// perform executes the decision.
func (r *Reconciler) perform(
	ctx context.Context, s *scope.Fault, d lifecycle.Decision[lifecycle.FaultAction],
) state.Outcome {
	//exhaustive:enforce
	switch d.Action {
	case lifecycle.FaultWait:
		return state.Outcome{Problem: s.Seen.Problem}
	case lifecycle.FaultAddFinalizer, lifecycle.FaultMakeLoad, lifecycle.FaultRehearse,
		lifecycle.FaultAwait, lifecycle.FaultLook, lifecycle.FaultMark, lifecycle.FaultRecord:
		return r.begin(ctx, s, d.Action)
	case lifecycle.FaultRenew, lifecycle.FaultInject, lifecycle.FaultHold, lifecycle.FaultClose,
		lifecycle.FaultRevert, lifecycle.FaultAbandon:
		return r.act(ctx, s, d.Action)
	case lifecycle.FaultPause, lifecycle.FaultObserve, lifecycle.FaultSettle, lifecycle.FaultFinish,
		lifecycle.FaultFail, lifecycle.FaultRelease, lifecycle.FaultExpire:
		return r.end(ctx, s, d.Action)
	}
	return state.Outcome{}
}

// begin does what comes before the record of the targets is stored.
func (r *Reconciler) begin(
	ctx context.Context, s *scope.Fault, action lifecycle.FaultAction,
) state.Outcome {
	switch action {
	case lifecycle.FaultAddFinalizer:
		return r.setFinalizer(ctx, s, true)
	case lifecycle.FaultMakeLoad:
		return r.createLoad(ctx, s)
	case lifecycle.FaultRehearse:
		return r.rehearse(ctx, s)
	case lifecycle.FaultAwait:
		return r.await(ctx, s)
	case lifecycle.FaultLook:
		return r.watchForOnset(ctx, s)
	case lifecycle.FaultMark:
		return r.mark(ctx, s)
	}
	return r.record(ctx, s)
}

// act does to the recorded targets what is due, until they are reverted.
func (r *Reconciler) act(
	ctx context.Context, s *scope.Fault, action lifecycle.FaultAction,
) state.Outcome {
	switch action {
	case lifecycle.FaultRenew:
		return r.renew(ctx, s)
	case lifecycle.FaultInject:
		return r.inject(ctx, s)
	case lifecycle.FaultHold:
		return r.hold(ctx, s)
	case lifecycle.FaultClose:
		return r.closeSetting(ctx, s)
	case lifecycle.FaultRevert:
		return r.revert(ctx, s)
	}
	return r.abandon(ctx, s)
}

// end observes what a fault has done, and ends it.
func (r *Reconciler) end(
	ctx context.Context, s *scope.Fault, action lifecycle.FaultAction,
) state.Outcome {
	switch action {
	case lifecycle.FaultObserve:
		return r.followRecovery(ctx, s)
	case lifecycle.FaultSettle:
		r.settle(ctx, s)
	case lifecycle.FaultFinish, lifecycle.FaultFail:
		return r.finish(ctx, s, action == lifecycle.FaultFail)
	case lifecycle.FaultRelease:
		return r.release(ctx, s)
	case lifecycle.FaultExpire:
		return state.Expire(ctx, r.Client, s.Fault, "fault")
	}
	return state.Outcome{}
}

// createLoad creates the load test of a fault that does not refer to one.
func (r *Reconciler) createLoad(ctx context.Context, s *scope.Fault) state.Outcome {
	test := children.ProbeLoadTest(s.Fault)
	err := client.IgnoreAlreadyExists(r.Client.Create(ctx, test))
	if err != nil {
		return state.Outcome{Err: fmt.Errorf("create RedisLoadTest %s: %w", test.Name, err)}
	}
	return state.Outcome{}
}

// hold renews an active fault, and checks its effect.
func (r *Reconciler) hold(ctx context.Context, s *scope.Fault) state.Outcome {
	err := r.reach().Connect(ctx, s)
	v := r.reach().ReverterOf(ctx, s.Fault)
	if !v.During(ctx, func(ctx context.Context) { err = errors.Join(err, r.keep(ctx, s)) }) {
		// its time is over, or another operator has reverted it
		return state.Outcome{Again: v.Reverting(), Stale: !v.Reverting()}
	}
	confirm(ctx, s, r.Clock.Now())
	r.recordSightings(ctx, s)
	if refused, ok := errors.AsType[*problem.Problem](err); ok {
		return state.Outcome{Problem: refused}
	}
	return state.Outcome{Err: err}
}

// followRecovery checks the effect until it is confirmed, and extends the timeline.
func (r *Reconciler) followRecovery(ctx context.Context, s *scope.Fault) state.Outcome {
	_ = r.reach().Connect(ctx, s) // what is missing shows in the evidence
	r.recordSightings(ctx, s)
	if s.Fault.Status.Effect != v1alpha1.EffectConfirmed && s.Traits.Lasts == 0 {
		confirm(ctx, s, r.Clock.Now())
	}
	return state.Outcome{}
}

// release removes the finalizer. A deleted fault may be reverted without another write of its
// status: that is the last one then.
func (r *Reconciler) release(ctx context.Context, s *scope.Fault) state.Outcome {
	r.Term.End(s.Fault.UID)
	o := r.setFinalizer(ctx, s, false)
	if o.Err == nil && s.Seen.Deleting {
		r.count(s)
		r.announcer().EmitHits(ctx, change(s))
	}
	return o
}

// setFinalizer adds our finalizer, and the note that the fault has begun, or removes the finalizer.
func (r *Reconciler) setFinalizer(ctx context.Context, s *scope.Fault, present bool) state.Outcome {
	changed := s.Fault.DeepCopy()
	if present {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerFault)
		if !s.Seen.Suspend {
			state.SetNote(changed)
		}
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerFault)
	}
	// A merge patch replaces the whole list: the optimistic lock protects the finalizers that others
	// have added since.
	err := r.Client.Patch(ctx, changed, state.OptimisticPatch(s.Before))
	if client.IgnoreNotFound(err) != nil {
		return state.Outcome{SkipReport: true, Err: fmt.Errorf("patch the finalizers: %w", err)}
	}
	return state.Outcome{SkipReport: true} // the patch triggers the next reconcile
}

// finish ends the fault, and the load that was created for it.
func (r *Reconciler) finish(ctx context.Context, s *scope.Fault, failed bool) state.Outcome {
	if s.Seen.OwnLoad && s.Test != nil && metav1.IsControlledBy(s.Test, s.Fault) &&
		!state.IsFinished(s.Test.Status.Conditions) && !s.Test.Spec.Abort {
		changed := s.Test.DeepCopy()
		changed.Spec.Abort = true
		err := client.IgnoreNotFound(r.Client.Patch(ctx, changed, client.MergeFrom(s.Test)))
		if err != nil {
			return state.Outcome{Err: fmt.Errorf("abort RedisLoadTest %s: %w", s.Test.Name, err)}
		}
	}
	if s.Seen.SettledAt.IsZero() && s.Seen.Restored == "" {
		r.settle(ctx, s)
	}
	return state.Outcome{Ended: true, Failed: failed}
}

// settle checks Redis and the cluster for the last time: everything is reverted, and the recovery
// was evaluated.
func (r *Reconciler) settle(ctx context.Context, s *scope.Fault) {
	_ = r.reach().Connect(ctx, s) // what is missing shows in the evidence
	r.recordSightings(ctx, s)
	if (s.Seen.InjectedAny || s.Traits.External && s.Fault.Status.InjectedAt != nil) &&
		s.Traits.Lasts == 0 {
		confirm(ctx, s, r.Clock.Now())
	}
	concludeEffect(s)
	r.Term.StopObserving(s.Fault)
	recordRoleChanges(ctx, s, r.Clock.Now())
	log.FromContext(ctx).Info("Settled", "faultType", s.Fault.Spec.Action.Type, "effect",
		s.Fault.Status.Effect)
}
