//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestProcessCrash ends the server process with the fault of config/samples/processcrash.yaml, which creates its own
// probe load.
func TestProcessCrash(t *testing.T) {
	n := newNamespace(t, "crash")
	n.applyRedis(nil)
	before, initial := n.redisPod(), n.currentState("redis")
	fault := &v1alpha1.RedisFault{}
	n.sample("processcrash.yaml", fault)
	fault.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: span(10 * time.Second), Timeout: *span(time.Minute)}
	n.create(fault)
	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded)

	n.waitForState("redis", initial)
	after := n.redisPod()
	if after.UID != before.UID {
		t.Errorf("the pod was replaced: %s instead of %s", after.UID, before.UID)
	}
	if was, is := before.Status.ContainerStatuses[0].RestartCount,
		after.Status.ContainerStatuses[0].RestartCount; is != was+1 {
		t.Errorf("the container has restarted %d times, want %d", is, was+1)
	}
	if done.Status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(done.Status.EffectEvidence, "run_id") {
		t.Errorf("effect %s: %s; want Confirmed by run_id", done.Status.Effect, done.Status.EffectEvidence)
	}
	i := done.Status.Impact
	if i == nil || !i.Recovered || len(otherDoubts(i)) > 0 {
		t.Fatalf("impact %+v, want recovered without doubts", i)
	}
	n.impactFigures("processCrash", i, map[string]string{"dip": "1%", "probeOutage": "1ms"})
	if len(done.Status.Targets) != 1 || done.Status.Targets[0].Attempts != 1 || offset(done, "PodDeleted") < 24*time.Hour {
		t.Errorf("the fault must break one server once and delete nothing: %+v", done.Status)
	}
	n.checkTimeline(done, "Injected", "ContainerRestarted", "ContainerStarted", "Ready", "FirstError", "FirstSuccess",
		"Recovered")

	load := done.Status.LoadTest
	n.eventually(patience, "the probe load ends with its fault", func() (bool, string) {
		probe := n.loadTest(load)
		reason, message, complete, failed := completeReason(probe.Status.Conditions)
		if failed {
			t.Fatalf("the probe load failed: %s: %s", reason, message)
		}
		return complete, reason + ": " + message
	})
	if probe := n.loadTest(load); !meta.IsStatusConditionTrue(probe.Status.Conditions, v1alpha1.ConditionComplete) ||
		len(probe.Status.Faults) != 1 {
		t.Errorf("the probe load lists %d faults, want 1", len(probe.Status.Faults))
	}
	n.eventually(patience, "the probe load's pods have ended", n.podsHaveEnded(load))
	n.delete(done)
	n.waitFaultDeleted(fault.Name)
	n.childrenGo(load)
}
