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

// gpu is a taint of somebody else.
var gpu = corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}

// taintOfFault is the taint of a fault with the UID that World.Of gives it.
func taintOfFault(name string) corev1.Taint {
	return corev1.Taint{Key: "redquake.dev/fault", Value: "uid-" + name, Effect: corev1.TaintEffectNoSchedule}
}

func TestTaintAndUntaint(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu} })
	for i, want := range []bool{true, false} {
		if progress, err := Taint(t.Context(), w.Of("a"), "node-1"); err != nil ||
			(progress.Stage == contract.StagePreparing) != want {
			t.Errorf("call %d: %+v (%v), changed: want %v", i+1, progress, err, want)
		}
	}
	if got := w.ReadNode("node-1"); !slices.Equal(got.Spec.Taints, []corev1.Taint{gpu, taintOfFault("a")}) ||
		got.Annotations["tainted-by.redquake.dev/uid-a"] != "shop/a" || len(got.Annotations) != 1 {
		t.Errorf("taints %v, annotations %v", got.Spec.Taints, got.Annotations)
	}
	for range 2 {
		faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1")))
	}
	if got := w.ReadNode("node-1"); !slices.Equal(got.Spec.Taints, []corev1.Taint{gpu}) || len(got.Annotations) > 0 {
		t.Errorf("left behind: taints %v, annotations %v", got.Spec.Taints, got.Annotations)
	}
}

// exists creates a fault, with the UID that World.Of gives it.
func exists(w *faulttest.World, name string) {
	w.T.Helper()
	fault := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name, UID: types.UID("uid-" + name)},
	}
	faulttest.Must(w.T, w.Cluster.Create(w.T.Context(), fault))
}

// tainted taints a node by a fault.
func tainted(w *faulttest.World, fault string) {
	w.T.Helper()
	if progress, err := Taint(w.T.Context(), w.Of(fault), "node-1"); err != nil ||
		progress.Message != "node node-1 is tainted from now on" {
		w.T.Fatalf("%+v, %v", progress, err)
	}
	w.Tainted("node-1", fault)
}

// change changes node-1, as another client does.
func change(w *faulttest.World, edit func(*corev1.Node)) {
	w.T.Helper()
	node := w.ReadNode("node-1")
	edit(node)
	faulttest.Must(w.T, w.Cluster.Update(w.T.Context(), node))
}

// One fault at a time holds a node: another one waits, whether it may read the first or not.
func TestTaintWaitsForAnotherFault(t *testing.T) {
	for _, readable := range []bool{true, false} {
		w := faulttest.NewWorld(t)
		w.AddNode("node-1", nil)
		exists(w, "a")
		tainted(w, "a")
		if !readable {
			w.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
				options ...client.GetOption,
			) error {
				if _, fault := into.(*v1alpha1.RedisFault); fault {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "redisfaults"}, key.Name, errors.New("no rule"))
				}
				return c.Get(ctx, key, into, options...)
			}
		}
		for range 2 {
			faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), w.Of("b"), "node-1")),
				"waiting for RedisFault shop/a, which holds node node-1")
		}
		faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("b"), "node-1"))) // it never held the node
		w.Tainted("node-1", "a")
		faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1")))
		w.Tainted("node-1", "")
		tainted(w, "b")
	}
}

// A fault that was deleted without its revert, or replaced by another of the same name, holds no node any more.
func TestTaintTakesOverFromNoFault(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaced %v", replaced), func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.AddNode("node-1", nil)
			tainted(w, "a")
			if replaced {
				faulttest.Must(t,
					w.Cluster.Create(t.Context(), &v1alpha1.RedisFault{
						ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "a", UID: "another"},
					}))
			}
			tainted(w, "b")
			if marks := w.ReadNode("node-1").Annotations; len(marks) != 1 {
				t.Errorf("annotations %v", marks)
			}
			faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1"))) // its operator comes late
			w.Tainted("node-1", "b")
			faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("b"), "node-1")))
			w.Tainted("node-1", "")
		})
	}
}

