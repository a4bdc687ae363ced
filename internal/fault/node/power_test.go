package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/powertest"
)

func switchingOff(node string) *v1alpha1.RedisFaultSpec {
	spec := losing(node)
	spec.Action.NodeLoss.Method = v1alpha1.LossPower
	return spec
}

// powered is spread with a power hook.
func powered(t *testing.T) (*faulttest.World, *powertest.Grid) {
	w := spread(t)
	grid := &powertest.Grid{Client: w.Cluster}
	w.Operator = contract.Operator{Power: grid}
	return w, grid
}

// inForce are the requests, each with its power and its node.
func inForce(g *powertest.Grid) string {
	var all []string
	for _, asked := range g.Asked() {
		all = append(all, string(asked.Power)+" "+asked.Node)
	}
	return strings.Join(all, ", ")
}

func isMarked(w *faulttest.World, name string) bool {
	value, marked := w.ReadNode(name).Annotations["powered-off-by.redquake.dev/uid-lose"]
	return marked && value == "shop/lose"
}

// inject calls Inject until it is complete, with a new injector each time, as after a crash.
func inject(t *testing.T, w *faulttest.World, target *v1alpha1.FaultTarget) {
	t.Helper()
	for range 5 {
		injector, err := Kinds.For(switchingOff("node-1"), w.Of("lose"))
		faulttest.Must(t, err)
		progress, err := injector.Inject(t.Context(), target)
		faulttest.Must(t, err)
		target.InjectedAt = &metav1.MicroTime{Time: time.Now()}
		if progress.Complete() {
			return
		}
	}
	t.Fatal("the injection is not complete")
}

// undergoing fails the test unless a revert is under way.
func undergoing(t *testing.T, err error) {
	t.Helper()
	if p, is := errors.AsType[*faulttest.Pending](err); !is || p.Stage != contract.StageUnderway {
		t.Fatalf("%v, want a revert that is under way", err)
	}
}

func TestPowerLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, grid := powered(t)
		injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
		if len(targets) != 2 {
			t.Fatalf("targets %+v, want the two on node-1", targets)
		}
		if inForce(grid) != "" || isMarked(w, "node-1") {
			t.Fatal("the preflight has changed something")
		}
		inject(t, w, &targets[0])
		if !isMarked(w, "node-1") || len(w.Deleted) > 0 {
			t.Errorf("marked %t, deleted %v", isMarked(w, "node-1"), w.Deleted)
		}
		first := grid.Asked()[0]
		want := powerhook.Request{
			Node:     "node-1",
			Power:    powerhook.Off,
			Fault:    powerhook.Fault{Namespace: "shop", Name: "lose", UID: "uid-lose"},
			Deadline: powerhook.Deadline(time.Now().Add(offWithin + v1alpha1.DefaultFaultDuration + hookWaits)),
		}
		if first != want {
			t.Errorf("asked for %+v, want %+v", first, want)
		}
		if begun, err := injector.Begun(t.Context(), &targets[1]); !begun || err != nil {
			t.Errorf("the other server of the node: begun %t, %v", begun, err)
		}
		inject(t, w, &targets[1])
		for i := range targets {
			if effect, why := injector.Effect(t.Context(), &targets[i]); effect != v1alpha1.EffectConfirmed ||
				!strings.Contains(why, "NodeStatusUnknown") {
				t.Errorf("%s: %s", effect, why)
			}
		}
		follower := injector.(contract.Follower)
		if seen := follower.Follow(t.Context(), &targets[0]); len(seen) != 1 || seen[0].Event != contract.EventNodeNotReady {
			t.Errorf("seen %+v", seen)
		}
		for i := range targets {
			undergoing(t, faulttest.Called(injector.Revert(t.Context(), &targets[i])))
		}
		if seen := follower.Follow(t.Context(), &targets[0]); len(seen) != 1 || seen[0].Event != contract.EventNodeReady {
			t.Errorf("seen %+v", seen)
		}
		// a node whose machine has just stopped counts as ready as well: only its kubelet's lease shows more
		undergoing(t, faulttest.Called(injector.Revert(t.Context(), &targets[0])))
		if !isMarked(w, "node-1") {
			t.Error("the mark is gone before the node is back")
		}
		faulttest.Must(t, grid.Beat(t.Context()))
		for i := range targets {
			faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), &targets[i])))
		}
		if isMarked(w, "node-1") || inForce(grid) != "Off node-1, Off node-1, On node-1, On node-1" {
			t.Errorf("marked %t; %s", isMarked(w, "node-1"), inForce(grid))
		}
		if effect, why := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectNotObserved {
			t.Errorf("with power: %s: %s", effect, why)
		}
	})
}

