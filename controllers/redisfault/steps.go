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
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// perform executes the decision.
func (r *Reconciler) perform(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.FaultAction],
) outcome {
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
		return outcome{settled: true}
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
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.FaultAction],
) outcome {
	switch d.Action {
	case lifecycle.FaultWait:
		return outcome{problem: s.seen.Problem}
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
	return outcome{}
}

// createLoad creates the load test of a fault that does not refer to one.
func (r *Reconciler) createLoad(ctx context.Context, s *scope) outcome {
	test := children.ProbeLoadTest(s.fault)
	if err := client.IgnoreAlreadyExists(r.Client.Create(ctx, test)); err != nil {
		return outcome{err: fmt.Errorf("create RedisLoadTest %s: %w", test.Name, err)}
	}
	return outcome{}
}

// hold renews an active fault, and checks its effect.
func (r *Reconciler) hold(ctx context.Context, s *scope) outcome {
	err := r.connect(ctx, s)
	if v := r.reverterOf(ctx,
		s.fault); !v.During(ctx, func(ctx context.Context) { err = errors.Join(err, r.keep(ctx, s)) }) {
		// its time is over, or another operator has reverted it
		return outcome{again: v.Reverting(), stale: !v.Reverting()}
	}
	s.confirm(ctx, r.Clock.Now())
	r.recordSightings(ctx, s)
	if refused, is := errors.AsType[*problem.Problem](err); is {
		return outcome{problem: refused}
	}
	return outcome{err: err}
}

// followRecovery checks the effect until it is confirmed, and extends the timeline.
func (r *Reconciler) followRecovery(ctx context.Context, s *scope) outcome {
	_ = r.connect(ctx, s) // what is missing shows in the evidence
	r.recordSightings(ctx, s)
	if s.fault.Status.Effect != v1alpha1.EffectConfirmed && s.traits.Lasts == 0 {
		s.confirm(ctx, r.Clock.Now())
	}
	return outcome{}
}

// release removes the finalizer. A deleted fault may be reverted without another write of its
// status: that is the last one then.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome {
	r.Term.End(s.fault.UID)
	o := r.setFinalizer(ctx, s, false)
	if o.err == nil && s.seen.Deleting {
		r.count(s)
		r.announcer().EmitHits(ctx, s.change())
	}
	return o
}

func (r *Reconciler) expire(ctx context.Context, s *scope) outcome {
	uid := s.fault.UID
	err := r.Client.Delete(ctx, s.fault, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return outcome{deleted: true, err: fmt.Errorf("delete the expired fault: %w", err)}
	}
	return outcome{deleted: true}
}

// setFinalizer adds our finalizer, and the note that the fault has begun, or removes the finalizer.
func (r *Reconciler) setFinalizer(ctx context.Context, s *scope, present bool) outcome {
	changed := s.fault.DeepCopy()
	if present {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerFault)
		if !s.seen.Suspend {
			state.SetNote(changed)
		}
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerFault)
	}
	// A merge patch replaces the whole list: the optimistic lock protects the finalizers that others
	// have added since.
	err := r.Client.Patch(ctx, changed, state.OptimisticPatch(s.before))
	if client.IgnoreNotFound(err) != nil {
		return outcome{deleted: true, err: fmt.Errorf("patch the finalizers: %w", err)}
	}
	return outcome{deleted: true} // the patch triggers the next reconcile
}

// finish ends the fault, and the load that was created for it.
func (r *Reconciler) finish(ctx context.Context, s *scope, failed bool) outcome {
	if s.seen.OwnLoad && s.test != nil && metav1.IsControlledBy(s.test, s.fault) &&
		!state.IsFinished(s.test.Status.Conditions) && !s.test.Spec.Abort {
		changed := s.test.DeepCopy()
		changed.Spec.Abort = true
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, changed,
			client.MergeFrom(s.test))); err != nil {
			return outcome{err: fmt.Errorf("abort RedisLoadTest %s: %w", s.test.Name, err)}
		}
	}
	if s.seen.SettledAt.IsZero() && s.seen.Restored == "" {
		r.settle(ctx, s)
	}
	return outcome{ended: true, failed: failed}
}

// settle checks Redis and the cluster for the last time: everything is reverted, and the recovery
// was evaluated.
func (r *Reconciler) settle(ctx context.Context, s *scope) {
	_ = r.connect(ctx, s) // what is missing shows in the evidence
	r.recordSightings(ctx, s)
	if (s.seen.InjectedAny || s.traits.External && s.fault.Status.InjectedAt != nil) &&
		s.traits.Lasts == 0 {
		s.confirm(ctx, r.Clock.Now())
	}
	s.concludeEffect()
	r.Term.StopObserving(s.fault)
	s.recordRoleChanges(ctx, r.Clock.Now())
	log.FromContext(ctx).Info("Settled", "faultType", s.fault.Spec.Action.Type, "effect",
		s.fault.Status.Effect)
}
