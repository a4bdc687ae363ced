package redisfault

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Ending begins the revert of faults that end early: deleted, aborted, stopped, or past their
// deadline. It has workers of its own and queries nothing, so that no fault stays because the
// workers of the Reconciler wait for servers.
type Ending struct{ *Reconciler }

// Reconcile begins a revert that is due.
func (e Ending) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	f := &v1alpha1.RedisFault{}
	err := e.Client.Get(ctx, request.NamespacedName, f)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, e.ending().EndGone(ctx, request.NamespacedName, "")
	} else if err != nil {
		return ctrl.Result{}, err
	}
	_, err = e.ending().EndEarly(ctx, f)
	return ctrl.Result{}, errors.Join(err, e.ending().EndGone(ctx, request.NamespacedName, f.UID))
}

// SetupWithManager registers the controller.
func (e Ending) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	build := ctrl.NewControllerManagedBy(mgr)
	if e.namespaces().Watched() {
		build.WatchesMetadata(&corev1.Namespace{},
			handler.EnqueueRequestsFromMapFunc(e.RequestsForNamespace))
	}
	return build.
		For(&v1alpha1.RedisFault{}).
		Named("redisfault-ending").
		WithOptions(options).
		Complete(reconcile.Reconciler(e))
}

// Restore begins the revert of every fault that is overdue, arms the others, and removes the taints
// of lost faults from nodes. An operator that starts does this first, once: until then its
// reconciles wait.
func (r *Reconciler) Restore(ctx context.Context) {
	r.restoring.Do(func() {
		r.restored = make(chan struct{})
		r.Term.Lead()
		go func() {
			defer close(r.restored)
			r.ending().Restore(ctx)
		}()
	})
	select {
	case <-r.restored:
	case <-ctx.Done():
	}
}

// Sweep does what needs an API server that answers and must not delay Restore, until ctx ends.
func (r *Reconciler) Sweep(ctx context.Context) {
	r.ending().Sweep(ctx)
}

// FollowNamespaces reads the namespaces with faults that act, until ctx ends, and ends what an
// annotation stops. It returns at once where the namespaces are watched.
func (r *Reconciler) FollowNamespaces(ctx context.Context) {
	r.ending().FollowNamespaces(ctx)
}
