// Package redisloadtest reconciles RedisLoadTests. Each reconcile reads everything first, lets
// package lifecycle decide, performs one step, and writes the status once.
package redisloadtest

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/runs"
)

// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests/status,verbs=get;patch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile performs the next step of a load test.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.Restored != nil {
		r.Restored(ctx)
	}
	s, err := r.observe(ctx, request.NamespacedName)
	if errors.Is(err, state.ErrStale) {
		return state.Stale(), nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if s == nil { // deleted; garbage collection deletes its children
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	decision := lifecycle.NextForLoadTest(s.Seen, now)
	outcome := r.perform(ctx, s, decision)
	return outcome.Conclude(r.Clock, decision.Until, func() error {
		err := r.report(ctx, s, decision, outcome)
		if err == nil && !s.Seen.StartedAt.IsZero() && !s.Seen.Finished {
			state.KeepNote(ctx, r.Client, s.Before)
		}
		return err
	})
}

// SetupWithManager registers the controller. A load test is reconciled when it changes, and when
// its Job, a load pod or a fault on it does.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RedisLoadTest{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(RequestsForPod)).
		Watches(&v1alpha1.RedisFault{}, handler.EnqueueRequestsFromMapFunc(RequestsForFault)).
		Named("redisloadtest").
		WithOptions(options).
		Complete(r)
}

// RequestsForPod maps a load pod to its test.
func RequestsForPod(_ context.Context, pod client.Object) []reconcile.Request {
	test := pod.GetLabels()[v1alpha1.LabelLoadTest]
	if test == "" {
		return nil
	}
	return []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: test}},
	}
}

// RequestsForFault maps a fault to the load test that measures it.
func RequestsForFault(_ context.Context, object client.Object) []reconcile.Request {
	fault, ok := object.(*v1alpha1.RedisFault)
	if !ok || fault.Status.LoadTest == "" {
		return nil
	}
	return []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: fault.Namespace, Name: fault.Status.LoadTest}},
	}
}

// Reconciler runs load tests.
type Reconciler struct {
	Client    client.Client
	APIReader client.Reader // not cached
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Runs      *runs.Registry
	Image     string           // of the load pods, unless spec.pods.image is set
	Metrics   *metrics.Metrics // nil = nothing is counted
	// Restored returns once an operator that starts has tried to revert the faults that are overdue;
	// nil = there are none.
	Restored func(ctx context.Context)
}
