package fault

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
)

// addNode makes a node that takes pods.
func (w *world) addNode(name string, change func(*corev1.Node)) {
	w.t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(node)
	}
	if err := w.cluster.Create(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) readNode(name string) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	if err := w.cluster.Get(context.Background(), client.ObjectKey{Name: name}, node); err != nil {
		w.t.Fatal(err)
	}
	return node
}

// of is what a fault of that name and UID acts on.
func (w *world) of(fault string) contract.Deps {
	deps := w.deps()
	deps.Owner = metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisFault", Name: fault, UID: types.UID("uid-" + fault), Controller: new(true)}
	return deps
}

func (w *world) unschedulable(node string, want bool) {
	w.t.Helper()
	if n := w.readNode(node); n.Spec.Unschedulable != want {
		w.t.Errorf("node %s: unschedulable %v, want %v (annotations %v)", node, n.Spec.Unschedulable, want, n.Annotations)
	}
}

func TestCordonAndBack(t *testing.T) {
	w := newWorld(t)
	w.addNode("node-1", nil)
	for i, want := range []bool{true, false} {
		if progress, err := cordon(t.Context(), w.of("a"), "node-1"); err != nil || (progress.Stage == contract.StagePreparing) != want {
			t.Errorf("call %d: %+v (%v), changed: want %v", i+1, progress, err, want)
		}
	}
	w.unschedulable("node-1", true)
	if by := w.readNode("node-1").Annotations["cordoned-by.redquake.dev/uid-a"]; by != "shop/a" {
		t.Errorf("cordoned by %q", by)
	}
	for range 2 {
		if err := called(uncordon(t.Context(), w.of("a"), "node-1")); err != nil {
			t.Fatal(err)
		}
	}
	w.unschedulable("node-1", false)
	if left := w.readNode("node-1").Annotations; len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two faults close one node: it opens when the last one leaves.
func TestCordonIsShared(t *testing.T) {
	w := newWorld(t)
	w.addNode("node-1", nil)
	for _, fault := range []string{"a", "b"} {
		if _, err := cordon(t.Context(), w.of(fault), "node-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := called(uncordon(t.Context(), w.of("a"), "node-1")); err != nil {
		t.Fatal(err)
	}
	w.unschedulable("node-1", true)
	if err := called(uncordon(t.Context(), w.of("b"), "node-1")); err != nil {
		t.Fatal(err)
	}
	w.unschedulable("node-1", false)
}

// What somebody else closed stays closed.
func TestCordonOfAnother(t *testing.T) {
	w := newWorld(t)
	w.addNode("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if err := called(cordon(t.Context(), w.of("a"), "node-1")); err != nil {
		t.Errorf("changed: %v", err)
	}
	if err := called(uncordon(t.Context(), w.of("a"), "node-1")); err != nil {
		t.Fatal(err)
	}
	w.unschedulable("node-1", true)
	if len(w.readNode("node-1").Annotations) > 0 {
		t.Error("it was marked as ours")
	}
}

func TestUncordonOfNoNode(t *testing.T) {
	w := newWorld(t)
	if err := called(uncordon(t.Context(), w.of("a"), "gone")); err != nil {
		t.Errorf("a node that is gone is not to be opened: %v", err)
	}
	if _, err := cordon(t.Context(), w.of("a"), "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("cordon of no node: %v", err)
	}
}

func TestElsewhere(t *testing.T) {
	bound := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}},
		}}}},
	}}}
	for name, tc := range map[string]struct {
		other  func(*corev1.Node)
		pod    corev1.PodSpec
		volume *corev1.PersistentVolume
		alone  bool
		says   string // "" = it can go there
	}{
		"fits":      {},
		"no other":  {alone: true, says: "no node beside node-1"},
		"cordoned":  {other: func(n *corev1.Node) { n.Spec.Unschedulable = true }, says: "node-2 is unschedulable"},
		"not ready": {other: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, says: "node-2 is not ready"},
		"tainted": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, says: "taint gpu"},
		"preferred": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		"tolerated": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}},
		"nodeSelector": {pod: corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "node-1"}}, says: "nodeSelector"},
		"local volume": {volume: bound, says: "volume disk"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addNode("node-1", nil)
			if !tc.alone {
				w.addNode("node-2", tc.other)
			}
			err := elsewhere(t.Context(), w.deps(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redis-0"}, Spec: tc.pod}, tc.volume, "node-1")
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if problem := problemOf(t, err); problem.Reason != v1alpha1.ReasonNotSupported || !strings.Contains(problem.Message, tc.says) || !strings.Contains(problem.Message, "redis-0") {
				t.Errorf("%+v, want one about %q", problem, tc.says)
			}
		})
	}
}

// mustPrepare checks that an injection said that it has broken nothing yet.
func mustPrepare(t *testing.T, err error, says string) {
	t.Helper()
	var preparing *pending
	if !errors.As(err, &preparing) || preparing.Stage != contract.StagePreparing || !strings.Contains(preparing.Message, says) {
		t.Fatalf("%v, want a preparation that says %q", err, says)
	}
}
