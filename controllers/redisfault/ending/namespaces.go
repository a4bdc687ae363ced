package ending

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/rights"
)

// An operator for some namespaces reads each by its name (see rules.Namespaces): again and again
// while a fault there acts, else when one is reconciled, and just before one begins. So many faults
// that wait cost nothing.

// namespaceEvery is how often they are read while a fault acts.
const namespaceEvery = 2 * time.Second

// FollowNamespaces reads the namespaces with faults that act, until ctx ends, and ends what an
// annotation stops. It returns at once where the namespaces are watched.
func (r *Ender) FollowNamespaces(ctx context.Context) {
	if !r.Namespaces.Watched() {
		wait.UntilWithContext(ctx, r.LookAtNamespaces, namespaceEvery)
	}
}

// LookAtNamespaces reads them once.
func (r *Ender) LookAtNamespaces(ctx context.Context) {
	open, acts := map[string][]reconcile.Request{}, map[string]bool{} // by namespace
	for _, name := range r.Namespaces.Names {
		unfinished := scope.RequestsFor(ctx, r.Client, name, scope.IsOpen)
		acting := len(scope.RequestsFor(ctx, r.Client, name, scope.IsActing)) > 0
		for _, within := range slices.Compact([]string{name, r.OperatorNamespace}) {
			open[within] = append(open[within], unfinished...)
			acts[within] = acts[within] || acting
		}
	}
	for name, act := range acts {
		if name == "" || !act { // the operator's own may not be known
			continue
		}
		found, err := r.Namespaces.Read(ctx, name)
		// without the right, faults there do not begin, and say so
		if err != nil && !apierrors.IsForbidden(err) {
			log.FromContext(ctx).Error(err, "read the annotations of a namespace", "namespace", name)
		}
		if err == nil && v1alpha1.SwitchedOn(found.Annotations, v1alpha1.AnnotationStop) {
			r.stopAll(ctx, name, open[name])
		}
	}
}

// stopAll begins the revert of faults that the annotation of a namespace stops, and has them
// reconciled.
func (r *Ender) stopAll(ctx context.Context, namespace string, requests []reconcile.Request) {
	for _, request := range requests {
		f := &v1alpha1.RedisFault{}
		err := r.Client.Get(ctx, request.NamespacedName, f)
		if err != nil {
			continue // it is gone
		}
		s := r.scopeToEnd(f)
		s.Seen.Stopped = stoppedBy(namespace)
		r.endIfDue(ctx, s)
		r.Term.Notify(request.NamespacedName)
	}
}

// ObserveStop reads the stop annotations: of the fault's namespace, and of the operator's, which
// stops all faults.
func (r *Ender) ObserveStop(ctx context.Context, s *scope.Fault) error {
	return r.observeStopIn(ctx, s, r.Namespaces.Of)
}

// ObserveStopNow does the same as a fault begins, by the namespaces as the API server has them now.
func (r *Ender) ObserveStopNow(ctx context.Context, s *scope.Fault) error {
	if r.Namespaces.Watched() {
		return nil // what is known is as new
	}
	return r.observeStopIn(ctx, s, r.Namespaces.Read)
}

func (r *Ender) observeStopIn(
	ctx context.Context, s *scope.Fault,
	read func(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error),
) error {
	for _, name := range []string{s.Fault.Namespace, r.OperatorNamespace} {
		if name == "" {
			continue
		}
		namespace, err := read(ctx, name)
		if apierrors.IsForbidden(err) {
			withhold(s, name, err)
			continue
		} else if err != nil {
			return fmt.Errorf("read namespace %s: %w", name, err)
		}
		if v1alpha1.SwitchedOn(namespace.Annotations, v1alpha1.AnnotationStop) {
			s.Seen.Stopped = stoppedBy(name)
		}
	}
	return nil
}

func stoppedBy(namespace string) string {
	return fmt.Sprintf("ended by the annotation %s of namespace %s", v1alpha1.AnnotationStop,
		namespace)
}

// withhold keeps a fault from beginning in a namespace that the operator may not read. What has
// begun goes on, and ends: the roles of a namespace that is deleted may be gone before its faults.
func withhold(s *scope.Fault, namespace string, err error) {
	if s.Seen.Recorded || s.Seen.Deleting {
		return
	}
	s.Seen.Withheld = &problem.Problem{Reason: v1alpha1.ReasonNotPermitted, Message: fmt.Sprintf(
		"no fault begins: the operator may not get namespace %s, whose annotations may forbid that "+
			"(%v): bind the role %smanager-role to its ServiceAccount there", namespace, err, rights.Prefix)}
}
