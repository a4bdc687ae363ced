package chaosmesh

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// mesh plays Chaos Mesh's controller on the objects of one fault.
type mesh struct {
	t       *testing.T
	cluster client.Client
	spec    *v1alpha1.RedisFaultSpec
}

// children are all objects of the fault's kind.
func (m mesh) children() []unstructured.Unstructured {
	m.t.Helper()
	kind, _ := object.Kind(m.spec.Action.Type)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := m.cluster.List(context.Background(), list, client.InNamespace(faulttest.Namespace)); err != nil {
		m.t.Fatal(err)
	}
	return list.Items
}

// child is the only one.
func (m mesh) child() *unstructured.Unstructured {
	m.t.Helper()
	all := m.children()
	if len(all) != 1 {
		m.t.Fatalf("there are %d objects, want one", len(all))
	}
	return &all[0]
}

// says takes the child up, as Chaos Mesh does by its finalizer, and writes what it says of the experiment.
func (m mesh) says(experiment string) {
	m.t.Helper()
	child := m.child()
	if child.GetDeletionTimestamp() == nil {
		child.SetFinalizers([]string{meshtest.Finalizer})
	}
	meshtest.SetStatus(m.t, child, faulttest.Namespace+"/redis-0", experiment)
	if err := m.cluster.Update(context.Background(), child); err != nil {
		m.t.Fatal(err)
	}
}

// letsGo takes the finalizer away: everything is reverted.
func (m mesh) letsGo() {
	m.t.Helper()
	child := m.child()
	child.SetFinalizers(nil)
	if err := m.cluster.Update(context.Background(), child); err != nil {
		m.t.Fatal(err)
	}
}
