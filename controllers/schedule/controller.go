// Package schedule reconciles RedisExperimentSchedules: it creates their runs, which are
// RedisExperiments, records what they have shown, and notifies of it. Each reconcile reads
// everything first, lets package lifecycle decide, performs one step, and writes the status once.
package schedule

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/problem"
)

// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperimentschedules,verbs=get;list;watch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperimentschedules/status,verbs=get;patch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperimentschedules/finalizers,verbs=update
// +kubebuilder:rbac:groups=redquake.dev,resources=redisexperiments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update

// Reconciler creates the runs of schedules.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // not cached
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Metrics   *metrics.Metrics // nil = nothing is counted
	Notify    *notify.Client
	// Restored returns once an operator that starts has tried to revert the faults that are overdue;
	// nil = there are none.
	Restored func(ctx context.Context)
}

// callTimeout bounds the calls of one step.
const callTimeout = 30 * time.Second

// Reconcile performs the next step of a schedule.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.Restored != nil {
		r.Restored(ctx)
	}
	s, err := r.observe(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.Metrics.ForgetSchedule(request.NamespacedName)
		return ctrl.Result{}, nil // garbage collection deletes its children
	} else if err != nil {
		return ctrl.Result{}, err
	}
	decision := lifecycle.NextForSchedule(s.seen, r.Clock.Now())
	done := r.perform(ctx, s, decision)
	return r.conclude(ctx, s, decision, done)
}

// conclude reports what a step has done, and says when to look again.
func (r *Reconciler) conclude(
	ctx context.Context, s *scope, d lifecycle.ScheduleDecision, o state.Outcome,
) (ctrl.Result, error) {
	until := d.Until
	if found, err := problem.From(o.Err); found != nil {
		o.Problem, o.Err, until = found, err, r.retryAt(s, d, found)
	}
	return o.Conclude(r.Clock, until, func() error { return r.report(ctx, s, d, o) })
}

// Bounds of the time between two attempts at what is refused.
const (
	leastRetry = 10 * time.Second
	mostRetry  = 10 * time.Minute
)

// retryAt is when a step is tried again that a problem keeps from being performed: the later, the
// longer that has lasted for this scheduled time, but not after the next one, and once more just
// before a run cannot start any more.
func (r *Reconciler) retryAt(
	s *scope, d lifecycle.ScheduleDecision, found *problem.Problem,
) time.Time {
	now := r.Clock.Now()
	at := now.Add(leastRetry)
	c := meta.FindStatusCondition(s.before.Status.Conditions, v1alpha1.ConditionReady)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason == found.Reason {
		lasts := now.Sub(c.LastTransitionTime.Time)
		if !d.At.IsZero() {
			lasts = min(lasts, now.Sub(d.At))
		}
		at = now.Add(min(max(lasts, leastRetry), mostRetry))
	}
	limits := []time.Time{d.Next}
	if !d.At.IsZero() && s.seen.Deadline != nil {
		latest := d.At.Add(*s.seen.Deadline)
		limits = append(limits, latest, latest.Add(time.Second))
	}
	for _, limit := range limits {
		if limit.After(now) && limit.Before(at) {
			at = limit
		}
	}
	return at
}

// SetupWithManager registers the controller. A schedule is reconciled when it changes, and when one
// of its runs ends.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RedisExperimentSchedule{}).
		Owns(&v1alpha1.RedisExperiment{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: ends})).
		Named("redisexperimentschedule").
		WithOptions(options).
		Complete(r)
}

// ends reports whether a run has ended with an update: its schedule does nothing before.
func ends(e event.UpdateEvent) bool {
	old, is := e.ObjectOld.(*v1alpha1.RedisExperiment)
	now, are := e.ObjectNew.(*v1alpha1.RedisExperiment)
	return !is || !are ||
		state.IsFinished(old.Status.Conditions) != state.IsFinished(now.Status.Conditions)
}
