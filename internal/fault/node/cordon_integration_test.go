//go:build integration

package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// A real API server stores who set a field. A node that somebody cordoned anew while a fault held it stays cordoned; a cordon of a cordoned node changes nothing, and is not
// seen.
func TestRevertLeavesTheCordonOfAnother(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	person := client.FieldOwner("kubectl-cordon")
	set := func(t *testing.T, name string, unschedulable string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"unschedulable": `+unschedulable+`}}`))
		faulttest.Must(t, cluster.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch, person))
	}
	for name, tc := range map[string]struct {
		meanwhile func(t *testing.T, node string)
		stays     bool
	}{
		"nothing":         {func(*testing.T, string) {}, false},
		"cordoned-again":  {func(t *testing.T, node string) { set(t, node, "null"); set(t, node, "true") }, true},
		"cordon-repeated": {func(t *testing.T, node string) { set(t, node, "true") }, false},
		"applied": {func(t *testing.T, node string) {
			patch := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "`+node+`"}, "spec": {"unschedulable": true}}`))
			faulttest.Must(t, cluster.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch, client.FieldOwner("gitops")))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{corev1.LabelHostname: name} // as a kubelet sets: the owners of fields are stored only for objects that were created with some
			faulttest.Must(t, cluster.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
			deps := contract.Deps{Redis: target.Redis{Namespace: faulttest.Namespace, Live: cluster}, Cluster: cluster, Owner: metav1.OwnerReference{Name: "lose", UID: "uid-lose"}}
			faulttest.MustPrepare(t, faulttest.Called(Cordon(t.Context(), deps, name)), "is unschedulable from now on")
			tc.meanwhile(t, name)
			faulttest.Must(t, faulttest.Called(Uncordon(t.Context(), deps, name)))
			node := &corev1.Node{}
			faulttest.Must(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, node))
			if node.Spec.Unschedulable != tc.stays || len(node.Annotations) > 0 {
				t.Errorf("unschedulable %v, want %v; annotations %v", node.Spec.Unschedulable, tc.stays, node.Annotations)
			}
		})
	}
}
