//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestExternal(t *testing.T) {
	t.Parallel()
	external(t)
}

// external plans the kill of a pod by a dry run, which changes nothing. Then somebody else kills that pod under load,
// and a fault of type External measures it.
func external(t *testing.T) {
	n := newNamespace(t, "external")
	n.applyRedis(nil)
	before := n.redisPod()

	planned := &v1alpha1.RedisFault{}
	n.sample("podkill-dryrun.yaml", planned)
	n.create(planned)
	n.isOnlyPlanned(n.waitFault(planned.Name, patience, v1alpha1.ReasonDryRun))
	if now := n.redisPod(); now.UID != before.UID || now.DeletionTimestamp != nil {
		t.Error("the dry run killed the pod of Redis")
	}

	load := n.smallLoad("base", 90*time.Second)
	load.Spec.Load.UntilFaultsSettle = span(5 * time.Minute) // a kubelet of a busy machine takes long to start a pod again
	n.create(load)
	fault := &v1alpha1.RedisFault{}
	n.sample("external.yaml", fault)
	fault.Spec.LoadTestRef.Name, fault.Spec.Objectives = load.Name, nil
	fault.Spec.Trigger = v1alpha1.FaultTrigger{After: span(12 * time.Second)} // 10 s of it are the baseline
	fault.Spec.RecoveryDeadline = *span(4 * time.Minute)
	n.create(fault)
	n.waitFault(fault.Name, patience, v1alpha1.ReasonWaitingForMark)
	killed := time.Now()
	n.delete(before, client.GracePeriodSeconds(0))
	n.isMeasured(n.waitFault(fault.Name, 3*patience, v1alpha1.ReasonSucceeded), killed)
}

// isOnlyPlanned expects the plan of a fault that has done nothing.
func (n *namespace) isOnlyPlanned(fault *v1alpha1.RedisFault) {
	n.Helper()
	status := &fault.Status
	if status.InjectedAt != nil || status.Verdict != v1alpha1.VerdictInconclusive ||
		n.get(fault.Name+"-probe", &v1alpha1.RedisLoadTest{}) {
		n.Errorf("a dry run was injected at %v, its verdict is %s", status.InjectedAt, status.Verdict)
	}
	if p := status.Plan; p == nil || len(p.Steps) != 1 || p.Steps[0].Pod != "redis-0" ||
		!strings.Contains(p.Steps[0].Action, "redis-0") {
		n.Errorf("the plan is %+v, want one step that names redis-0", p)
	}
}

// isMeasured expects that a fault which somebody else made was found by the load and measured. The load shows it
// between the call and the end of the pod.
func (n *namespace) isMeasured(fault *v1alpha1.RedisFault, killed time.Time) {
	n.Helper()
	status := &fault.Status
	if status.MarkedBy != v1alpha1.MarkedByLoad || status.Effect != v1alpha1.EffectConfirmed || status.Impact == nil ||
		!status.Impact.Recovered {
		n.Fatalf("marked by %q, effect %s (%s), impact %+v", status.MarkedBy, status.Effect, status.EffectEvidence,
			status.Impact)
	}
	if late := status.InjectedAt.Sub(killed); late < -time.Second || late > patience {
		n.Errorf("t0 is %s after the pod was deleted", late)
	}
	if status.Impact.Outage == nil || status.Impact.Outage.Value.Duration == 0 {
		n.Errorf("the outage is %+v", status.Impact.Outage)
	}
	var events []string
	for _, e := range status.Timeline {
		n.Logf("%10s  %-20s %-8s %s", e.Offset.Duration, e.Event, e.Object, e.Message)
		events = append(events, e.Event)
	}
	for _, want := range []string{"Marked", "PodDeleted", "ContainerStarted", "Recovered"} {
		if !slices.Contains(events, want) {
			n.Errorf("the timeline has no %s: %v", want, events)
		}
	}
}
