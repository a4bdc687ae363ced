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
) scope.Outcome {
	switch d.Action {
	case lifecycle.FaultHold:
		return r.hold(ctx, s)
	case lifecycle.FaultLinger:
		return r.linger(ctx, s)
	case lifecycle.FaultObserve:
		return r.followRecovery(ctx, s)
	case lifecycle.FaultRevert:
		return r.revert(ctx, s)
	case lifecycle.FaultAbandon:
		return r.abandon(ctx, s)
	case lifecycle.FaultSettle:
		r.settle(ctx, s)
		return scope.Outcome{Settled: true}
	case lifecycle.FaultFinish, lifecycle.FaultFail:
		return r.finish(ctx, s, d.Action == lifecycle.FaultFail)
	case lifecycle.FaultRelease:
		return r.release(ctx, s)
	case lifecycle.FaultExpire:
		return r.expire(ctx, s)
	}
	return r.begin(ctx, s, d)
}

// begin executes a decision about a fault that is not complete yet.
func (r *Reconciler) begin(
	ctx context.Context, s *scope.Fault, d lifecycle.Decision[lifecycle.FaultAction],
) scope.Outcome {
	switch d.Action {
	case lifecycle.FaultWait:
		return scope.Outcome{Problem: s.Seen.Problem}
	case lifecycle.FaultAddFinalizer:
		return r.setFinalizer(ctx, s, true)
	case lifecycle.FaultMakeLoad:
		return r.createLoad(ctx, s)
	case lifecycle.FaultRehearse:
		return r.rehearse(ctx, s)
	case lifecycle.FaultAwait:
		return r.await(ctx, s)
	case lifecycle.FaultLook:
		return r.lookOut(ctx, s)
	case lifecycle.FaultMark:
		return r.mark(ctx, s)
	case lifecycle.FaultRecord:
		return r.record(ctx, s)
	case lifecycle.FaultRenew:
		return r.renew(ctx, s)
	case lifecycle.FaultInject:
		return r.inject(ctx, s)
	}
	return scope.Outcome{}
}

// createLoad creates the load test of a fault that does not refer to one.
func (r *Reconciler) createLoad(ctx context.Context, s *scope.Fault) scope.Outcome {
	test := children.ProbeLoadTest(s.Fault)
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, test)); err != nil {
		return scope.Outcome{Err: fmt.Errorf("create RedisLoadTest %s: %w", test.Name, err)}
	}
	return scope.Outcome{}
}

// hold renews an active fault, and checks its effect.
func (r *Reconciler) hold(ctx context.Context, s *scope.Fault) scope.Outcome {
	err := r.reach().Connect(ctx, s)
	if v := r.reach().ReverterOf(ctx,
		s.Fault); !v.During(ctx, func(ctx context.Context) { err = errors.Join(err, r.keep(ctx, s)) }) {
		// its time is over, or another operator has reverted it
		return scope.Outcome{Again: v.Reverting(), Stale: !v.Reverting()}
	}
	confirm(ctx, s, r.Clock.Now())
	r.recordSightings(ctx, s)
	if refused, is := errors.AsType[*problem.Problem](err); is {
		return scope.Outcome{Problem: refused}
	}
	return scope.Outcome{Err: err}
}

// followRecovery checks the effect until it is confirmed, and extends the timeline.
func (r *Reconciler) followRecovery(ctx context.Context, s *scope.Fault) scope.Outcome {
	_ = r.reach().Connect(ctx, s) // what is missing shows in the evidence
	r.recordSightings(ctx, s)
	if s.Fault.Status.Effect != v1alpha1.EffectConfirmed && s.Traits.Lasts == 0 {
		confirm(ctx, s, r.Clock.Now())
	}
	return scope.Outcome{}
}

// release removes the finalizer. A deleted fault may be reverted without another write of its
// status: that is the last one then.
func (r *Reconciler) release(ctx context.Context, s *scope.Fault) scope.Outcome {
	r.Term.End(s.Fault.UID)
	o := r.setFinalizer(ctx, s, false)
	if o.Err == nil && s.Seen.Deleting {
		r.count(s)
		r.announcer().EmitHits(ctx, change(s))
	}
	return o
}

func (r *Reconciler) expire(ctx context.Context, s *scope.Fault) scope.Outcome {
	uid := s.Fault.UID
	err := r.Client.Delete(ctx, s.Fault, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return scope.Outcome{Deleted: true, Err: fmt.Errorf("delete the expired fault: %w", err)}
	}
	return scope.Outcome{Deleted: true}
}

// setFinalizer adds our finalizer, and the note that the fault has begun, or removes the finalizer.
func (r *Reconciler) setFinalizer(ctx context.Context, s *scope.Fault, present bool) scope.Outcome {
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
		return scope.Outcome{Deleted: true, Err: fmt.Errorf("patch the finalizers: %w", err)}
	}
	return scope.Outcome{Deleted: true} // the patch triggers the next reconcile
}

// finish ends the fault, and the load that was created for it.
func (r *Reconciler) finish(ctx context.Context, s *scope.Fault, failed bool) scope.Outcome {
	if s.Seen.OwnLoad && s.Test != nil && metav1.IsControlledBy(s.Test, s.Fault) &&
		!state.IsFinished(s.Test.Status.Conditions) && !s.Test.Spec.Abort {
		changed := s.Test.DeepCopy()
		changed.Spec.Abort = true
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, changed,
			client.MergeFrom(s.Test))); err != nil {
			return scope.Outcome{Err: fmt.Errorf("abort RedisLoadTest %s: %w", s.Test.Name, err)}
		}
	}
	if s.Seen.SettledAt.IsZero() && s.Seen.Restored == "" {
		r.settle(ctx, s)
	}
	return scope.Outcome{Ended: true, Failed: failed}
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
