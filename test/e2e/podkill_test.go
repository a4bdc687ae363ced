//go:build e2e

package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/sample"
)

// TestPodKillUnderLoad kills the Redis of the samples under the load of the samples, and holds what the load says of it against an
// independent watcher.
func TestPodKillUnderLoad(t *testing.T) {
	n := newNamespace(t, "podkill")
	n.applyRedis(nil)
	before, stood := n.redisPod(), n.standsNow("redis")
	claim := &corev1.PersistentVolumeClaim{}
	if !n.get("data-redis-0", claim) {
		t.Fatal("there is no claim data-redis-0")
	}
	if err := n.redis().Set(t.Context(), "e2e:kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	w := n.startWatcher(n.redisAddress())
	// Time for a volume that the kubelet is slow to attach again: it tries after 0.5, 1, 2, 4, 8 and 16 s, and recovery must hold for 10 s.
	n.create(n.sampleLoad("checkout-cache", 2*time.Second, 2*time.Second, 100*time.Second))
	n.create(n.sampleKill("kill-primary", "checkout-cache"))

	fault := n.faultStands("kill-primary", 4*time.Minute, v1alpha1.ReasonSucceeded)
	test := n.loadTestStands("checkout-cache", 4*time.Minute, v1alpha1.ReasonSucceeded)
	seen := w.stop()

	n.faultIsTold(fault, before)
	n.watcherAgrees(fault, seen, n.record(test))
	n.loadTestIsTold(test, fault)
	n.sumsAgree(test, n.record(test))
	n.recordIsWhole(test, n.record(test))

	n.standsAsBefore("redis", stood)
	after := n.redisPod()
	if after.UID == before.UID {
		t.Error("the pod of Redis was not replaced")
	}
	volume := claim.Spec.VolumeName
	if !n.get("data-redis-0", claim) || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != volume {
		t.Errorf("the claim is %s with volume %s, want Bound with %s", claim.Status.Phase, claim.Spec.VolumeName, volume)
	}
	if kept, err := n.redis().Get(t.Context(), "e2e:kept").Result(); kept != "yes" {
		t.Errorf("the key that was set before the fault is %q (error %v)", kept, err)
	}
}

// faultIsTold checks conditions, effect, figures and timeline of a pod kill that clients recovered from.
func (n *namespace) faultIsTold(fault *v1alpha1.RedisFault, before *corev1.Pod) {
	n.Helper()
	status := &fault.Status
	for _, kind := range []string{
		v1alpha1.ConditionTargetsSelected, v1alpha1.ConditionInjected, v1alpha1.ConditionReverted, v1alpha1.ConditionRecovered, v1alpha1.ConditionComplete,
	} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			n.Errorf("condition %s is not True: %+v", kind, meta.FindStatusCondition(status.Conditions, kind))
		}
	}
	if len(status.Targets) != 1 || status.Targets[0].Pod != before.Name || status.Targets[0].UID != string(before.UID) || status.Targets[0].Role != v1alpha1.RolePrimary {
		n.Errorf("targets %+v, want pod %s (%s), Primary", status.Targets, before.Name, before.UID)
	}
	if status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(status.EffectEvidence, "run_id") || !strings.Contains(status.EffectEvidence, status.Targets[0].RunID) {
		n.Errorf("effect %s (%s), want Confirmed by the change of run_id %s", status.Effect, status.EffectEvidence, status.Targets[0].RunID)
	}
	i := status.Impact
	if i == nil {
		n.Fatal("there is no impact")
	}
	for figure, actual := range map[string]string{
		"baselineTPS": i.BaselineTPS, "tpsDip": i.TPSDip, "timeToImpact": i.TimeToImpact, "outage": i.Outage, "serverOutage": i.ServerOutage,
		"recoveryTime": i.RecoveryTime, "errorWindow": i.ErrorWindow, "degraded": i.Degraded,
		"errors": fmt.Sprint(i.Errors), "lostRequests": fmt.Sprint(i.LostRequests),
	} {
		inRange(n.T, "podKill", figure, actual)
	}
	if !i.Recovered || len(otherDoubts(i)) > 0 {
		n.Errorf("recovered %v with doubts %+v", i.Recovered, i.Doubts)
	}
	n.timelineIsTold(fault, "Injected", "PodDeleted", "ReplacementCreated", "Scheduled", "ContainerStarted", "Ready", "FirstError", "FirstSuccess", "Recovered")
}

