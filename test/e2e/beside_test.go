//go:build e2e

package e2e_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestTwoFaultsAtOnce fails a primary over while its container has a fifth of its CPU, by the faults of
// config/samples/beside.yaml: the kubelet has resized the old primary when the sentinels agree on another one, each fault
// says that the other one acted, and everything is as before in the end.
func TestTwoFaultsAtOnce(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "beside")
	n.applySentinels(3)
	load := n.steadyLoad("behind-sentinels", sentinelTarget(), 5*patience)
	n.create(load)
	n.waitLoadTest(load.Name, patience, v1alpha1.ReasonRunning)
	n.flows("redis-ha")
	before, old := n.currentState("redis-ha"), n.primaryOf("redis-ha")
	usual := n.cpuLimit(old.Name)

	slow, failover := &v1alpha1.RedisFault{}, &v1alpha1.RedisFault{}
	n.sampleOf("beside.yaml", 0, slow)
	n.sampleOf("beside.yaml", 1, failover)
	n.create(failover) // whichever comes first
	n.waitFault(failover.Name, patience, v1alpha1.ReasonWaitingForFault)
	n.create(slow)
	n.waitFault(failover.Name, 2*patience, v1alpha1.ReasonObserving, v1alpha1.ReasonSucceeded)
	if now := n.primaryOf("redis-ha"); now.Name == old.Name {
		t.Errorf("%s is still the primary", old.Name)
	}
	if limit := n.cpuLimit(old.Name); limit != "100m" {
		t.Errorf("the old primary may use %s of a CPU while it is failed over, want 100m", limit)
	}
	first := n.waitFault(slow.Name, 3*patience, v1alpha1.ReasonSucceeded)
	second := n.waitFault(failover.Name, 3*patience, v1alpha1.ReasonSucceeded)
	if at := second.Status.InjectedAt; at.Before(first.Status.InjectedAt) || first.Status.RevertedAt.Before(at) {
		t.Errorf("the failover was at %s, the CPU limited from %s to %s", at, first.Status.InjectedAt, first.Status.RevertedAt)
	}
	for fault, other := range map[*v1alpha1.RedisFault]string{first: failover.Name, second: slow.Name} {
		if fault.Status.Effect != v1alpha1.EffectConfirmed ||
			!slices.ContainsFunc(fault.Status.Timeline, func(e v1alpha1.TimelineEvent) bool {
				return e.Event == "InjectedBeside" && e.Object == "RedisFault "+other
			}) {
			t.Errorf("%s: effect %s, %s; timeline %+v", fault.Name, fault.Status.Effect, fault.Status.EffectEvidence,
				fault.Status.Timeline)
		}
		n.isReverted(fault)
	}
	if limit := n.cpuLimit(old.Name); limit != usual {
		t.Errorf("%s may use %s of a CPU in the end, want %s", old.Name, limit, usual)
	}
	n.sentinelsAgree()
	n.waitForState("redis-ha", before)
}

// cpuLimit is what the kubelet says that a pod's first container may use.
func (n *namespace) cpuLimit(pod string) string {
	n.Helper()
	p := &corev1.Pod{}
	if err := cluster.Get(n.Context(), client.ObjectKey{Namespace: n.name, Name: pod}, p); err != nil {
		n.Fatal(err)
	}
	if s := p.Status.ContainerStatuses; len(s) > 0 && s[0].Resources != nil {
		return s[0].Resources.Limits.Cpu().String()
	}
	return ""
}
