package redisfault_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/powertest"
)

// A power hook that refuses, fails or is away, and an operator that is: the fault does not begin, or the node is on
// again afterwards, and nobody has to know which.
func TestPowerHookInTheWay(t *testing.T) {
	t.Parallel()
	away := errors.New("the power hook fails: 503")
	for name, tc := range map[string]struct {
		before error // what the hook answers at first
		course func(w *operatortest.World, grid *powertest.Grid)
		reason string
		says   string
		asked  []string // without what repeats
	}{
		"it refuses": {
			before: &powerhook.Refused{Status: 403, Says: "not this node"}, reason: v1alpha1.ReasonNotSupported,
			says: "403 Forbidden: not this node", asked: []string{"Off"},
		},
		"it is away": {
			before: away, reason: v1alpha1.ReasonInjectionFailed, says: "503", asked: []string{"Off", "On"},
			course: func(_ *operatortest.World, grid *powertest.Grid) {
				time.Sleep(2 * time.Minute)
				grid.Refuse(nil)
			},
		},
		"it is away for some seconds": {
			before: away, asked: []string{"Off", "On"},
			course: func(_ *operatortest.World, grid *powertest.Grid) {
				time.Sleep(20 * time.Second)
				grid.Refuse(nil)
			},
		},
		"it is away at the revert": {
			asked: []string{"Off", "On"},
			course: func(w *operatortest.World, grid *powertest.Grid) {
				w.FaultHasReason("power", time.Minute, v1alpha1.ReasonActive)
				grid.Refuse(away)
				time.Sleep(5 * time.Minute)
				grid.Refuse(nil)
			},
		},
		"the operator is replaced": {
			asked: []string{"Off", "On"},
			course: func(w *operatortest.World, _ *powertest.Grid) {
				w.FaultHasReason("power", time.Minute, v1alpha1.ReasonActive)
				w.Operator.End()
				time.Sleep(time.Minute)
				operatortest.StartOperator(w.Place, operatortest.Spy{})
			},
		},
		"the fault is deleted": {
			asked: []string{"Off", "On"},
			course: func(w *operatortest.World, _ *powertest.Grid) {
				w.FaultHasReason("power", time.Minute, v1alpha1.ReasonActive)
				w.MustChange(w.Client.Delete(context.Background(), w.Fault("power")))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				grid := &powertest.Grid{Client: w.Client}
				grid.Refuse(tc.before)
				w.Power = grid
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: operatortest.RedisNode}}
				w.MustChange(w.Client.Create(t.Context(), node))
				w.MustChange(powertest.SetReady(t.Context(), w.Client, node.Name, true))
				w.Redis = w.StartRedis("")
				w.Kubelet.Node = "node-2"
				w.Kubelet.Start()
				w.Operator = operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.CreateLoad(operatortest.LongRun)
				w.Create(operatortest.NewFault("power", "run", v1alpha1.FaultNodeLoss, func(f *v1alpha1.RedisFault) {
					f.Spec.Action.NodeLoss = &v1alpha1.NodeLoss{Node: node.Name, Method: v1alpha1.LossPower}
					f.Spec.Duration, f.Spec.RecoveryDeadline = operatortest.Length(10*time.Second), *operatortest.Length(time.Second)
				}))
				ends := make(chan struct{})
				defer close(ends)
				go func() { // the kubelets
					for beats := time.NewTicker(10 * time.Second); ; {
						select {
						case <-ends:
							return
						case <-beats.C:
							_ = grid.Beat(context.Background())
						}
					}
				}()
				if tc.course != nil {
					tc.course(w, grid)
				}
				var last *v1alpha1.RedisFault
				w.Until("the fault is over, or gone", 10*time.Minute, func() bool {
					f := &v1alpha1.RedisFault{}
					err := w.Client.Get(context.Background(), client.ObjectKey{Namespace: w.Namespace, Name: "power"}, f)
					if err == nil {
						last = f
					}
					return client.IgnoreNotFound(err) == nil && (err != nil || f.Status.CompletionTime != nil)
				}, func() string { return operatortest.Where(last.Status.Conditions) })
				if where := operatortest.Where(last.Status.Conditions); tc.reason != "" &&
					(operatortest.Reason(last.Status.Conditions) != tc.reason || !strings.Contains(where, tc.says)) {
					t.Errorf("it ended as %s", where)
				}
				var asked []string
				for _, one := range grid.Asked() {
					asked = append(asked, string(one.Power))
				}
				if name == "it refuses" && len(asked) != 1 {
					t.Errorf("it was asked %d times", len(asked))
				}
				if got := slices.Compact(asked); !slices.Equal(got, tc.asked) {
					t.Errorf("asked for %v, want %v", got, tc.asked)
				}
				w.MustChange(w.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node))
				if len(node.Annotations) > 0 || node.Status.Conditions[0].Status != corev1.ConditionTrue {
					t.Errorf("node: annotations %v, conditions %v", node.Annotations, node.Status.Conditions)
				}
			})
		})
	}
}
