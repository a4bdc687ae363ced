//go:build integration

package operator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// checkImpact compares the measured impact with the time during which no server answered. The tests in virtual time
// check the accuracy: here an apiserver, an etcd and other tests use the machine as well.
func checkImpact(t *testing.T, f *v1alpha1.RedisFault, redis *operatortest.RedisSet) {
	t.Helper()
	st := &f.Status
	if st.Effect != v1alpha1.EffectConfirmed || st.InjectedAt == nil || st.Impact == nil {
		t.Fatalf("%s: effect %s (%s), injected %v, impact %+v", operatortest.Where(st.Conditions), st.Effect,
			st.EffectEvidence,
			st.InjectedAt, st.Impact)
	}
	const slack = 10 * time.Second // a busy machine may stall for as long
	i := st.Impact
	gone, down := redis.DownBetween()
	for name, figure := range map[string]*v1alpha1.BoundedDuration{
		"outage":         &i.Outage.BoundedDuration,
		"probe's outage": i.Outages.Probe,
	} {
		if figure == nil || figure.Value.Duration < gone || figure.Value.Duration > down+slack {
			t.Errorf("%s is %+v, the server was down for %s to %s", name, figure, gone, down)
		}
	}
	// The throughput must stay recovered for 10 s, and every stall of the machine delays that.
	if i.Recovered && i.RecoveryTime.Value.Duration < gone ||
		!i.Recovered && !operatortest.StalledSince(st.InjectedAt.Time) {
		t.Errorf("recovered %v after %+v, the server was down for %s to %s", i.Recovered, i.RecoveryTime, gone, down)
	}
	// Windows in which the load generator stalled are not judged: of those with the outage perhaps none is left.
	if dip := operatortest.Number(t, string(i.Dip.Value)); dip <= 0 && !operatortest.StalledSince(st.InjectedAt.Time) ||
		i.Errors == 0 ||
		i.LostRequests < 0 {
		t.Errorf("dip %s, %d errors, %d lost", i.Dip.Value, i.Errors, i.LostRequests)
	}
	if at := i.TimeToImpact; at == nil || at.Value.Duration > slack {
		t.Errorf("time to impact %+v", at)
	}
	if !slices.IsSortedFunc(st.Timeline, func(a, b v1alpha1.TimelineEvent) int { return a.At.Compare(b.At.Time) }) {
		t.Errorf("the timeline is not in order: %v", operatortest.TimelineOf(f))
	}
	t.Logf("down for %s to %s: outage %+v, probe's %+v, recovery %+v, dip %s, %d errors; %v", gone, down, i.Outage,
		i.Outages.Probe, i.RecoveryTime, i.Dip.Value, i.Errors, operatortest.TimelineOf(f))
}

// abortedRun aborts a load test whose fault has finished, and waits for its end.
func abortedRun(p *operatortest.Place, name string) *v1alpha1.RedisLoadTest {
	p.T.Helper()
	p.MustChange(operatortest.Change(p, operatortest.NamedTest(name), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Abort = true
	}))
	return p.TestEnds(name, time.Minute)
}

// A pod kill under load, from steady throughput to recovery; the replacement has the same name.
func TestPodKill(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{Load: operatortest.Lasting(time.Hour)}.OnAPIServer(t)
	p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(4 * time.Second)}
		f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: operatortest.Length(time.Millisecond)}
	}))
	if got := operatortest.KstatusOf(t, p.FaultHasReason("kill", time.Minute,
		v1alpha1.ReasonWaitingForLoad)); got != status.InProgressStatus {
		t.Errorf("kstatus %s while the load is waited for", got)
	}
	p.FaultHasReason("kill", time.Minute, v1alpha1.ReasonWaitingForSteady)
	// beside other tests it takes a while until 4 s are steady
	p.FaultHasReason("kill", 4*time.Minute, v1alpha1.ReasonObserving)
	f := p.FaultEnds("kill", 2*time.Minute)
	checkImpact(t, f, p.Redis)
	ended := v1alpha1.ReasonSucceeded
	events := []string{"Injected", "PodDeleted", "ReplacementCreated", "Ready", "FirstError", "FirstSuccess", "Recovered"}
	conditions := []string{
		v1alpha1.ConditionTargetsSelected, v1alpha1.ConditionInjected, v1alpha1.ConditionReverted,
		v1alpha1.ConditionRecovered,
	}
	if !f.Status.Impact.Recovered { // the machine stalled repeatedly
		ended, events, conditions = v1alpha1.ReasonNotRecovered, events[:len(events)-1], conditions[:len(conditions)-1]
		if slices.ContainsFunc(f.Status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == impact.RecoveryUnknown
		}) {
			ended = v1alpha1.ReasonInconclusive
		}
	}
	if got := operatortest.KstatusOf(t, f); got != status.CurrentStatus ||
		operatortest.Reason(f.Status.Conditions) != ended {
		t.Errorf("kstatus %s, %s", got, operatortest.Where(f.Status.Conditions))
	}
	if deleted := p.Redis.PodsDeleted(); len(deleted) != 1 || deleted[0] != f.Status.Targets[0].UID {
		t.Errorf("pods deleted: %v, recorded %+v", deleted, f.Status.Targets)
	}
	target := f.Status.Targets[0]
	if target.Role != v1alpha1.RolePrimary || target.Attempts != 1 || target.IntendedAt == nil ||
		target.IntendedAt.After(target.InjectedAt.Time) || target.RevertedAt == nil {
		t.Errorf("record %+v", target)
	}
	for _, want := range events {
		if !slices.Contains(operatortest.TimelineOf(f), want) {
			t.Errorf("the timeline lacks %s: %v", want, operatortest.TimelineOf(f))
		}
	}
	for _, c := range conditions {
		if !meta.IsStatusConditionTrue(f.Status.Conditions, c) {
			t.Errorf("condition %s is not True", c)
		}
	}
	test := abortedRun(p, "run")
	if in := test.Status.Faults; len(in) != 1 || in[0].Name != "kill" || in[0].Verdict != f.Status.Verdict ||
		*in[0].Outage != f.Status.Impact.Outage.Value {
		t.Errorf("faults %+v, the fault's impact %+v", in, f.Status.Impact)
	}
	// In virtual time it is Inconclusive, as the baseline is too short (TestImpactOfAPodKill). Here it is longer if it
	// took a while until 4 s were steady.
	if o := f.Status.Objectives; f.Status.Verdict == v1alpha1.VerdictPass || len(o) != 1 || o[0].Met == nil || *o[0].Met {
		t.Errorf("verdict %s, objectives %+v", f.Status.Verdict, o)
	}
	if test.Status.Redis == nil || test.Status.Redis.Restarts != 1 {
		t.Errorf("redis %+v", test.Status.Redis)
	}
}

