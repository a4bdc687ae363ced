package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func losingZone(zone string) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultZoneLoss, ZoneLoss: &v1alpha1.ZoneLoss{Zone: zone}},
		Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll},
		Allow:  []v1alpha1.Allowance{v1alpha1.AllowAllCopies},
	}
}

// zones are nodes 1 and 2 in zone a, node-3 in zone b; a primary on node-1 and its replica on node-3.
func zones(t *testing.T) *faulttest.World {
	t.Helper()
	w := faulttest.NewWorld(t)
	for node, zone := range map[string]string{"node-1": "a", "node-2": "a", "node-3": "b"} {
		w.AddNode(node, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone })
	}
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	w.Pod("redis-1", "u1", "10.0.0.2", topology.Replica, func(p *corev1.Pod) { p.Spec.NodeName = "node-3" })
	return w
}

// All nodes of the zone are tainted before a pod is deleted, also those without one, and all are untainted, wherever
// they belong then.
func TestZoneLoss(t *testing.T) {
	w := zones(t)
	injector, targets := w.Aimed(Kinds, guard.Choose, losingZone("a"))
	if len(targets) != 1 || targets[0].Pod != "redis-0" || !injector.Traits().Taints || injector.Traits().Zone != "a" {
		t.Fatalf("targets %+v, traits %+v", targets, injector.Traits())
	}
	hit := &targets[0]
	inject := func() error { return faulttest.Called(injector.Inject(t.Context(), hit)) }
	faulttest.MustPrepare(t, inject(), "is tainted from now on")
	w.Tainted("node-1", "lose")
	w.Tainted("node-2", "lose")
	w.Tainted("node-3", "")
	if len(w.Deleted) > 0 {
		t.Fatal("a pod was deleted before the scheduler could observe that the nodes are tainted")
	}
	hit.InjectedAt = &metav1.MicroTime{Time: time.Now()}
	for range 2 {
		faulttest.Must(t, inject())
	}
	if got := strings.Join(w.Deleted, " "); got != "u0" {
		t.Errorf("deleted %s", got)
	}
	for uid, want := range map[string]struct {
		node   string
		effect v1alpha1.Effect
		says   string
	}{
		"elsewhere": {"node-3", v1alpha1.EffectConfirmed, "on node node-3"},
		"again":     {"node-2", v1alpha1.EffectNotObserved, "was scheduled to node node-2 of zone a"},
	} {
		pod := w.Pod("redis-0", uid, "10.0.0.9", "", func(p *corev1.Pod) { p.Spec.NodeName = want.node })
		if effect, why := injector.Effect(t.Context(), hit); effect != want.effect || !strings.Contains(why, want.says) {
			t.Errorf("%s: %s: %s", uid, effect, why)
		}
		faulttest.Must(t, w.Cluster.Delete(t.Context(), pod))
	}
	moved := w.ReadNode("node-2")
	moved.Labels[corev1.LabelTopologyZone] = "c"
	faulttest.Must(t, w.Cluster.Update(t.Context(), moved))
	for range 2 {
		faulttest.Must(t, faulttest.Called(injector.Revert(t.Context(), hit)))
	}
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		w.Tainted(name, "")
	}
}

func TestNoSuchZone(t *testing.T) {
	w := zones(t)
	redis := faulttest.On(w.Of("lose"), faulttest.ByPods(map[string]string{"app": "redis"})).Redis
	w.AddNode("node-4", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "d" })
	for zone, says := range map[string]string{
		"nowhere": "spec.action.zoneLoss.zone: no node has the label topology.kubernetes.io/zone=nowhere",
		"d":       "spec.action.zoneLoss.zone: no server that matches is in zone d: redis-0 is on node-1, redis-1 is on node-3",
	} {
		_, err := guard.Choose(t.Context(), redis, losingZone(zone), contract.Traits{Place: contract.Place{Zone: zone}})
		if p := faulttest.ProblemOf(t, err); p.Message != says {
			t.Errorf("%s: %+v", zone, p)
		}
	}
	selected, err := guard.Select(t.Context(), redis, losingZone("a"), contract.Traits{Place: contract.Place{Zone: "a"}}, nil, nil)
	if err != nil || strings.Join(selected.Nodes, " ") != "node-1 node-2" {
		t.Errorf("%v, %v", selected.Nodes, err)
	}
}

// The plan says which data have no copy elsewhere, and which pods have nowhere to go.
func TestAdviceOnAZone(t *testing.T) {
	w := zones(t)
	for name, tc := range map[string]struct {
		targets []v1alpha1.FaultTarget
		full    bool // nothing takes the replacement
		says    string
	}{
		"a copy elsewhere": {[]v1alpha1.FaultTarget{{Pod: "redis-0", Copies: []string{"redis-1"}}}, false, ""},
		"no copy elsewhere": {
			[]v1alpha1.FaultTarget{{Pod: "redis-0"}},
			false,
			"zone a has every copy of the data of redis-0: nobody serves them until one comes up elsewhere",
		},
		"nowhere to go": {
			[]v1alpha1.FaultTarget{{Pod: "redis-0", Copies: []string{"redis-1"}}},
			true,
			"pod redis-0 is away until the zone is back: the replacement of pod redis-0 can be scheduled to no node but " +
				"node-1, node-2: node-3 is unschedulable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := w.ReadNode("node-3")
			node.Spec.Unschedulable = tc.full
			faulttest.Must(t, w.Cluster.Update(t.Context(), node))
			injector, err := Kinds.For(losingZone("a"), w.Of("lose"))
			faulttest.Must(t, err)
			if got := strings.Join(injector.(contract.Adviser).Advise(t.Context(), tc.targets), "\n"); got != tc.says {
				t.Errorf("it says\n%s\nwant\n%s", got, tc.says)
			}
		})
	}
}
