package drain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// pair is a primary and its replica on node-1, and an empty node-2.
func pair(t *testing.T, budgets ...client.Object) *faulttest.World {
	t.Helper()
	w := faulttest.NewWorld(t, budgets...)
	w.AddNode("node-1", nil)
	w.AddNode("node-2", nil)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, nil)
	return w
}

func draining(d *v1alpha1.Drain) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultDrain, Drain: d},
		Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
	}
}

// budgetOver is a PodDisruptionBudget over the pods with labels, that lets some go.
func budgetOver(name string, labels map[string]string, allows int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allows},
	}
}

// refuses has evictions be refused as the API server does for a budget.
func refuses(w *faulttest.World, why string) {
	w.Hooks.SubResourceCreate = func(context.Context, client.Client, string, client.Object, client.Object,
		...client.SubResourceCreateOption,
	) error {
		if why == "" {
			return nil
		}
		refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: why}}
		return refused
	}
}

func TestDrainOfTargets(t *testing.T) {
	w := pair(t)
	injector, targets := w.Aimed(Kinds, guard.Choose, draining(nil))
	if traits := injector.Traits(); traits.Lasts != 0 || traits.Taints || !traits.Together || !traits.NewPod {
		t.Errorf("traits %+v", traits)
	}
	for i := range targets {
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &targets[i])))
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &targets[i]))) // nothing more is evicted
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), &targets[i])))
	}
	if got := strings.Join(w.Deleted, " "); got != "u0 u1" {
		t.Errorf("evicted %s", got)
	}
	if effect, why := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectConfirmed {
		t.Errorf("%s: %s", effect, why)
	}
	w.Tainted("node-1", "")
	if said := injector.ManualRevertCommand(&targets[0]); said != "" {
		t.Errorf("nothing is to be reverted, and it says %q", said)
	}
}

func TestDrainOfANode(t *testing.T) {
	w := pair(t)
	w.Pod("redis-2", "u2", "10.0.0.3", topology.Replica, func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	injector, targets := w.Aimed(Kinds, guard.Choose, draining(&v1alpha1.Drain{Node: "node-1"}))
	if len(targets) != 2 || injector.Traits().Lasts != v1alpha1.DefaultFaultDuration {
		t.Fatalf("targets %+v, traits %+v", targets, injector.Traits())
	}
	preparer := injector.(contract.Preparer)
	faulttest.MustPrepare(t, faulttest.Called(preparer.Prepare(t.Context(), &targets[0])), "node-1")
	w.Tainted("node-1", "lose")
	for i := range targets {
		faulttest.Must(t, faulttest.Called(preparer.Prepare(t.Context(), &targets[i])))
		targets[i].InjectedAt = &metav1.MicroTime{Time: time.Now()}
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &targets[i])))
	}
	w.Pod("redis-0", "u0-new", "10.0.0.9", "", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" })
	w.Pod("redis-1", "u1-new", "10.0.0.8", "", nil)
	for i, want := range []struct {
		effect v1alpha1.Effect
		says   string
	}{{v1alpha1.EffectConfirmed, "on node node-2"}, {v1alpha1.EffectNotObserved, "node-1 again"}} {
		effect, why := injector.Effect(t.Context(), &targets[i])
		if effect != want.effect || !strings.Contains(why, want.says) {
			t.Errorf("%s: %s: %s", targets[i].Pod, effect, why)
		}
	}
	faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), &targets[0])))
	w.Tainted("node-1", "")
	_, err := guard.Choose(t.Context(), faulttest.On(w.Of("lose"), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		draining(&v1alpha1.Drain{Node: "node-9"}), contract.Traits{Place: contract.Place{Node: "node-9"}})
	if p := faulttest.ProblemOf(t, err); !strings.HasPrefix(p.Message, "spec.action.drain.node: no server") {
		t.Errorf("%+v", p)
	}
}