// A process crash in a password-protected Redis: its container is restarted in place.
func TestProcessCrash(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{}.OnAPIServer(t, "--requirepass", "s3cret")
	p.Create(operatortest.PasswordSecret())
	p.Create(operatortest.NewLoadTest("run", p.Redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target.Auth = operatortest.WithPassword()
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: operatortest.Length(time.Hour)}
	}))
	p.Create(operatortest.NewFault("crash", "run", v1alpha1.FaultProcessCrash, nil))
	f := p.FaultEnds("crash", 2*time.Minute)
	checkImpact(t, f, p.Redis)
	if deleted := p.Redis.PodsDeleted(); len(deleted) != 0 {
		t.Errorf("pods deleted: %v", deleted)
	}
	for _, want := range []string{"Injected", "ContainerRestarted", "ContainerStarted"} {
		if !slices.Contains(operatortest.TimelineOf(f), want) {
			t.Errorf("the timeline lacks %s: %v", want, operatortest.TimelineOf(f))
		}
	}
	if slices.Contains(operatortest.TimelineOf(f), "ReplacementCreated") {
		t.Errorf("the timeline speaks of another pod: %v", operatortest.TimelineOf(f))
	}
	abortedRun(p, "run")
}

// A fault without a load creates its own load, and ends it.
func TestFaultWithoutLoad(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{}.OnAPIServer(t)
	p.Create(operatortest.NewFault("alone", "", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.LoadTestRef = nil
		f.Spec.Target = &v1alpha1.RedisTarget{
			Addresses:   []string{p.Redis.Address()},
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
		}
	}))
	f := p.FaultEnds("alone", 2*time.Minute)
	checkImpact(t, f, p.Redis)
	probe := p.TestEnds(children.ProbeName("alone"), time.Minute)
	if !metav1.IsControlledBy(probe, f) || operatortest.Reason(probe.Status.Conditions) != v1alpha1.ReasonAborted ||
		f.Status.LoadTest != probe.Name {
		t.Errorf("the probe is %s; the fault names %q", operatortest.Where(probe.Status.Conditions), f.Status.LoadTest)
	}
	if probe.Status.Summary == nil || probe.Status.Summary.Requests == 0 || len(probe.Status.Faults) != 1 {
		t.Errorf("the probe's summary %+v, faults %+v", probe.Status.Summary, probe.Status.Faults)
	}
}

// An operator that starts untaints a node whose fault does not exist any more, although there is no fault to reconcile.
// The control plane is the test's own: operators of other tests would do the same.
func TestStartUntaintsNodesOfLostFaults(t *testing.T) {
	t.Parallel()
	env, err := cluster.StartControlPlane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	to, err := client.NewWithWatch(env.Config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "orphan",
			Annotations: map[string]string{v1alpha1.AnnotationTaintPrefix + "gone": "shop/gone"},
		},
	}
	node.Spec.Unschedulable = true // by a person, who keeps it so
	node.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintFault, Value: "gone", Effect: corev1.TaintEffectNoSchedule}}
	if err := to.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	p := operatortest.NewPlaceOn(t, env.Config, to)
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Until("the node has no taint of a fault", 30*time.Second, func() bool {
		return to.Get(t.Context(), client.ObjectKeyFromObject(node), node) == nil && node.Spec.Unschedulable &&
			len(node.Annotations) == 0 &&
			!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.TaintFault })
	}, func() string { return fmt.Sprintf("%+v, annotations %v", node.Spec, node.Annotations) })
}