// Once the cluster has seen the node off, that it is ready is enough; and who removes the mark has done the rest.
func TestPowerIsBack(t *testing.T) {
	for name, byHand := range map[string]bool{"ready": false, "by hand": true} {
		w, grid := powered(t)
		injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
		inject(t, w, &targets[0])
		targets[0].ActiveAt = targets[0].InjectedAt
		want := "Off node-1, On node-1"
		if byHand {
			node := w.ReadNode("node-1")
			node.Annotations = nil
			faulttest.Must(t, w.Cluster.Update(t.Context(), node))
			want = "Off node-1"
		}
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), &targets[0])))
		if got := inForce(grid); got != want || isMarked(w, "node-1") {
			t.Errorf("%s: %s, marked %t", name, got, isMarked(w, "node-1"))
		}
	}
}

// A node that does not come back is switched on again and again, but not with each call.
func TestPowerIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, grid := powered(t)
		injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
		inject(t, w, &targets[0])
		for range 4 * 65 {
			undergoing(t, faulttest.Called(injector.Revert(t.Context(), &targets[0])))
			faulttest.Must(t, powertest.SetReady(t.Context(), w.Cluster, "node-1", false))
			time.Sleep(250 * time.Millisecond)
		}
		if got := inForce(grid); got != "Off node-1, On node-1, On node-1, On node-1" {
			t.Errorf("within 65 s: %s", got)
		}
	})
}

// What the hook says decides what the operator takes for granted.
func TestPowerHookFails(t *testing.T) {
	refused := &powerhook.Refused{Status: 403, Says: "not this node"}
	for name, tc := range map[string]struct {
		fails, then error // of the first request, and of the second
		marked      bool  // afterwards: the node may be off
		asked       string
	}{
		"refused":                {fails: refused, asked: "Off node-1"},
		"not reached":            {fails: powerhook.ErrUnsent, then: powerhook.ErrUnsent, asked: "Off node-1, Off node-1"},
		"no answer":              {fails: errors.New("no answer"), then: errors.New("no answer"), marked: true, asked: "Off node-1, Off node-1"},
		"no answer, then a no":   {fails: errors.New("no answer"), then: refused, marked: true, asked: "Off node-1, Off node-1"},
		"not reached, then a no": {fails: powerhook.ErrUnsent, then: refused, asked: "Off node-1, Off node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, grid := powered(t)
			injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
			target := &targets[0]
			for _, fails := range []error{tc.fails, tc.then} {
				grid.Refuse(fails)
				if _, err := injector.Inject(t.Context(), target); err == nil {
					t.Error("no error")
				} else if target.Attempts++; fails != nil && !strings.Contains(err.Error(), fails.Error()) {
					t.Errorf("%v, want %v", err, fails)
				}
			}
			if isMarked(w, "node-1") != tc.marked || inForce(grid) != tc.asked {
				t.Errorf("marked %t, want %t; asked %s, want %s", isMarked(w, "node-1"), tc.marked, inForce(grid), tc.asked)
			}
			grid.Refuse(errors.New("away"))
			err := faulttest.Called(injector.Revert(t.Context(), target))
			if (err != nil) != tc.marked {
				t.Errorf("the revert without the hook: %v", err)
			}
			grid.Refuse(nil)
			_ = faulttest.Called(injector.Revert(t.Context(), target))
			faulttest.Must(t, grid.Beat(t.Context()))
			faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
			if isMarked(w, "node-1") {
				t.Error("it is still marked")
			}
		})
	}
}