// Of a taint without its annotation nobody knows whether its fault still exists: it stays until somebody removes it.
func TestTaintOfAnUnknownFaultStays(t *testing.T) {
	for name, value := range map[string]string{"of a fault": "uid-a", "of a person": ""} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			unknown := corev1.Taint{Key: v1alpha1.TaintFault, Value: value, Effect: corev1.TaintEffectNoSchedule}
			w.AddNode("node-1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{unknown} })
			faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), w.Of("b"), "node-1")),
				"waiting until somebody removes the taint redquake.dev/fault")
			faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("b"), "node-1")))
			if left, err := Sweep(t.Context(), w.Cluster, w.Cluster, nil); err != nil || len(left) > 0 {
				t.Errorf("swept %v, %v", left, err)
			}
			if got := w.ReadNode("node-1").Spec.Taints; !slices.Equal(got, []corev1.Taint{unknown}) {
				t.Errorf("taints %v", got)
			}
			change(w, func(n *corev1.Node) { n.Spec.Taints = nil })
			tainted(w, "b")
		})
	}
}

// What others do to the node while a fault holds it stays, and does not keep the fault from releasing it.
func TestUntaintLeavesWhatOthersSet(t *testing.T) {
	noExecute := corev1.Taint{Key: v1alpha1.TaintFault, Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		meanwhile func(*corev1.Node)
		cordoned  bool
		taints    []corev1.Taint
	}{
		"cordoned": {meanwhile: func(n *corev1.Node) { n.Spec.Unschedulable = true }, cordoned: true},
		"tainted": {meanwhile: func(n *corev1.Node) {
			n.Spec.Taints = append([]corev1.Taint{gpu},
				n.Spec.Taints...)
		}, taints: []corev1.Taint{gpu}},
		"another effect": {meanwhile: func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints,
				noExecute)
		}, taints: []corev1.Taint{noExecute}},
		"taint removed": {meanwhile: func(n *corev1.Node) { n.Spec.Taints = nil }},
		"taints replaced": {meanwhile: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{
				gpu,
			}
		}, taints: []corev1.Taint{gpu}},
		"annotation removed": {meanwhile: func(n *corev1.Node) { n.Annotations = nil }},
		"taken over": {meanwhile: func(n *corev1.Node) {
			n.Spec.Taints[0] = taintOfFault(
				"b")
		}, taints: []corev1.Taint{taintOfFault("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.AddNode("node-1", nil)
			tainted(w, "a")
			change(w, tc.meanwhile)
			for range 2 {
				faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1")))
			}
			if got := w.ReadNode("node-1"); got.Spec.Unschedulable != tc.cordoned || !slices.Equal(got.Spec.Taints, tc.taints) ||
				len(got.Annotations) > 0 {
				t.Errorf("unschedulable %v, want %v; taints %v, want %v; annotations %v", got.Spec.Unschedulable, tc.cordoned,
					got.Spec.Taints, tc.taints, got.Annotations)
			}
		})
	}
}

// A taint that somebody removes before the pod is gone is set again; a cordon of somebody else does not stand in for
// it, as it may end at any time.
func TestTaintIsSetAgain(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	for range 2 {
		faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), w.Of("a"), "node-1")), "node node-1 is tainted")
		change(w, func(n *corev1.Node) { n.Spec.Taints = nil })
	}
	faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1")))
	if got := w.ReadNode("node-1"); !got.Spec.Unschedulable || len(got.Annotations) > 0 {
		t.Errorf("unschedulable %v, annotations %v", got.Spec.Unschedulable, got.Annotations)
	}
}

// A change between the read and the write is not lost: the write is refused, and the next attempt begins with what
// there is.
func TestChangesBetweenReadAndWriteStay(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.AddNode("node-1", nil)
	between := func(edit func(*corev1.Node)) {
		w.Hooks.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			options ...client.GetOption,
		) error {
			w.Hooks.Get = nil
			err := c.Get(ctx, key, into, options...)
			change(w, edit)
			return err
		}
	}
	between(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu} })
	faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), w.Of("a"), "node-1")), "changed meanwhile")
	tainted(w, "a")
	between(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	if progress, err := Untaint(t.Context(), w.Of("a"), "node-1"); err != nil || progress.Complete() ||
		!strings.Contains(progress.Message, "changed meanwhile") {
		t.Errorf("%+v, %v", progress, err)
	}
	faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "node-1")))
	if got := w.ReadNode("node-1"); !got.Spec.Unschedulable || !slices.Equal(got.Spec.Taints, []corev1.Taint{gpu}) ||
		len(got.Annotations) > 0 {
		t.Errorf("unschedulable %v, taints %v, annotations %v", got.Spec.Unschedulable, got.Spec.Taints, got.Annotations)
	}
}

