package redisfault

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/rights"
)

// observeStop reads the stop annotations: of the fault's namespace, and of the operator's, which
// stops all faults.
func (r *Reconciler) observeStop(ctx context.Context, s *scope) error {
	return r.observeStopIn(ctx, s, r.namespaces().Of)
}

// observeStopNow does the same as a fault begins, by the namespaces as the API server has them now.
func (r *Reconciler) observeStopNow(ctx context.Context, s *scope) error {
	if r.namespaces().Watched() {
		return nil // what is known is as new
	}
	return r.observeStopIn(ctx, s, r.namespaces().Read)
}

func (r *Reconciler) observeStopIn(
	ctx context.Context, s *scope,
	read func(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error),
) error {
	for _, name := range []string{s.fault.Namespace, r.OperatorNamespace} {
		if name == "" {
			continue
		}
		namespace, err := read(ctx, name)
		if apierrors.IsForbidden(err) {
			s.withhold(name, err)
			continue
		} else if err != nil {
			return fmt.Errorf("read namespace %s: %w", name, err)
		}
		if v1alpha1.SwitchedOn(namespace.Annotations, v1alpha1.AnnotationStop) {
			s.seen.Stopped = stoppedBy(name)
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
func (s *scope) withhold(namespace string, err error) {
	if s.seen.Recorded || s.seen.Deleting {
		return
	}
	s.seen.Withheld = &problem.Problem{Reason: v1alpha1.ReasonNotPermitted, Message: fmt.Sprintf(
		"no fault begins: the operator may not get namespace %s, whose annotations may forbid that "+
			"(%v): bind the role %smanager-role to its ServiceAccount there", namespace, err, rights.Prefix)}
}
