package faulttest

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// AddNode creates a schedulable node.
func (w *World) AddNode(name string, change func(*corev1.Node)) {
	w.T.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if change != nil {
		change(node)
	}
	err := w.Cluster.Create(w.T.Context(), node)
	if err != nil {
		w.T.Fatal(err)
	}
}

// Of returns the dependencies of a fault of that name and UID.
func (w *World) Of(fault string) contract.Deps {
	deps := w.Deps()
	deps.Owner = metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       "RedisFault",
		Name:       fault,
		UID:        types.UID("uid-" + fault),
		Controller: new(true),
	}
	return deps
}

// Tainted fails the test unless a node has the taint of a fault, with its annotation, and no other of its key; "" =
// none. A fault never sets spec.unschedulable.
func (w *World) Tainted(name, fault string) {
	w.T.Helper()
	node := w.ReadNode(name)
	var have []string
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.TaintFault && taint.Effect == corev1.TaintEffectNoSchedule {
			have = append(have, taint.Value+" "+node.Annotations[v1alpha1.AnnotationTaintPrefix+taint.Value])
		}
	}
	want := ""
	if fault != "" {
		want = "uid-" + fault + " " + Namespace + "/" + fault
	}
	got := strings.Join(have, ", ")
	if got != want || node.Spec.Unschedulable {
		w.T.Errorf("node %s: tainted by %q, want %q (taints %v, annotations %v, unschedulable %t)", name, got, want,
			node.Spec.Taints, node.Annotations, node.Spec.Unschedulable)
	}
}

// ReadNode reads a node.
func (w *World) ReadNode(name string) *corev1.Node {
	w.T.Helper()
	node := &corev1.Node{}
	err := w.Cluster.Get(context.Background(), client.ObjectKey{Name: name}, node)
	if err != nil {
		w.T.Fatal(err)
	}
	return node
}

// MustPrepare fails the test unless an injection is in the stage of preparation, with a text in its message.
func MustPrepare(t *testing.T, err error, says string) {
	t.Helper()
	var preparing *Pending
	if !errors.As(err, &preparing) || preparing.Stage != contract.StagePreparing ||
		!strings.Contains(preparing.Message, says) {
		t.Fatalf("%v, want a preparation with %q in its message", err, says)
	}
}
