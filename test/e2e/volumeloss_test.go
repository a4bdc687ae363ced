//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestVolumeLoss deletes the volume of a Redis that keeps its data on it: it comes back empty, and all that the ledger
// had acknowledged before is lost, as a client that counts the keys sees it.
func TestVolumeLoss(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "volumeloss")
	n.applyRedis(nil)
	load := n.steadyLoad("base", standaloneTarget(), 90*time.Second)
	load.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "50%"}
	n.create(load)
	n.waitLoadTest(load.Name, patience, v1alpha1.ReasonRunning)
	n.flows("redis")
	before := n.claim("data-redis-0")
	kept := n.redis()
	if err := kept.Set(n.Context(), "kept-before", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	fault := faultOn(load.Name, "lose-volume", v1alpha1.FaultVolumeLoss, func(s *v1alpha1.RedisFaultSpec) {
		s.Allow = []v1alpha1.Allowance{v1alpha1.AllowDataLoss}
		s.RecoveryDeadline = *span(time.Minute)
	})
	n.create(fault)
	done := n.waitFault(fault.Name, 3*patience, v1alpha1.ReasonSucceeded, v1alpha1.ReasonNotRecovered)
	n.isReverted(done)
	n.checkTimeline(done, "Injected", "PodDeleted", "ReplacementCreated", "Ready", "FirstSuccess")
	if after := n.claim("data-redis-0"); after.UID == before.UID || after.Spec.VolumeName == before.Spec.VolumeName {
		t.Errorf("the claim is %s with volume %s, and was %s with %s", after.UID, after.Spec.VolumeName, before.UID,
			before.Spec.VolumeName)
	}
	if !strings.Contains(done.Status.EffectEvidence, "its former claims are gone (data-redis-0); redis-0 has ") {
		t.Errorf("the evidence is %q", done.Status.EffectEvidence)
	}
	i := done.Status.Impact
	if i == nil || i.LostWrites == nil || *i.LostWrites < 100 {
		t.Fatalf("the impact is %+v", i)
	}
	n.impactFigures("volumeLoss", i, map[string]string{"outage": "1s"})
	if left, err := n.redis().Exists(n.Context(), "kept-before").Result(); err != nil || left != 0 {
		t.Errorf("the server has its former key: %d, %v", left, err)
	}
}

// claim reads a claim.
func (n *namespace) claim(name string) *corev1.PersistentVolumeClaim {
	n.Helper()
	found := &corev1.PersistentVolumeClaim{}
	if err := cluster.Get(n.Context(), client.ObjectKey{Namespace: n.name, Name: name}, found); err != nil {
		n.Fatal(err)
	}
	return found
}
