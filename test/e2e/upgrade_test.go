//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestUpgrade installs an earlier version, upgrades it to this one, goes back, and upgrades again, CRDs included, while a
// load runs, a lasting fault acts and a schedule makes a run every minute: no fault stays, no run is lost, and no object
// changes but by its own run. `make upgrade-test` calls it on a cluster without the operator.
func TestUpgrade(t *testing.T) {
	earlier, now := os.Getenv("REDQUAKE_E2E_EARLIER"), os.Getenv("REDQUAKE_E2E_INSTALL")
	if earlier == "" {
		t.Fatal("REDQUAKE_E2E_EARLIER must name the manifests of an earlier version; `make upgrade-test` sets it")
	}
	w := byKubectl("-f", earlier, now)
	n := newNamespace(t, "upgrade")
	before := n.installedAndBroken(w)
	n.createByUser(n.everyMinute())
	n.runsEnd(1)
	injected, specs := n.fault("lasting").Status.InjectedAt, n.specs()
	for i, step := range []struct {
		name string
		do   func(*namespace)
	}{{"upgrade", w.change}, {"go back", w.back}, {"upgrade again", w.change}} {
		n.step(step.name, step.do)
		n.goesOn(step.name)
		n.runsEnd(i + 2)
	}
	if f := n.fault("lasting"); !f.Status.InjectedAt.Equal(injected) {
		t.Errorf("the fault was injected again, at %s instead of %s", f.Status.InjectedAt, injected)
	}
	for name, spec := range n.specs() {
		if earlier := specs[name]; earlier != "" && earlier != spec {
			t.Errorf("%s was\n%s\nand is\n%s", name, earlier, spec)
		}
		delete(specs, name)
	}
	if len(specs) > 0 {
		t.Errorf("lost: %v", slices.Sorted(maps.Keys(specs)))
	}
	n.step("remove", w.remove)
	n.command(nil, "kubectl", "delete", "--ignore-not-found", "-f", now) // what only this version has
	n.waitForState("redis", before)
	n.nothingIsLeft(false)
}

// lastingFault changes a setting for longer than a test takes.
func (n *namespace) lastingFault() *v1alpha1.RedisFault {
	n.Helper()
	fault := n.sampleKill("lasting", "base")
	fault.Spec.Action = v1alpha1.Action{
		Type:   v1alpha1.FaultConfig,
		Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}},
	}
	fault.Spec.Trigger, fault.Spec.Duration = v1alpha1.FaultTrigger{After: span(0)}, span(40*time.Minute)
	return fault
}

// everyMinute is a schedule whose runs take some seconds.
func (n *namespace) everyMinute() *v1alpha1.RedisExperimentSchedule {
	n.Helper()
	load := n.smallLoad("unused", 5*time.Second)
	load.Spec.Workload.Keyspace.Prefix = "minutely:"
	schedule := &v1alpha1.RedisExperimentSchedule{ObjectMeta: metav1.ObjectMeta{Name: "minutely"}}
	schedule.Spec.Schedule = "* * * * *"
	schedule.Spec.SuccessfulRunsHistoryLimit = new(int32(20))
	schedule.Spec.Template.Spec.Template.Spec = load.Spec
	schedule.Spec.Template.Spec.Matrix = []v1alpha1.ExperimentParameter{{
		Name: "rate", Path: "load.rate", Values: []intstr.IntOrString{intstr.FromInt32(50), intstr.FromInt32(100)},
	}}
	schedule.Spec.Template.Spec.Repeat = 1
	return schedule
}

// runsEnd waits until so many runs of the schedule are over. None of them may have failed, and none be missed: each
// minute has one, or is counted as skipped, as the one before had not ended.
func (n *namespace) runsEnd(least int) {
	n.Helper()
	began := time.Now()
	n.eventually(5*time.Minute, fmt.Sprintf("%d runs of the schedule are over", least), func() (bool, string) {
		var runs v1alpha1.RedisExperimentList
		n.list(&runs)
		over := 0
		for i := range runs.Items {
			r := &runs.Items[i]
			if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
				n.Fatalf("run %s has failed: %s: %s", r.Name, c.Reason, c.Message)
			}
			// Runs of another version count, too, but one that began after this wait shows that the schedule goes on.
			if meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionComplete) && (least == 1 || r.CreationTimestamp.After(began)) {
				over++
			}
		}
		return over > 0 && len(runs.Items) >= least, fmt.Sprintf("%d runs, %d over since %s", len(runs.Items), over, began.Format(time.TimeOnly))
	})
	schedule := &v1alpha1.RedisExperimentSchedule{}
	if !n.get("minutely", schedule) {
		n.Fatal("the schedule is gone")
	}
	var runs v1alpha1.RedisExperimentList
	n.list(&runs)
	var created []int64 // minutes
	for _, r := range runs.Items {
		created = append(created, r.CreationTimestamp.Unix()/60)
	}
	minutes := slices.Max(created) - slices.Min(created) + 1
	if has := int64(len(runs.Items)) + schedule.Status.Skipped; has < minutes {
		n.Errorf("%d runs and %d skipped in %d minutes", len(runs.Items), schedule.Status.Skipped, minutes)
	}
}

// specs are the UIDs and specs of all objects of the namespace.
func (n *namespace) specs() map[string]string {
	n.Helper()
	all := map[string]string{}
	add := func(kind string, o metav1.Object, spec any) {
		text, err := json.Marshal(spec)
		if err != nil {
			n.Fatal(err)
		}
		all[kind+" "+o.GetName()] = string(o.GetUID()) + " " + string(text)
	}
	var tests v1alpha1.RedisLoadTestList
	var faults v1alpha1.RedisFaultList
	var experiments v1alpha1.RedisExperimentList
	var schedules v1alpha1.RedisExperimentScheduleList
	n.list(&tests)
	n.list(&faults)
	n.list(&experiments)
	n.list(&schedules)
	for i := range tests.Items {
		add("RedisLoadTest", &tests.Items[i], tests.Items[i].Spec)
	}
	for i := range faults.Items {
		add("RedisFault", &faults.Items[i], faults.Items[i].Spec)
	}
	for i := range experiments.Items {
		add("RedisExperiment", &experiments.Items[i], experiments.Items[i].Spec)
	}
	for i := range schedules.Items {
		add("RedisExperimentSchedule", &schedules.Items[i], schedules.Items[i].Spec)
	}
	return all
}
