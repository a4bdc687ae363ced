//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// TestPodKill kills the Redis of the samples under the load of the samples.
func TestPodKill(t *testing.T) {
	podKill(t, 2000, v1alpha1.FaultTrigger{SteadyFor: span(10 * time.Second)})
}

// podKill kills a Redis under load, follows both objects as `kubectl get -w` shows them, and compares them with the
// observations of an independent watcher.
func podKill(t *testing.T, rate int32, trigger v1alpha1.FaultTrigger) {
	n := newNamespace(t, "podkill")
	n.applyRedis(nil)
	before, initial := n.redisPod(), n.currentState("redis")
	claim := &corev1.PersistentVolumeClaim{}
	if !n.get("data-redis-0", claim) {
		t.Fatal("there is no claim data-redis-0")
	}
	if err := n.redis().Set(t.Context(), "e2e:kept", "yes", 0).Err(); err != nil {
		t.Fatal(err)
	}
	w := n.startWatcher(n.redisAddress())
	// Time for a volume that the kubelet is slow to mount again: it tries after 0.5, 1, 2, 4, 8 and 16 s, and recovery
	// must hold for 10 s.
	load := n.sampleLoad("checkout-cache", time.Second, time.Second, 76*time.Second)
	load.Spec.Load.Rate = new(rate)
	kill := n.sampleKill("kill-primary", load.Name)
	trigger.Timeout = *span(time.Minute)
	kill.Spec.Trigger = trigger
	n.create(load)
	n.create(kill)

	columns := n.followColumns(load.Name, kill.Name)
	fault := n.waitFault(kill.Name, patience, v1alpha1.ReasonSucceeded)
	test := n.waitLoadTest(load.Name, patience, v1alpha1.ReasonSucceeded)
	seen, record := w.stop(), n.record(test)

	n.checkPodKill(fault, before)
	n.isDescribed(fault)
	n.impactFigures("podKill", fault.Status.Impact, map[string]string{"dip": "1%", "errors": "1", "lostRequests": "1"})
	n.checkWatcher(fault, seen, record)
	n.checkLoadTest(test, fault)
	n.checkColumns(columns, test)
	n.figuresAreExact(test, fault)
	n.sumsAgree(test, record)
	n.recordIsWhole(test, record)

	n.waitForState("redis", initial)
	if n.redisPod().UID == before.UID {
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

// checkPodKill checks conditions, effect and timeline of a pod kill that clients recovered from.
func (n *namespace) checkPodKill(fault *v1alpha1.RedisFault, before *corev1.Pod) {
	n.Helper()
	status := &fault.Status
	for _, kind := range []string{
		v1alpha1.ConditionTargetsSelected, v1alpha1.ConditionInjected, v1alpha1.ConditionReverted,
		v1alpha1.ConditionRecovered, v1alpha1.ConditionComplete,
	} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			n.Errorf("condition %s is not True: %+v", kind, meta.FindStatusCondition(status.Conditions, kind))
		}
	}
	if len(status.Targets) != 1 || status.Targets[0].Pod != before.Name || status.Targets[0].UID != string(before.UID) ||
		status.Targets[0].Role != v1alpha1.RolePrimary {
		n.Fatalf("targets %+v, want pod %s (%s), Primary", status.Targets, before.Name, before.UID)
	}
	if status.Effect != v1alpha1.EffectConfirmed || !strings.Contains(status.EffectEvidence, "run_id") ||
		!strings.Contains(status.EffectEvidence, status.Targets[0].RunID) {
		n.Errorf("effect %s (%s), want Confirmed by the change of run_id %s", status.Effect, status.EffectEvidence,
			status.Targets[0].RunID)
	}
	if i := status.Impact; i == nil || !i.Recovered || len(otherDoubts(i)) > 0 {
		n.Fatalf("impact %+v, want recovered without doubts", i)
	}
	n.checkTimeline(fault, "Injected", "PodDeleted", "ReplacementCreated", "Scheduled", "ContainerStarted", "Ready",
		"FirstError", "FirstSuccess", "Recovered")
}

// checkTimeline checks that a timeline is in order, that its offsets are right, and that it holds the events.
func (n *namespace) checkTimeline(fault *v1alpha1.RedisFault, events ...string) {
	n.Helper()
	var held []string
	injected := 0
	for k, e := range fault.Status.Timeline {
		n.Logf("%10s  %-20s %-8s %s", format.Duration(e.Offset.Duration), e.Event, e.Object, e.Message)
		held = append(held, e.Event)
		if e.Event == "Injected" {
			injected++
		}
		if k > 0 && e.At.Time.Before(fault.Status.Timeline[k-1].At.Time) {
			n.Errorf("the timeline is out of order at %s", e.Event)
		}
		if want := e.At.Sub(fault.Status.InjectedAt.Time); (e.Offset.Duration - want).Abs() > time.Microsecond {
			n.Errorf("%s is at offset %s, want %s", e.Event, e.Offset.Duration, want)
		}
	}
	for _, e := range events {
		if !slices.Contains(held, e) {
			n.Errorf("the timeline has no %s: %v", e, held)
		}
	}
	if targets := len(fault.Status.Targets); injected > max(1, targets) {
		n.Errorf("the timeline has %d injections of %d targets", injected, targets)
	}
	if len(held) == 0 || held[0] != "Injected" {
		n.Errorf("the timeline does not begin with Injected: %v", held)
	}
	n.phasesAddUp(fault)
}

