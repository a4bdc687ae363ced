package fault

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

func deadlineOf(f *v1alpha1.RedisFault) time.Time {
	return f.CreationTimestamp.Add(f.Spec.DeadlineAfter())
}

// observeStop reads the stop annotations: of the fault's namespace, and of the operator's, which stops all faults.
func (r *Reconciler) observeStop(ctx context.Context, s *scope) error {
	for _, name := range []string{s.fault.Namespace, r.OperatorNamespace} {
		if name == "" {
			continue
		}
		namespace := namespaceMetadata()
		if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read namespace %s: %w", name, err)
		}
		if namespace.Annotations[v1alpha1.AnnotationStop] == "true" {
			s.seen.Stopped = fmt.Sprintf("ended by the annotation %s of namespace %s", v1alpha1.AnnotationStop, name)
		}
	}
	return nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}