// A cloud may remove a node whose machine is off, and the machine as well.
func TestPowerOfANodeThatIsGone(t *testing.T) {
	for _, back := range []bool{true, false} {
		w, grid := powered(t)
		injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
		target := &targets[0]
		inject(t, w, target)
		w.Hooks.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return c.Delete(ctx, o, options...)
		}
		faulttest.Must(t, w.Cluster.Delete(t.Context(), w.ReadNode("node-1")))
		if effect, why := injector.Effect(t.Context(), target); effect != v1alpha1.EffectConfirmed {
			t.Errorf("%s: %s", effect, why)
		}
		grid.Refuse(&powerhook.Refused{Status: 410})
		if back {
			grid.Refuse(nil)
			undergoing(t, faulttest.Called(injector.Revert(t.Context(), target)))
			w.AddNode("node-1", nil) // by its kubelet
		}
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), target)))
		if got := inForce(grid); got != "Off node-1, On node-1" {
			t.Errorf("back %t: %s", back, got)
		}
	}
}

// A node that measures or reverts the fault, or operates the cluster, keeps its power, also if it got there meanwhile.
func TestPowerStaysOn(t *testing.T) {
	for says, tc := range map[string]struct {
		passes bool // by itself: the fault waits for it
		change func(w *faulttest.World)
	}{
		"label node-role.kubernetes.io/control-plane": {false, func(w *faulttest.World) {
			node := w.ReadNode("node-1")
			node.Labels["node-role.kubernetes.io/control-plane"] = ""
			faulttest.Must(w.T, w.Cluster.Update(w.T.Context(), node))
		}},
		"the operator runs on node node-1": {false, func(w *faulttest.World) { w.Bystander("manager", "10.0.0.40") }},
		"pod run-0 of RedisLoadTest shop/checkout is on node node-1": {false, func(w *faulttest.World) {
			w.Pod("run-0", "u-run", "10.0.0.41", "", func(p *corev1.Pod) {
				p.Labels = map[string]string{v1alpha1.LabelLoadTest: "checkout"}
			})
		}},
		"pod run-0 of RedisLoadTest shop/checkout is on node node-1, and being deleted: waiting": {true, func(w *faulttest.World) {
			pod := w.Pod("run-0", "u-run", "10.0.0.41", "", func(p *corev1.Pod) {
				p.Labels = map[string]string{v1alpha1.LabelLoadTest: "checkout"}
				p.Finalizers = []string{"example.com/kept"}
			})
			faulttest.Must(w.T, w.Cluster.Delete(w.T.Context(), pod))
		}},
		"node node-1 is not ready": {true, func(w *faulttest.World) {
			faulttest.Must(w.T, powertest.SetReady(w.T.Context(), w.Cluster, "node-1", false))
		}},
		"RedisFault bank/other has switched node node-1 off": {true, func(w *faulttest.World) {
			node := w.ReadNode("node-1")
			node.Annotations = map[string]string{v1alpha1.AnnotationPowerPrefix + "uid-other": "bank/other"}
			faulttest.Must(w.T, w.Cluster.Update(w.T.Context(), node))
		}},
	} {
		w, grid := powered(t)
		injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
		tc.change(w)
		if strings.HasPrefix(says, "the operator") {
			w.Operator.OwnPod = types.NamespacedName{Namespace: faulttest.Namespace, Name: "manager"}
			var err error
			injector, err = Kinds.For(switchingOff("node-1"), w.Of("lose"))
			faulttest.Must(t, err)
		}
		err := injector.Preflight(t.Context(), targets[0].DeepCopy())
		if problem := faulttest.ProblemOf(t, err); !strings.Contains(problem.Message, says) ||
			!strings.HasPrefix(problem.Message, "spec.action.nodeLoss.node: ") {
			t.Errorf("preflight: %+v, want %q", problem, says)
		} else if waits := problem.Reason == v1alpha1.ReasonInjectionFailed; waits != tc.passes {
			t.Errorf("%q: reason %s", says, problem.Reason)
		}
		if _, err := injector.Inject(t.Context(), &targets[0]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("inject: %v, want %q", err, says)
		}
		if inForce(grid) != "" || isMarked(w, "node-1") {
			t.Errorf("%s: asked %s, marked %t", says, inForce(grid), isMarked(w, "node-1"))
		}
	}
	w := spread(t)
	injector, err := Kinds.For(switchingOff("node-1"), w.Of("lose"))
	faulttest.Must(t, err)
	problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", Node: "node-1"}))
	if !strings.HasPrefix(problem.Message, "spec.action.nodeLoss.method: ") {
		t.Errorf("without a hook: %+v", problem)
	}
}

