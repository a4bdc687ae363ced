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
		return ctrl.Result{}, r.endGone(ctx, request.NamespacedName, "")
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if s.seen.Finished {
		r.closeBook(ctx, request.Namespace)
	}
	decision := lifecycle.NextForFault(s.seen, r.Clock.Now())
	if decision.Action == lifecycle.FaultPause {
		return state.Requeue(false, decision.Until, r.Clock.Now()), nil
	}
	outcome := r.perform(ctx, s, decision)
	r.recordCall(s, decision, outcome)
	if outcome.stale {
		return state.Stale(), nil
	}
	if outcome.deleted {
		return ctrl.Result{}, outcome.err
	}
	if err := r.report(ctx, s, decision, outcome); err != nil {
		return state.ResultForPatchError(err)
	}
	if s.seen.Recorded && !s.seen.Finished && !s.seen.Deleting {
		state.KeepNote(ctx, r.Client, s.before)
	}
	return state.Requeue(outcome.again, decision.Until, r.Clock.Now()), outcome.err
}

// recordCall notes when an injection was called that is not complete: it is not called again at
// once, although the write of the status triggers a reconcile.
func (r *Reconciler) recordCall(s *scope, d lifecycle.Decision[lifecycle.FaultAction], o outcome) {
	if (d.Action == lifecycle.FaultInject || d.Action == lifecycle.FaultRenew) && !o.again {
		r.Term.NoteCall(s.fault, r.Clock.Now())
		return
	}
	r.Term.Find(s.fault.UID).ClearCall()
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
	return r.requestsFor(ctx, test.GetNamespace(), func(f *v1alpha1.RedisFault) bool {
		return loadTestName(f) == test.GetName() && !state.IsFinished(f.Status.Conditions)
	})
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
	return r.requestsFor(ctx, within, isOpen)
}

// requestsFor returns requests for the selected faults of a namespace; "" = of all namespaces.
func (r *Reconciler) requestsFor(
	ctx context.Context, namespace string, selected func(*v1alpha1.RedisFault) bool,
) []reconcile.Request {
	var all v1alpha1.RedisFaultList
	if err := r.Client.List(ctx, &all, client.InNamespace(namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return nil // only a cache that has not started fails; a fault is reconciled once it has
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if f := &all.Items[i]; selected(f) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f)})
		}
	}
	return requests
}
