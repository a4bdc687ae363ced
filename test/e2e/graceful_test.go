//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestGracefulAndImmediateKill hits one load with two faults one after the other: an orderly end of the pod, and one
// without grace.
func TestGracefulAndImmediateKill(t *testing.T) {
	n := newNamespace(t, "graceful")
	n.applyRedis(nil)
	test := n.sampleLoad("checkout-cache", time.Second, time.Second, 10*time.Minute)
	orderly := n.sampleKill("a-orderly", test.Name)
	orderly.Spec.Action.PodKill.GracePeriodSeconds = nil
	n.create(test)
	n.create(orderly)
	first := n.waitFault(orderly.Name, 2*patience, v1alpha1.ReasonSucceeded)
	immediate := n.sampleKill("b-immediate", test.Name)
	immediate.Spec.Trigger.SteadyFor = span(10 * time.Second)
	n.create(immediate)
	second := n.waitFault(immediate.Name, 2*patience, v1alpha1.ReasonSucceeded)
	done := n.endLoad(test.Name)

	n.checkTimeline(first, "Injected", "PodTerminating", "PodDeleted", "ReplacementCreated", "Scheduled",
		"ContainerStarted", "Ready", "FirstSuccess", "Recovered")
	n.checkTimeline(second, "Injected", "PodDeleted", "ReplacementCreated", "Scheduled", "ContainerStarted", "Ready",
		"FirstSuccess", "Recovered")
	if terminating, deleted := offset(first, "PodTerminating"), offset(first, "PodDeleted"); terminating > deleted {
		t.Errorf("orderly: PodTerminating at %s, PodDeleted at %s", terminating, deleted)
	}
	// Without grace the call deletes the object; an orderly end first ends the container.
	n.figure(second.Name, "podDeleted", offset(second, "PodDeleted").String())
	if at := offset(second, "PodTerminating"); at < 24*time.Hour {
		t.Errorf("immediate: PodTerminating at %s", at)
	}
	for _, fault := range []*v1alpha1.RedisFault{first, second} {
		i := fault.Status.Impact
		t.Logf("%s: dip %s, outage %s, server outage %s, recovery %s, pod deleted after %s, ready again after %s", fault.Name,
			i.Dip.Value, durationText(&i.Outage.BoundedDuration), durationText(i.Outages.Probe), durationText(i.RecoveryTime),
			offset(fault, "PodDeleted"), offset(fault, "Ready"))
		if fault.Status.Effect != v1alpha1.EffectConfirmed || !i.Recovered || len(otherDoubts(i)) > 0 {
			t.Errorf("%s: effect %s, recovered %v, doubts %+v", fault.Name, fault.Status.Effect, i.Recovered, i.Doubts)
		}
		n.impactFigures(fault.Name, i, nil)
	}
	if first.Status.Targets[0].UID == second.Status.Targets[0].UID {
		t.Error("both faults hit the same pod")
	}
	if in := done.Status.Faults; len(in) != 2 || in[0].Name != orderly.Name || in[1].Name != immediate.Name {
		t.Errorf("the load test's faults: %+v, want both by name", in)
	}
	if done.Status.Redis == nil || done.Status.Redis.Restarts != 2 {
		t.Errorf("redis %+v, want 2 restarts", done.Status.Redis)
	}
	n.passes(done)
	series := n.record(done)
	n.sumsAgree(done, series)
	n.recordIsWhole(done, series)
}