// Nodes whose faults are gone are found and released; what other faults and people have set is not touched.
func TestSweep(t *testing.T) {
	w := faulttest.NewWorld(t)
	held := func(name string, marks []string, taints ...corev1.Taint) {
		w.AddNode(name, func(n *corev1.Node) {
			n.Annotations, n.Spec.Taints = map[string]string{}, taints
			for _, fault := range marks {
				n.Annotations[v1alpha1.AnnotationTaintPrefix+"uid-"+fault] = "shop/" + fault
			}
		})
	}
	exists(w, "live")
	held("held", []string{"live"}, taintOfFault("live"))
	held("orphan", []string{"gone"}, gpu, taintOfFault("gone"))
	held("annotated", []string{"gone"})
	held("both", []string{"gone", "live"}, taintOfFault("live"))
	held("free", nil)
	w.AddNode("cordoned", func(n *corev1.Node) { n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{gpu} })
	change := w.ReadNode("orphan")
	change.Spec.Unschedulable = true // by a person
	faulttest.Must(t, w.Cluster.Update(t.Context(), change))

	swept, err := Sweep(t.Context(), w.Cluster, w.Cluster, nil)
	var names []string
	for _, one := range swept {
		names = append(names, one.Node)
		if len(one.Faults) != 1 || one.Faults[0] != "shop/gone" {
			t.Errorf("%s: faults %v", one.Node, one.Faults)
		}
	}
	slices.Sort(names)
	if err != nil || strings.Join(names, " ") != "annotated both orphan" {
		t.Errorf("swept %v, %v", names, err)
	}
	live := map[string]string{"tainted-by.redquake.dev/uid-live": "shop/live"}
	for name, want := range map[string]struct {
		taints   []corev1.Taint
		marks    map[string]string
		cordoned bool
	}{
		"held":      {[]corev1.Taint{taintOfFault("live")}, live, false},
		"both":      {[]corev1.Taint{taintOfFault("live")}, live, false},
		"orphan":    {[]corev1.Taint{gpu}, nil, true},
		"annotated": {},
		"free":      {},
		"cordoned":  {[]corev1.Taint{gpu}, nil, true},
	} {
		if got := w.ReadNode(name); !slices.Equal(got.Spec.Taints, want.taints) ||
			fmt.Sprint(got.Annotations) != fmt.Sprint(want.marks) || got.Spec.Unschedulable != want.cordoned {
			t.Errorf("%s: taints %v, annotations %v, unschedulable %v; want %+v", name, got.Spec.Taints, got.Annotations,
				got.Spec.Unschedulable, want)
		}
	}
	if left, err := Orphans(t.Context(), w.Cluster); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestUntaintOfNoNode(t *testing.T) {
	w := faulttest.NewWorld(t)
	faulttest.Must(t, faulttest.Called(Untaint(t.Context(), w.Of("a"), "gone")))
	if _, err := Taint(t.Context(), w.Of("a"), "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("taint of no node: %v", err)
	}
}

// The replacement of a pod that tolerates the taint could come to the node again.
func TestTolerantPodsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		toleration corev1.Toleration
		tolerates  bool
	}{
		"everything": {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"every NoSchedule": {
			corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			true,
		},
		"the key": {corev1.Toleration{Key: "redquake.dev/fault", Operator: corev1.TolerationOpExists}, true},
		"every NoExecute": {
			corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			false,
		},
		"another key":   {corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}, false},
		"another fault": {corev1.Toleration{Key: "redquake.dev/fault", Value: "uid-b"}, false},
		"cordons": {
			corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "redis-0"},
				Spec: corev1.PodSpec{
					Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}, tc.toleration},
				},
			}
			err := RequireRepelled(w.Of("a"), pod)
			if !tc.tolerates {
				faulttest.Must(t, err)
				return
			}
			if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNotSupported || !problem.Lasting ||
				!strings.Contains(problem.Message, "pod redis-0 tolerates the taint redquake.dev/fault by spec.tolerations[1]") {
				t.Errorf("%+v", problem)
			}
		})
	}
}
