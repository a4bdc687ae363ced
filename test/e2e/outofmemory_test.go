//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestOutOfMemory fills the memory of a real server in a container with a limit until the kernel ends it.
func TestOutOfMemory(t *testing.T) {
	n := newNamespace(t, "memory")
	n.applyRedis(nil)
	before, initial := n.redisPod(), n.currentState("redis")
	n.create(n.sampleLoad("checkout-cache", 0, 5*time.Second, 3*time.Minute))
	fault := &v1alpha1.RedisFault{}
	n.sample("outofmemory.yaml", fault)
	n.create(fault)
	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded)

	n.waitForState("redis", initial)
	after := n.redisPod().Status.ContainerStatuses[0]
	if last := after.LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" ||
		after.RestartCount != before.Status.ContainerStatuses[0].RestartCount+1 {
		t.Errorf("the container: %+v", after)
	}
	if done.Status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(done.Status.EffectEvidence, "OOMKilled") {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	i := done.Status.Impact
	if i == nil || !i.Recovered {
		t.Fatalf("impact %+v, want recovered", i)
	}
	n.impactFigures("outOfMemory", i, map[string]string{"probeOutage": "1ms"})
	n.checkTimeline(done, "Injected", "ContainerRestarted", "OOMKilled", "Ready", "FirstError", "FirstSuccess", "Recovered")
}