// timelineIsTold checks that a timeline is in order, that its offsets are right, and that it holds the events.
func (n *namespace) timelineIsTold(fault *v1alpha1.RedisFault, events ...string) {
	n.Helper()
	var told []string
	for k, e := range fault.Status.Timeline {
		n.Logf("%10s  %-20s %-8s %s", e.Offset, e.Event, e.Object, e.Message)
		told = append(told, e.Event)
		if k > 0 && e.Event == "Injected" {
			n.Error("the timeline tells of a second injection")
		}
		if k > 0 && e.At.Time.Before(fault.Status.Timeline[k-1].At.Time) {
			n.Errorf("the timeline is out of order at %s", e.Event)
		}
		want := e.At.Sub(fault.Status.InjectedAt.Time)
		if off := duration(n.T, "offset of "+e.Event, e.Offset) - want; off.Abs() > want.Abs()/100+time.Millisecond {
			n.Errorf("%s is at offset %s, want %s", e.Event, e.Offset, want)
		}
	}
	for _, e := range events {
		if !slices.Contains(told, e) {
			n.Errorf("the timeline has no %s: %v", e, told)
		}
	}
	if len(told) == 0 || told[0] != "Injected" {
		n.Errorf("the timeline does not begin with Injected: %v", told)
	}
	n.phasesAddUp(fault)
}

// phasesAddUp checks that the parts of a recovery are the whole of it. Each is text of three digits.
func (n *namespace) phasesAddUp(fault *v1alpha1.RedisFault) {
	n.Helper()
	i := fault.Status.Impact
	if i == nil || !i.Recovered {
		return
	}
	var sum time.Duration
	for _, p := range i.Phases {
		n.Logf("%10s  until %-20s %s", p.Duration, p.Name, p.Source)
		sum += duration(n.T, "phase "+p.Name, p.Duration)
	}
	if whole := duration(n.T, "recoveryTime", i.RecoveryTime); (sum - whole).Abs() > whole/50+2*time.Millisecond {
		n.Errorf("the phases are %s together, recovery took %s", sum, whole)
	}
}

// watcherAgrees holds the outages of a fault against what an independent process saw.
func (n *namespace) watcherAgrees(fault *v1alpha1.RedisFault, seen []time.Time, series *sample.Series) {
	n.Helper()
	t0 := fault.Status.InjectedAt.Time
	from, length := longestGap(seen, t0.Add(-time.Second))
	outage, server := duration(n.T, "outage", fault.Status.Impact.Outage), duration(n.T, "serverOutage", fault.Status.Impact.ServerOutage)
	n.Logf("OUTAGE: load %s, probe %s, watcher %s (from %s after the injection)", outage, server, length.Round(time.Millisecond), from.Sub(t0).Round(time.Millisecond))
	// On a starved machine the watcher is late by itself, and so are the load pods, which have less of the CPU: how much, the gaps of each in the
	// 10 s before and in the second after tell, when containers start (10 ms where it is not).
	end := from.Add(length)
	var own time.Duration
	for i := 1; i < len(seen); i++ {
		if at := seen[i]; at.After(t0.Add(-10*time.Second)) && at.Before(t0) || at.After(end) && at.Before(end.Add(time.Second)) {
			own = max(own, at.Sub(seen[i-1])-watcherPeriod)
		}
	}
	for _, g := range slices.Concat(series.Gaps(), series.ProbeGaps()) {
		from, to := series.Start.Add(time.Duration(g.From)), series.Start.Add(time.Duration(g.To))
		if from.After(t0.Add(-10*time.Second)) && to.Before(t0) || from.After(end) && to.Before(end.Add(time.Second)) {
			own = max(own, to.Sub(from))
		}
	}
	tolerance := 50*time.Millisecond + min(own, 300*time.Millisecond)
	if (outage-length).Abs() > tolerance || (server-length).Abs() > tolerance {
		n.Errorf("the watcher saw an outage of %s; the load says %s and its probe %s, want both within %s", length, outage, server, tolerance)
	}
}

// loadTestIsTold checks what a load test says of the fault that hit it.
func (n *namespace) loadTestIsTold(test *v1alpha1.RedisLoadTest, fault *v1alpha1.RedisFault) {
	n.Helper()
	status := &test.Status
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionLoadReady, v1alpha1.ConditionComplete} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			n.Errorf("condition %s is not True: %+v", kind, meta.FindStatusCondition(status.Conditions, kind))
		}
	}
	want := []v1alpha1.FaultImpact{{
		Fault: fault.Name, Type: fault.Spec.Type, InjectedAt: fault.Status.InjectedAt, Effect: fault.Status.Effect, Impact: fault.Status.Impact,
	}}
	if diff := cmp.Diff(want, status.Impacts); diff != "" {
		n.Errorf("the load test's impacts are not the fault's (-fault +load test):\n%s", diff)
	}
	n.passes(test)
	if status.Summary.TPSDip != fault.Status.Impact.TPSDip || status.Summary.RecoveryTime != fault.Status.Impact.RecoveryTime {
		n.Errorf("the summary's dip %s and recovery %s are not the fault's", status.Summary.TPSDip, status.Summary.RecoveryTime)
	}
	if status.Redis == nil || status.Redis.Restarts != 1 {
		n.Errorf("redis %+v, want 1 restart", status.Redis)
	}
	inRange(n.T, "podKill", "throughput", status.Summary.Throughput)
	inRange(n.T, "podKill", "errorRate", status.Summary.ErrorRate)
	inRange(n.T, "podKill", "startSkew", status.StartSkew)
}
