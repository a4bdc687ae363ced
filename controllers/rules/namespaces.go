package rules

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/faultrun"
)

// Namespaces reads the metadata of namespaces. An operator for all namespaces watches them. That
// takes a ClusterRole: one for some namespaces reads each by its name, which a Role in it permits.
type Namespaces struct {
	Client    client.Reader // cached
	APIReader client.Reader // not cached
	Clock     clock.PassiveClock
	Names     []string  // those that the operator watches; empty = all
	Copies    *sync.Map // of those that are read by name: a namespaceCopy by name
}

// NamespaceAge is how old what was read may be.
const NamespaceAge = 5 * time.Second

// namespaceCopy is the metadata of a namespace at an instant; empty if it does not exist.
type namespaceCopy struct {
	at    time.Time
	found *metav1.PartialObjectMetadata
}

// serves reports whether a copy need not be read again. One with the annotation that stops faults
// does: a fault that comes after its removal must not end.
func (c namespaceCopy) serves(now time.Time) bool {
	age := now.Sub(c.at)
	return age >= 0 && age < NamespaceAge &&
		!v1alpha1.SwitchedOn(c.found.Annotations, v1alpha1.AnnotationStop)
}

// Watched reports whether all namespaces are watched: what is known of one is as new as what the
// API server has.
func (n Namespaces) Watched() bool {
	return len(n.Names) == 0
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// Of is the metadata of a namespace as it was some seconds ago at most, or when the API server last
// answered; empty if it does not exist.
func (n Namespaces) Of(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if n.Watched() {
		found := namespaceMetadata()
		return found, client.IgnoreNotFound(n.Client.Get(ctx, client.ObjectKey{Name: name}, found))
	}
	known, ok := n.Copies.Load(name)
	if ok && known.(namespaceCopy).serves(n.Clock.Now()) {
		return known.(namespaceCopy).found, nil
	}
	return n.Read(ctx, name)
}

// Read reads a namespace from the API server.
func (n Namespaces) Read(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, faultrun.CallTimeout)
	defer cancel()
	found := namespaceMetadata()
	err := n.APIReader.Get(ctx, client.ObjectKey{Name: name}, found)
	if client.IgnoreNotFound(err) == nil {
		n.Copies.Store(name, namespaceCopy{n.Clock.Now(), found})
		return found, nil
	}
	if known, ok := n.Copies.Load(name); ok {
		return known.(namespaceCopy).found, nil
	}
	return nil, err
}
