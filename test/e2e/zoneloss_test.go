//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestZoneLoss makes a zone of each node, and loses the one with Redis: its pod comes up in the other one. The plan has
// said that the zone has every copy, and another one that the other zone is the only place left.
func TestZoneLoss(t *testing.T) {
	n := newNamespace(t, "zoneloss")
	n.applyRedis(nil)
	before := n.redisPod()
	n.create(n.steadyLoad("base", standaloneTarget(), 15*time.Minute))
	n.waitLoadTest("base", patience, v1alpha1.ReasonRunning)
	n.flows("redis")
	bothNodes.Lock()
	defer bothNodes.Unlock()
	n.nodesAreZones()
	lost := func(s *v1alpha1.RedisFaultSpec) {
		s.Action.ZoneLoss, s.Duration = &v1alpha1.ZoneLoss{Zone: "zone-" + before.Spec.NodeName}, span(10*time.Second)
		s.Select, s.RecoveryDeadline = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}, *span(time.Minute)
	}
	plan := faultOn("base", "plan", v1alpha1.FaultZoneLoss, lost)
	plan.Spec.DryRun = true
	n.create(plan)
	said := n.waitFault(plan.Name, patience, v1alpha1.ReasonDryRun).Status.Warnings
	want := fmt.Sprintf("zone zone-%s has every copy of the data of redis-0", before.Spec.NodeName)
	if !slices.ContainsFunc(said, func(w string) bool { return strings.HasPrefix(w, want) }) {
		t.Errorf("the plan warns of %q, want %q", said, want)
	}
	done := n.breaks("zoneLoss", "redis", faultOn("base", "lose-zone", v1alpha1.FaultZoneLoss, lost),
		map[string]string{"outage": "1s"})
	if !strings.Contains(done.Status.EffectEvidence, "which is tainted") || !slices.Equal(done.Status.Nodes, []string{before.Spec.NodeName}) {
		t.Errorf("the nodes are %v, the evidence is %q", done.Status.Nodes, done.Status.EffectEvidence)
	}
	n.checkNothingLeft(done, before.Spec.NodeName)
	if after := n.podReady("redis-0", patience); after.Spec.NodeName == before.Spec.NodeName {
		t.Errorf("the replacement is on node %s again", after.Spec.NodeName)
	}
}

// nodesAreZones gives each node a zone of its own until the end of the test.
func (n *namespace) nodesAreZones() {
	n.Helper()
	var nodes corev1.NodeList
	n.list(&nodes)
	label := func(ctx context.Context, name, zone string) error {
		return cluster.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata": {"labels": {%q: %s}}}`, corev1.LabelTopologyZone, zone)))
	}
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		if err := label(n.Context(), name, `"zone-`+name+`"`); err != nil {
			n.Fatal(err)
		}
		n.Cleanup(func() {
			if err := label(context.Background(), name, "null"); err != nil {
				n.Error(err)
			}
		})
	}
}
