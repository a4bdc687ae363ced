// Package redisexperiment reconciles RedisExperiments. Each reconcile reads everything first, lets
// package lifecycle decide, performs one step, and writes the status once.
package redisexperiment

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperiments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperiments/status,verbs=get;patch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperiments/finalizers,verbs=update
// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests;redisfaults,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update

// Reconcile performs the next step of an experiment.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.Restored != nil {
		r.Restored(ctx)
	}
	s, err := r.observe(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil // garbage collection deletes its children
	} else if err != nil {
		return ctrl.Result{}, err
	}
	decision := lifecycle.NextForExperiment(s.seen, r.Clock.Now())
	done := r.perform(ctx, s, decision)
	return r.conclude(ctx, s, decision, done)
}

// conclude reports what a step has done, and says when to look again.
func (r *Reconciler) conclude(
	ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.ExperimentAction], o state.Outcome,
) (ctrl.Result, error) {
	until := d.Until
	if found, err := problem.From(o.Err); found != nil {
		o.Problem, o.Err, until = found, err, r.Clock.Now().Add(problemPoll)
	}
	return o.Conclude(r.Clock, until, func() error {
		err := r.report(ctx, s, d, o)
		if err == nil && s.seen.Started && !s.seen.Finished && !s.seen.Deleting {
			state.KeepNote(ctx, r.Client, s.before)
		}
		return err
	})
}

// problemPoll is how often a step is tried again that a problem keeps from being performed.
const problemPoll = 10 * time.Second

// SetupWithManager registers the controller. An experiment is reconciled when it changes, and when
// one of its load tests or faults comes to another state.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RedisExperiment{}).
		Owns(&v1alpha1.RedisLoadTest{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: turns})).
		Owns(&v1alpha1.RedisFault{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: turns})).
		Named("redisexperiment").
		WithOptions(options).
		Complete(r)
}

// turns reports whether a load test or a fault has come to another state with an update: its
// figures are read when it has ended.
func turns(e event.UpdateEvent) bool {
	old, now := conditionsOf(e.ObjectOld), conditionsOf(e.ObjectNew)
	a := meta.FindStatusCondition(old, v1alpha1.ConditionComplete)
	b := meta.FindStatusCondition(now, v1alpha1.ConditionComplete)
	same := a != nil && b != nil && a.Status == b.Status && a.Reason == b.Reason &&
		state.IsFinished(old) == state.IsFinished(now)
	return !same || !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
}

func conditionsOf(object client.Object) []metav1.Condition {
	switch of := object.(type) {
	case *v1alpha1.RedisLoadTest:
		return of.Status.Conditions
	case *v1alpha1.RedisFault:
		return of.Status.Conditions
	}
	return nil
}