// A budget that refuses is waited for, with its reason, and the evidence says for how long; an eviction that it never
// allows ends as an error. Other errors are errors at once.
func TestRefusedEvictions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pair(t)
		injector, targets := w.Aimed(Kinds, guard.Choose,
			draining(&v1alpha1.Drain{Timeout: metav1.Duration{Duration: time.Minute}}))
		const why = "The disruption budget redis needs 1 healthy pods and has 1 currently"
		refuses(w, why)
		for range 3 {
			faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])), why)
			time.Sleep(2 * time.Second)
		}
		if effect, said := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectNotObserved ||
			!strings.Contains(said, "its eviction is refused: "+why) {
			t.Errorf("%s: %s", effect, said)
		}
		refuses(w, "")
		targets[0].InjectedAt = &metav1.MicroTime{Time: time.Now()}
		faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])))
		if effect, said := injector.Effect(t.Context(), &targets[0]); effect != v1alpha1.EffectConfirmed ||
			!strings.Contains(said, "its eviction was refused for 6s: "+why) {
			t.Errorf("%s: %s", effect, said)
		}

		refuses(w, why)
		faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[1])), why)
		time.Sleep(61 * time.Second)
		err := faulttest.Called(injector.Inject(t.Context(), &targets[1]))
		if err == nil || !strings.Contains(err.Error(), "was refused for 1m0s (spec.action.drain.timeout): "+why) {
			t.Errorf("after its timeout: %v", err)
		}
		w.Hooks.SubResourceCreate = func(context.Context, client.Client, string, client.Object, client.Object,
			...client.SubResourceCreateOption,
		) error {
			return apierrors.NewTooManyRequests("too many requests", 1) // of priority and fairness: nobody refused
		}
		if err := faulttest.Called(injector.Inject(t.Context(), &targets[1])); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a server that is busy: %v", err)
		}
		if got := strings.Join(w.Deleted, " "); got != "u0" {
			t.Errorf("evicted %s", got)
		}
	})
}

func TestDrainPreflight(t *testing.T) {
	app := map[string]string{"app": "redis"}
	for name, tc := range map[string]struct {
		budgets []client.Object
		change  func(*corev1.Pod)
		says    string
	}{
		"no controller": {
			change: func(p *corev1.Pod) { p.OwnerReferences = nil },
			says:   "no controller",
		},
		"two budgets": {
			budgets: []client.Object{budgetOver("mine", app, 1), budgetOver("yours", app, 1)},
			says:    "pod a has more than one PodDisruptionBudget, which the eviction API does not support: mine, yours",
		},
		"it tolerates the taint": {
			change: func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			},
			says: "tolerates the taint",
		},
		"another node": {
			change: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
			says:   "spec.action.drain.node: pod a is on node node-2, not on node-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t, tc.budgets...)
			w.AddNode("node-1", nil)
			pod := w.Pod("a", "u0", "10.0.0.1", topology.Primary, tc.change)
			injector, err := Kinds.For(draining(&v1alpha1.Drain{Node: "node-1"}), w.Of("lose"))
			faulttest.Must(t, err)
			err = injector.Preflight(t.Context(), &v1alpha1.FaultTarget{Pod: "a", UID: "u0", Node: pod.Spec.NodeName})
			if p := faulttest.ProblemOf(t, err); !p.Lasting || !strings.Contains(p.Message, tc.says) {
				t.Errorf("%+v, want %q", p, tc.says)
			}
		})
	}
}

// A budget that changes or vanishes while an eviction is asked for is no pod that is gone: it is asked for again.
func TestBudgetsThatChangeMeanwhile(t *testing.T) {
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	for name, answer := range map[string]error{
		"changed": apierrors.NewConflict(budgets, "redis", errors.New("it was modified")),
		"deleted": apierrors.NewNotFound(budgets, "redis"),
	} {
		t.Run(name, func(t *testing.T) {
			w := pair(t)
			injector, targets := w.Aimed(Kinds, guard.Choose, draining(nil))
			w.Hooks.SubResourceCreate = func(context.Context, client.Client, string, client.Object, client.Object,
				...client.SubResourceCreateOption,
			) error {
				return answer
			}
			faulttest.MustPrepare(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])),
				"a PodDisruptionBudget has changed meanwhile")
			refuses(w, "")
			faulttest.Must(t, faulttest.Called(injector.Inject(t.Context(), &targets[0])))
			if got := strings.Join(w.Deleted, " "); got != "u0" {
				t.Errorf("evicted %q", got)
			}
		})
	}
}
