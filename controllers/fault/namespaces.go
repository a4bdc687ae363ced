package fault

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
)

// An operator for all namespaces watches them. That takes a ClusterRole: one for some namespaces reads each by its name, which a Role in it permits: again and
// again while a fault there acts, else when one is reconciled, and just before one begins. So many faults that wait cost nothing.
const (
	namespaceEvery = 2 * time.Second
	namespaceAge   = 5 * time.Second // how old what was read may be
)

// namespaceCopy is the metadata of a namespace at an instant; empty if it does not exist.
type namespaceCopy struct {
	at    time.Time
	found *metav1.PartialObjectMetadata
}

// serves reports whether a copy need not be read again. One with the annotation that stops faults does: a fault that comes after its removal must not end.
func (c namespaceCopy) serves(now time.Time) bool {
	age := now.Sub(c.at)
	return age >= 0 && age < namespaceAge && !v1alpha1.SwitchedOn(c.found.Annotations, v1alpha1.AnnotationStop)
}

func (r *Reconciler) watchesNamespaces() bool { return len(r.Namespaces) == 0 }

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// namespaceOf is the metadata of a namespace as it was some seconds ago at most, or when the API server last answered; empty if it does not exist.
func (r *Reconciler) namespaceOf(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if r.watchesNamespaces() {
		found := namespaceMetadata()
		return found, client.IgnoreNotFound(r.Client.Get(ctx, client.ObjectKey{Name: name}, found))
	}
	if known, is := r.namespaces.Load(name); is && known.(namespaceCopy).serves(r.Clock.Now()) {
		return known.(namespaceCopy).found, nil
	}
	return r.readNamespace(ctx, name)
}

// readNamespace reads a namespace from the API server.
func (r *Reconciler) readNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	found := namespaceMetadata()
	err := r.APIReader.Get(ctx, client.ObjectKey{Name: name}, found)
	if client.IgnoreNotFound(err) == nil {
		r.namespaces.Store(name, namespaceCopy{r.Clock.Now(), found})
		return found, nil
	}
	if known, is := r.namespaces.Load(name); is {
		return known.(namespaceCopy).found, nil
	}
	return nil, err
}

// FollowNamespaces reads the namespaces with faults that act, until ctx ends, and ends what an annotation stops. It returns at once where the namespaces are
// watched.
func (r *Reconciler) FollowNamespaces(ctx context.Context) {
	if !r.watchesNamespaces() {
		wait.UntilWithContext(ctx, r.lookAtNamespaces, namespaceEvery)
	}
}

func (r *Reconciler) lookAtNamespaces(ctx context.Context) {
	open, acts := map[string][]reconcile.Request{}, map[string]bool{} // by namespace
	for _, name := range r.Namespaces {
		unfinished, acting := r.requestsFor(ctx, name, isOpen), len(r.requestsFor(ctx, name, isActing)) > 0
		for _, within := range slices.Compact([]string{name, r.OperatorNamespace}) {
			open[within] = append(open[within], unfinished...)
			acts[within] = acts[within] || acting
		}
	}
	for name, act := range acts {
		if name == "" || !act { // the operator's own may not be known
			continue
		}
		found, err := r.readNamespace(ctx, name)
		if err != nil && !apierrors.IsForbidden(err) { // without the right, faults there do not begin, and say so
			log.FromContext(ctx).Error(err, "read the annotations of a namespace", "namespace", name)
		}
		if err == nil && v1alpha1.SwitchedOn(found.Annotations, v1alpha1.AnnotationStop) {
			r.stopAll(ctx, name, open[name])
		}
	}
}

func isOpen(f *v1alpha1.RedisFault) bool { return !state.IsFinished(f.Status.Conditions) }

// isActing reports whether a fault may have broken something that is not reverted yet.
func isActing(f *v1alpha1.RedisFault) bool {
	return isOpen(f) && isRecorded(&f.Status) && f.Status.RevertedAt == nil
}

// stopAll begins the revert of faults that the annotation of a namespace stops, and has them reconciled.
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
