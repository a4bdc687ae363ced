package redisfault

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/controllers/state"
)

// An operator for some namespaces reads each by its name (see rules.Namespaces): again and again
// while a fault there acts, else when one is reconciled, and just before one begins. So many faults
// that wait cost nothing.

// namespaceEvery is how often.
const namespaceEvery = 2 * time.Second

// namespaces reads them.
func (r *Reconciler) namespaces() rules.Namespaces {
	return rules.Namespaces{
		Client:    r.Client,
		APIReader: r.APIReader,
		Clock:     r.Clock,
		Names:     r.Namespaces,
		Copies:    &r.copies,
	}
}

// FollowNamespaces reads the namespaces with faults that act, until ctx ends, and ends what an
// annotation stops. It returns at once where the namespaces are watched.
func (r *Reconciler) FollowNamespaces(ctx context.Context) {
	if !r.namespaces().Watched() {
		wait.UntilWithContext(ctx, r.lookAtNamespaces, namespaceEvery)
	}
}

func (r *Reconciler) lookAtNamespaces(ctx context.Context) {
	open, acts := map[string][]reconcile.Request{}, map[string]bool{} // by namespace
	for _, name := range r.Namespaces {
		unfinished := r.requestsFor(ctx, name, isOpen)
		acting := len(r.requestsFor(ctx, name, isActing)) > 0
		for _, within := range slices.Compact([]string{name, r.OperatorNamespace}) {
			open[within] = append(open[within], unfinished...)
			acts[within] = acts[within] || acting
		}
	}
	for name, act := range acts {
		if name == "" || !act { // the operator's own may not be known
			continue
		}
		found, err := r.namespaces().Read(ctx, name)
		// without the right, faults there do not begin, and say so
		if err != nil && !apierrors.IsForbidden(err) {
			log.FromContext(ctx).Error(err, "read the annotations of a namespace", "namespace", name)
		}
		if err == nil && v1alpha1.SwitchedOn(found.Annotations, v1alpha1.AnnotationStop) {
			r.stopAll(ctx, name, open[name])
		}
	}
}

func isOpen(f *v1alpha1.RedisFault) bool {
	return !state.IsFinished(f.Status.Conditions)
}

// isActing reports whether a fault may have broken something that is not reverted yet.
func isActing(f *v1alpha1.RedisFault) bool {
	return isOpen(f) && isRecorded(&f.Status) && f.Status.RevertedAt == nil
}

// stopAll begins the revert of faults that the annotation of a namespace stops, and has them
// reconciled.
func (r *Reconciler) stopAll(ctx context.Context, namespace string, requests []reconcile.Request) {
	for _, request := range requests {
		f := &v1alpha1.RedisFault{}
		if err := r.Client.Get(ctx, request.NamespacedName, f); err != nil {
			continue // it is gone
		}
		s := r.scopeToEnd(f)
		s.seen.Stopped = stoppedBy(namespace)
		r.endIfDue(ctx, s)
		r.Term.Notify(request.NamespacedName)
	}
}
