package chaosmesh

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/meshtest"
)

// mesh simulates Chaos Mesh's controller on the objects of one fault.
type mesh struct {
	t       *testing.T
	cluster client.Client
	spec    *v1alpha1.RedisFaultSpec
}

// children returns all objects of the fault's kind.
func (m mesh) children() []object.Object {
	m.t.Helper()
	kind, _ := object.Kind(m.spec.Action.Type)
	all, err := meshtest.Children(context.Background(), m.cluster, kind, faulttest.Namespace)
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// child returns the only one.
func (m mesh) child() object.Object {
	m.t.Helper()
	all := m.children()
	if len(all) != 1 {
		m.t.Fatalf("there are %d objects, want one", len(all))
	}
	return all[0]
}

// field returns a field of the child's spec, as in its manifest; nil if it is not set.
func (m mesh) field(path ...string) any {
	m.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.child())
	if err != nil {
		m.t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(content, append([]string{"spec"}, path...)...)
	if err != nil {
		m.t.Fatal(err)
	}
	return value
}

// setStatus adds the finalizer and writes the status of the experiment, as Chaos Mesh does.
func (m mesh) setStatus(experiment string) {
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

// removeFinalizer removes the finalizer, as Chaos Mesh does when everything is reverted.
func (m mesh) removeFinalizer() {
	m.t.Helper()
	child := m.child()
	child.SetFinalizers(nil)
	if err := m.cluster.Update(context.Background(), child); err != nil {
		m.t.Fatal(err)
	}
}
