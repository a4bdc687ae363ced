//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestKeepDown keeps the primary down for longer than the sentinels of config/samples/redis-sentinel wait: they fail
// over, which a plain kill of the pod does not bring about.
func TestKeepDown(t *testing.T) {
	n := newNamespace(t, "keepdown")
	n.applySentinels(3)
	initial := n.currentState("redis-ha")
	test := &v1alpha1.RedisLoadTest{}
	n.sample("loadtest-sentinel.yaml", test)
	test.Spec.Load.Users, test.Spec.Load.Rate, test.Spec.Load.Duration = nil, new(int32(200)), span(15*time.Minute)
	test.Spec.Client.ReadFrom = v1alpha1.ReadFromPrimary
	n.create(test)
	fault := &v1alpha1.RedisFault{}
	n.sample("podkill-keepdown.yaml", fault)
	fault.Spec.Trigger = v1alpha1.FaultTrigger{After: span(15 * time.Second)} // 10 s after the warm-up: the baseline
	// a busy machine may need more than the sample's
	fault.Spec.Duration = span(40 * time.Second)
	n.create(fault)
	done := n.waitFault(fault.Name, 2*patience, v1alpha1.ReasonSucceeded)

	n.checkTimeline(done, "Injected", "PodDeleted", "Promoted", "FailedOver", "Reverted", "ReplacementCreated",
		"FirstError", "FirstSuccess", "Recovered")
	// Clients recover by the failover: the fault may be over before the old primary's container starts.
	kept := fault.Spec.Duration.Duration
	if promoted, back := offset(done, "Promoted"), offset(done, "ContainerStarted"); promoted > kept || back < kept {
		t.Errorf("promoted at %s, the old primary back at %s; want the former before and the latter after %s", promoted, back,
			kept)
	}
	if done.Status.Effect != v1alpha1.EffectConfirmed || offset(done, "EffectLost") < 24*time.Hour ||
		offset(done, "NoFailover") < 24*time.Hour {
		t.Errorf("effect %s: %s", done.Status.Effect, done.Status.EffectEvidence)
	}
	// the sentinels wait for 5 s after the last reply
	n.impactFigures("keepDown", done.Status.Impact, map[string]string{"outage": "3s"})
	n.waitForState("redis-ha", initial)
}