// All servers of the target on the node are to be selected, and no namespace on it may be protected.
func TestPowerOfOthers(t *testing.T) {
	w, grid := powered(t)
	spec, deps := switchingOff("node-1"), w.Of("lose")
	spec.Select = v1alpha1.FaultSelector{}
	injector, err := Kinds.For(spec, deps)
	faulttest.Must(t, err)
	of := faulttest.On(deps, faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	_, err = guard.Choose(t.Context(), of, spec, injector.Traits())
	if problem := faulttest.ProblemOf(t, err); !strings.Contains(problem.Message, "redis-1 would lose power as well") {
		t.Errorf("one of two servers: %+v", problem)
	}
	spec.Select.Mode, spec.Allow = v1alpha1.SelectAll, nil
	_, err = guard.Choose(t.Context(), of, spec, injector.Traits())
	faulttest.Must(t, err) // redis-2 is elsewhere
	_, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
	bank := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        "bank",
		Annotations: map[string]string{v1alpha1.AnnotationProtected: "true"},
	}}
	faulttest.Must(t, w.Cluster.Create(t.Context(), bank))
	teller := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "teller"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	faulttest.Must(t, w.Cluster.Create(t.Context(), teller))
	if problem := faulttest.ProblemOf(t, injector.Preflight(t.Context(), &targets[0])); problem.Reason != v1alpha1.ReasonProtected ||
		!strings.Contains(problem.Message, "namespace bank") {
		t.Errorf("a protected namespace on the node: %+v", problem)
	}
	if inForce(grid) != "" {
		t.Errorf("asked for %s", inForce(grid))
	}
}

// The plan says what else is on the node.
func TestPowerAdvice(t *testing.T) {
	w, _ := powered(t)
	w.Bystander("queue", "10.0.0.40")
	w.Bystander("ended", "10.0.0.41")
	w.Update(w.PodNamed("ended"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	elsewhere := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "teller"},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
	}
	faulttest.Must(t, w.Cluster.Create(t.Context(), elsewhere))
	injector, targets := w.Aimed(Kinds, guard.Choose, switchingOff("node-1"))
	got := injector.(contract.Adviser).Advise(t.Context(), targets)
	want := []string{
		"the operator does not know its own pod: it must not run on node node-1",
		"node node-1 has more than the targets, which loses its power as well: queue",
		"node node-1 has pods of other namespaces, which lose their power as well: 1 pod of bank",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A node that a fault has switched off which does not exist any more is switched on, and only then released.
func TestSweepSwitchesOn(t *testing.T) {
	w, grid := powered(t)
	node := w.ReadNode("node-1")
	node.Annotations = map[string]string{v1alpha1.AnnotationPowerPrefix + "uid-lose": "shop/lose"}
	faulttest.Must(t, w.Cluster.Update(t.Context(), node))
	for _, without := range []contract.PowerHook{nil, grid} {
		grid.Refuse(errors.New("away"))
		if left, err := Sweep(t.Context(), w.Cluster, w.Cluster, without); err == nil || len(left) > 0 ||
			!isMarked(w, "node-1") {
			t.Errorf("released %v, %v", left, err)
		}
	}
	grid.Refuse(nil)
	swept, err := Sweep(t.Context(), w.Cluster, w.Cluster, grid)
	if err != nil || len(swept) != 1 || isMarked(w, "node-1") {
		t.Errorf("released %v, %v", swept, err)
	}
	asked := grid.Asked()[len(grid.Asked())-1]
	if asked.Power != powerhook.On || asked.Fault.UID != "uid-lose" || asked.Fault.Name != "lose" {
		t.Errorf("asked for %+v", asked)
	}
}
