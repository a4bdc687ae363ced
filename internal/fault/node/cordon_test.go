package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestCordonAndUncordon(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", nil)
	for i, want := range []bool{true, false} {
		if progress, err := Cordon(t.Context(), w.Of("a"), "node-1"); err != nil || (progress.Stage == contract.StagePreparing) != want {
			t.Errorf("call %d: %+v (%v), changed: want %v", i+1, progress, err, want)
		}
	}
	w.Unschedulable("node-1", true)
	if by := w.ReadNode("node-1").Annotations["cordoned-by.redquake.dev/uid-a"]; by != "shop/a" {
		t.Errorf("cordoned by %q", by)
	}
	for range 2 {
		if err := faulttest.Called(Uncordon(t.Context(), w.Of("a"), "node-1")); err != nil {
			t.Fatal(err)
		}
	}
	w.Unschedulable("node-1", false)
	if left := w.ReadNode("node-1").Annotations; len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// exists creates a fault, with the UID that World.Of gives it.
func exists(w *faulttest.World, name string) {
	w.T.Helper()
	fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name, UID: types.UID("uid-" + name)}}
	faulttest.Must(w.T, w.Cluster.Create(w.T.Context(), fault))
}

// cordoned cordons a node by a fault.
func cordoned(w *faulttest.World, fault string) {
	w.T.Helper()
	if progress, err := Cordon(w.T.Context(), w.Of(fault), "node-1"); err != nil || progress.Message != "node node-1 is unschedulable from now on" {
		w.T.Fatalf("%+v, %v", progress, err)
	}
	w.Unschedulable("node-1", true)
}

// One fault at a time holds a node: another one waits, whether it may read the first or not.
func TestCordonWaitsForAnotherFault(t *testing.T) {
	for _, readable := range []bool{true, false} {
		w := faulttest.NewWorld(t)
		w.AddNode("node-1", nil)
		exists(w, "a")
		cordoned(w, "a")
		if !readable {
			w.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				if _, fault := into.(*v1alpha1.RedisFault); fault {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "redisfaults"}, key.Name, errors.New("no rule"))
				}
				return c.Get(ctx, key, into, options...)
			}
		}
		for range 2 {
			faulttest.MustPrepare(t, faulttest.Called(Cordon(t.Context(), w.Of("b"), "node-1")), "waiting for RedisFault shop/a, which holds node node-1")
		}
		faulttest.Must(t, faulttest.Called(Uncordon(t.Context(), w.Of("b"), "node-1"))) // it never held the node
		w.Unschedulable("node-1", true)
		faulttest.Must(t, faulttest.Called(Uncordon(t.Context(), w.Of("a"), "node-1")))
		w.Unschedulable("node-1", false)
		cordoned(w, "b")
	}
}

// A fault that was deleted without its revert, or replaced by another of the same name, holds no node any more.
func TestCordonTakesOverFromNoFault(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaced %v", replaced), func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.AddNode("node-1", nil)
			cordoned(w, "a")
			if replaced {
				faulttest.Must(t, w.Cluster.Create(t.Context(), &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "a", UID: "another"}}))
			}
			cordoned(w, "b")
			if marks := w.ReadNode("node-1").Annotations; len(marks) != 1 || marks["cordoned-by.redquake.dev/uid-b"] != "shop/b" {
				t.Errorf("annotations %v", marks)
			}
			faulttest.Must(t, faulttest.Called(Uncordon(t.Context(), w.Of("b"), "node-1")))
			w.Unschedulable("node-1", false)
		})
	}
}

// Nodes whose faults are gone are found and uncordoned; those of other faults and of people are not touched.
func TestSweep(t *testing.T) {
	w := faulttest.NewWorld(t)
	mark := func(name, fault string) {
		w.AddNode(name, func(n *corev1.Node) {
			n.Annotations, n.Spec.Unschedulable = map[string]string{v1alpha1.AnnotationCordonPrefix + "uid-" + fault: "shop/" + fault}, true
		})
	}
	exists(w, "live")
	mark("held", "live")
	mark("orphan-1", "gone")
	mark("orphan-2", "gone")
	w.AddNode("ours", nil)
	w.AddNode("cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	w.AddNode("both", func(n *corev1.Node) {
		n.Annotations, n.Spec.Unschedulable = map[string]string{v1alpha1.AnnotationCordonPrefix + "uid-gone": "shop/gone", v1alpha1.AnnotationCordonPrefix + "uid-live": "shop/live"}, true
	})
	swept, err := Sweep(t.Context(), w.Cluster, w.Cluster)
	var names []string
	for _, one := range swept {
		names = append(names, one.Node)
		if len(one.Faults) != 1 || one.Faults[0] != "shop/gone" {
			t.Errorf("%s: faults %v", one.Node, one.Faults)
		}
	}
	slices.Sort(names)
	if err != nil || strings.Join(names, " ") != "both orphan-1 orphan-2" {
		t.Errorf("swept %v, %v", names, err)
	}
	for name, want := range map[string]bool{"held": true, "both": true, "cordoned": true, "ours": false, "orphan-1": false, "orphan-2": false} {
		w.Unschedulable(name, want)
	}
	if marks := w.ReadNode("both").Annotations; len(marks) != 1 {
		t.Errorf("annotations of a node that a live fault holds: %v", marks)
	}
	if left, err := Orphans(t.Context(), w.Cluster); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A node that another client cordoned stays cordoned.
func TestCordonByAnotherIsKept(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if err := faulttest.Called(Cordon(t.Context(), w.Of("a"), "node-1")); err != nil {
		t.Errorf("changed: %v", err)
	}
	if err := faulttest.Called(Uncordon(t.Context(), w.Of("a"), "node-1")); err != nil {
		t.Fatal(err)
	}
	w.Unschedulable("node-1", true)
	if len(w.ReadNode("node-1").Annotations) > 0 {
		t.Error("the node has the fault's annotation")
	}
}

func TestUncordonOfNoNode(t *testing.T) {
	w := faulttest.NewWorld(t)
	if err := faulttest.Called(Uncordon(t.Context(), w.Of("a"), "gone")); err != nil {
		t.Errorf("uncordon of a deleted node: %v, want no error", err)
	}
	if _, err := Cordon(t.Context(), w.Of("a"), "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("cordon of no node: %v", err)
	}
}

func TestOtherNodeForPod(t *testing.T) {
	bound := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}},
		}}}},
	}}}
	for name, tc := range map[string]struct {
		other    func(*corev1.Node)
		pod      corev1.PodSpec
		volume   *corev1.PersistentVolume
		alone    bool
		wantText string // "" = the pod fits there
	}{
		"fits":      {},
		"no other":  {alone: true, wantText: "no node other than node-1"},
		"cordoned":  {other: func(n *corev1.Node) { n.Spec.Unschedulable = true }, wantText: "node-2 is unschedulable"},
		"not ready": {other: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, wantText: "node-2 is not ready"},
		"tainted": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, wantText: "taint gpu"},
		"preferred": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		"tolerated": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}},
		"nodeSelector": {pod: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "node-1"}}, wantText: "nodeSelector"},
		"local volume": {volume: bound, wantText: "volume disk"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.AddNode("node-1", nil)
			if !tc.alone {
				w.AddNode("node-2", tc.other)
			}
			err := RequireOtherNode(t.Context(), w.Deps(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redis-0"}, Spec: tc.pod}, tc.volume, "node-1")
			if tc.wantText == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(problem.Message, tc.wantText) || !strings.Contains(problem.Message, "redis-0") {
				t.Errorf("%+v, want one about %q", problem, tc.wantText)
			}
		})
	}
}
