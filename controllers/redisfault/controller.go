// Package redisfault reconciles RedisFaults. Each reconcile reads everything first, lets package
// lifecycle decide, performs one step, and writes the status once.
package redisfault

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

// +kubebuilder:rbac:groups=redquake.dev,resources=redisfaults,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=redquake.dev,resources=redisfaults/status,verbs=get;patch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisfaults/finalizers,verbs=update
// What every fault needs. What a kind needs in addition is in internal/fault/declared, the rules
// for cluster-scoped resources in config/rbac/cluster_role.yaml.
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;update
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=apps,resources=statefulsets;replicasets,verbs=get
// Of operators that own a Redis, to read what they would restore:
// +kubebuilder:rbac:groups=redis.redis.opstreelabs.in,resources=redis;redisreplications;redisclusters,verbs=get
// +kubebuilder:rbac:groups=databases.spotahome.com,resources=redisfailovers,verbs=get
// +kubebuilder:rbac:groups=valkey.io,resources=valkeyclusters;valkeynodes,verbs=get

// Reconcile performs the next step of a fault.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.Restore(ctx)
	s, err := r.observe(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.closeBook(ctx, request.Namespace)
		return ctrl.Result{}, r.ending().EndGone(ctx, request.NamespacedName, "")
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if s.Seen.Finished {
		r.closeBook(ctx, request.Namespace)
	}
	decision := lifecycle.NextForFault(s.Seen, r.Clock.Now())
	if decision.Action == lifecycle.FaultPause {
		return state.Requeue(false, decision.Until, r.Clock.Now()), nil
	}
	outcome := r.perform(ctx, s, decision)
	r.recordCall(s, decision, outcome)
	return outcome.Conclude(r.Clock, decision.Until, func() error {
		err := r.report(ctx, s, decision, outcome)
		if err == nil && s.Seen.Recorded && !s.Seen.Finished && !s.Seen.Deleting {
			state.KeepNote(ctx, r.Client, s.Before)
		}
		return err
	})
}

// recordCall notes when an injection was called that is not complete: it is not called again at
// once, although the write of the status triggers a reconcile.
func (r *Reconciler) recordCall(
	s *scope.Fault, d lifecycle.Decision[lifecycle.FaultAction], o state.Outcome,
) {
	if (d.Action == lifecycle.FaultInject || d.Action == lifecycle.FaultRenew) && !o.Again {
		r.Term.NoteCall(s.Fault, r.Clock.Now())
		return
	}
	r.Term.Find(s.Fault.UID).ClearCall()
}

// Close ends what the manager has begun, except for reverts.
func (r *Reconciler) Close() {
	r.Term.Close()
}

// SetupWithManager registers the controller. A fault is reconciled when it changes, and when its
// load test, a pod of its target or the stop annotation does.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	build := ctrl.NewControllerManagedBy(mgr)
	if r.namespaces().Watched() {
		build.WatchesMetadata(&corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(r.RequestsForNamespace))
	}
	return build.
		For(&v1alpha1.RedisFault{}).
		Watches(&v1alpha1.RedisFault{}, handler.EnqueueRequestsFromMapFunc(r.RequestsForFault)).
		Watches(&v1alpha1.RedisLoadTest{}, handler.EnqueueRequestsFromMapFunc(r.RequestsForLoadTest)).
		WatchesRawSource(source.Channel(r.Term.Changed(), &handler.EnqueueRequestForObject{})).
		Named("redisfault").
		WithOptions(options).
		Complete(r)
}

// RequestsForLoadTest maps a load test to the unfinished faults on it.
func (r *Reconciler) RequestsForLoadTest(
	ctx context.Context, test client.Object,
) []reconcile.Request {
	return scope.RequestsFor(ctx, r.Client, test.GetNamespace(), func(f *v1alpha1.RedisFault) bool {
		return scope.LoadTestName(f) == test.GetName() && !state.IsFinished(f.Status.Conditions)
	})
}

// RequestsForFault maps a fault that does not act, any more, or a setting that is in force, to
// those that wait for it, and to the first of those that wait for each limit.
func (r *Reconciler) RequestsForFault(
	ctx context.Context, object client.Object,
) []reconcile.Request {
	return r.turns().WokenBy(ctx, object)
}

// RequestsForNamespace maps a namespace with the stop annotation to the faults that it stops.
func (r *Reconciler) RequestsForNamespace(
	ctx context.Context, namespace client.Object,
) []reconcile.Request {
	if !v1alpha1.SwitchedOn(namespace.GetAnnotations(), v1alpha1.AnnotationStop) {
		return nil
	}
	within := namespace.GetName()
	if within == r.OperatorNamespace {
		within = "" // all
	}
	return scope.RequestsFor(ctx, r.Client, within, scope.IsOpen)
}