// phasesAddUp checks that the parts of a recovery are the whole of it, to the rounding of each to a microsecond.
func (n *namespace) phasesAddUp(fault *v1alpha1.RedisFault) {
	n.Helper()
	i := fault.Status.Impact
	if i == nil || !i.Recovered {
		return
	}
	var sum time.Duration
	for _, p := range i.Phases {
		n.Logf("%10s  until %-20s %s", format.Duration(p.Duration.Value.Duration), p.Name, p.Source)
		sum += p.Duration.Value.Duration
	}
	if whole := i.RecoveryTime.Value.Duration; (sum - whole).Abs() > time.Duration(len(i.Phases))*time.Microsecond {
		n.Errorf("the phases are %s together, recovery took %s", sum, whole)
	}
}

// checkWatcher checks that an independent process observed the outages of a fault at the time at which load and probe
// recorded them. How well the lengths agree is a figure.
func (n *namespace) checkWatcher(fault *v1alpha1.RedisFault, seen []time.Time, series *merged.Series) {
	n.Helper()
	t0, recovered := fault.Status.InjectedAt.Time, fault.Status.InjectedAt.Add(offset(fault, "Recovered"))
	n.Logf("the watcher had %d successes", len(seen))
	inTime := slices.DeleteFunc(slices.Clone(seen), func(at time.Time) bool {
		return at.After(recovered.Add(10 * time.Second))
	})
	if len(inTime) == 0 || inTime[0].After(t0) || inTime[len(inTime)-1].Before(recovered) {
		n.Fatalf("the watcher's successes do not reach from before %s to after %s", t0, recovered)
	}
	from, length := longestGap(inTime, t0)
	i := fault.Status.Impact
	for _, c := range []struct {
		name   string
		outage *v1alpha1.BoundedDuration
		gaps   []record.Gap
	}{
		{"watcherOverOutage", &i.Outage.BoundedDuration, series.Gaps()},
		{"watcherOverProbeOutage", i.Outages.Probe, series.ProbeGaps()},
	} {
		reported := c.outage.Value.Duration
		n.figure("podKill", c.name, (length - reported).Round(time.Millisecond).String())
		if !slices.ContainsFunc(c.gaps, func(g record.Gap) bool {
			began, ended := series.Start.Add(time.Duration(g.From)), series.Start.Add(time.Duration(g.To))
			is := ended.Sub(began)
			return (is-reported).Abs() <= time.Microsecond && began.Before(from.Add(length)) && ended.After(from)
		}) {
			n.Errorf(
				"%s: an outage of %s is reported, and the watcher's from %s for %s; want one in the record that overlaps it: %v",
				c.name, reported, from, length, c.gaps)
		}
	}
}

// checkLoadTest checks what a load test reports of the fault that hit it.
func (n *namespace) checkLoadTest(test *v1alpha1.RedisLoadTest, fault *v1alpha1.RedisFault) {
	n.Helper()
	status := &test.Status
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionLoadReady, v1alpha1.ConditionComplete} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			n.Errorf("condition %s is not True: %+v", kind, meta.FindStatusCondition(status.Conditions, kind))
		}
	}
	want := []v1alpha1.FaultSummary{{
		Name: fault.Name, Type: fault.Spec.Action.Type, Verdict: fault.Status.Verdict,
		Outage: &fault.Status.Impact.Outage.Value, RecoveryTime: &fault.Status.Impact.RecoveryTime.Value,
	}}
	if diff := cmp.Diff(want, status.Faults); diff != "" {
		n.Errorf("the load test's reference is not to the fault (-fault +load test):\n%s", diff)
	}
	n.passes(test)
	if status.Redis == nil || status.Redis.Restarts != 1 {
		n.Errorf("redis %+v, want 1 restart", status.Redis)
	}
	n.figure("podKill", "throughput", status.Display.TPS)
	n.figure("podKill", "errorRate", status.Display.Errors)
	n.figure("podKill", "startSkew", format.Duration(status.StartSkew.Duration))
}

// offset is when an event of a fault's timeline was, counted from the injection; a day if there is none.
func offset(fault *v1alpha1.RedisFault, event string) time.Duration {
	for _, e := range fault.Status.Timeline {
		if e.Event == event {
			return e.At.Sub(fault.Status.InjectedAt.Time)
		}
	}
	return 24 * time.Hour
}
