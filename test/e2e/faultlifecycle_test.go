//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestFaultLifecycle aborts, deletes and orphans faults.
func TestFaultLifecycle(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "faultlife")
	n.applyRedis(nil)
	n.inParallel(map[string]func(*namespace){
		"no-load-test": faultWithoutLoadTest, "on-one-test": faultsOnOneTest,
	})
}

// faultWithoutLoadTest names a load test that is never created.
func faultWithoutLoadTest(n *namespace) {
	n.create(n.sampleKill("orphan", "never-made"))
	var fault *v1alpha1.RedisFault
	n.eventually(patience, "the fault fails", func() (bool, string) {
		fault = n.fault("orphan")
		reason, message, _, failed := completeReason(fault.Status.Conditions)
		return failed, reason + ": " + message
	})
	reason, message, _, _ := completeReason(fault.Status.Conditions)
	took := fault.Status.CompletionTime.Sub(fault.CreationTimestamp.Time)
	if reason != v1alpha1.ReasonLoadTestNotFound || !strings.Contains(message, "spec.loadTestRef.name") ||
		!strings.Contains(message, "never-made") {
		n.Errorf("failed as %s: %s", reason, message)
	}
	if took < 29*time.Second { // whole seconds
		n.Errorf("failed after %s, before 30s were over", took)
	}
	n.Logf("after %s: %s: %s", took.Round(time.Second), reason, message)
	n.delete(fault)
	n.waitFaultDeleted(fault.Name)
}

// faultsOnOneTest aborts one fault before it is injected, and deletes another while recovery is observed. The load
// continues to its end.
func faultsOnOneTest(n *namespace) {
	test := n.smallLoad("base", 40*time.Second)
	n.create(test)
	before := n.redisPod()

	early := n.sampleKill("early", test.Name)
	early.Spec.Trigger = v1alpha1.FaultTrigger{After: span(30 * time.Minute)}
	n.create(early)
	n.waitLoadTest(test.Name, patience, v1alpha1.ReasonRunning)
	waiting := n.waitFault(early.Name, patience, v1alpha1.ReasonWaitingForTime)
	n.patch(waiting, `{"spec":{"abort":true}}`)
	n.eventually(patience, "the aborted fault is complete", func() (bool, string) {
		fault := n.fault(early.Name)
		reason, message, complete, _ := completeReason(fault.Status.Conditions)
		if fault.Status.InjectedAt != nil || len(fault.Status.Targets) > 0 {
			n.Fatalf("a fault that was aborted before its time was injected: %+v", fault.Status)
		}
		return complete && reason == v1alpha1.ReasonAborted, reason + ": " + message
	})
	if n.redisPod().UID != before.UID {
		n.Error("the pod of Redis was replaced by a fault that was aborted before its time")
	}

	watched := n.sampleKill("watched", test.Name)
	watched.Spec.Trigger = v1alpha1.FaultTrigger{After: span(time.Second)}
	n.create(watched)
	observing := n.waitFault(watched.Name, patience, v1alpha1.ReasonObserving)
	n.delete(observing)
	n.waitFaultDeleted(watched.Name)

	done := n.waitLoadTest(test.Name, patience, v1alpha1.ReasonSucceeded)
	if n.redisPod().UID == before.UID {
		n.Error("the pod of Redis was not replaced")
	}
	if slices.ContainsFunc(done.Status.Faults, func(f v1alpha1.FaultSummary) bool { return f.Name == early.Name }) {
		n.Errorf("the load test refers to a fault that was never injected: %+v", done.Status.Faults)
	}
	n.sumsAgree(done, n.record(done))
	if !meta.IsStatusConditionTrue(done.Status.Conditions, v1alpha1.ConditionComplete) {
		n.Error("the load test is not complete")
	}
}

// waitFaultDeleted waits until a deleted fault no longer exists: its finalizer must be removed.
func (n *namespace) waitFaultDeleted(name string) {
	n.Helper()
	n.eventually(patience, "fault "+name+" is deleted", func() (bool, string) {
		return !n.get(name, &v1alpha1.RedisFault{}), "still there"
	})
}
