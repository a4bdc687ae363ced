//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestNodeLoss takes the node of Redis away with the fault of config/samples/nodeloss.yaml: its pod comes up on the
// other one, and the node takes pods again afterwards.
func TestNodeLoss(t *testing.T) {
	n := newNamespace(t, "nodeloss")
	n.applyRedis(nil)
	before, initial := n.redisPod(), n.currentState("redis")
	n.create(n.smallLoad("checkout-cache", 15*time.Minute))
	fault := &v1alpha1.RedisFault{}
	n.sample("nodeloss.yaml", fault)
	fault.Spec.Action.NodeLoss.Node = before.Spec.NodeName
	fault.Spec.Trigger.SteadyFor, fault.Spec.Duration = span(5*time.Second), span(10*time.Second)
	fault.Spec.Trigger.Timeout, fault.Spec.RecoveryDeadline = *span(patience), *span(60 * time.Second)
	bothNodes.Lock()
	defer bothNodes.Unlock()
	n.create(fault)

	n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonActive)
	n.isTainted(before.Spec.NodeName, fault.Name)
	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	n.checkTimeline(done, "Injected", "PodDeleted", "ReplacementCreated", "Scheduled", "ContainerStarted", "Ready",
		"Reverted", "FirstError", "FirstSuccess")
	if done.Status.Effect != v1alpha1.EffectConfirmed ||
		!strings.Contains(done.Status.EffectEvidence, "which is tainted") {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	n.impactFigures("nodeLoss", done.Status.Impact, map[string]string{"outage": "1s"})
	n.checkNothingLeft(done, before.Spec.NodeName)
	n.waitForState("redis", initial)
	if after := n.podReady("redis-0", patience); after.Spec.NodeName == before.Spec.NodeName {
		t.Errorf("the replacement is on node %s again", after.Spec.NodeName)
	}
}
