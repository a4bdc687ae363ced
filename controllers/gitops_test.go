package controllers

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

var updateObjects = flag.Bool("update-objects", false, "write the objects that the tests of Argo CD and Flux read")

// customizations is the folder with the files for Argo CD, a folder for each kind.
const customizations = "../config/argocd/resource_customizations/redquake.dev"

// keep compares an object with the file testdata/NAME.yaml of its kind, which the tests of Argo CD's scripts, of
// kstatus and of a real Argo CD read: in all that tools conclude something from. Figures and times may differ.
func (w *world) keep(name string, object client.Object) {
	w.t.Helper()
	kinds, _, err := w.client.Scheme().ObjectKinds(object)
	if err != nil {
		w.t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	text, err := yaml.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(customizations, kinds[0].Kind, "testdata", name+".yaml")
	if *updateObjects {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path,
			append([]byte("# As the operator has left it in a test. Written by make objects-gitops.\n"), text...),
			0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatalf("%v: run make objects-gitops", err)
	}
	if diff := cmp.Diff(essence(w.t, stored), essence(w.t, text)); diff != "" {
		w.t.Errorf("%s is not what the operator writes: run make objects-gitops (-stored +written)\n%s", path, diff)
	}
}

// essence is what tools read of an object.
func essence(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var o struct {
		Metadata struct{ Generation int64 }
		Spec     map[string]any
		Status   struct {
			Conditions                []metav1.Condition
			ObservedGeneration        int64
			Verdict                   string
			StartTime, CompletionTime string
			Active                    string
		}
	}
	if err := yaml.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	conditions := map[string]string{}
	for _, c := range o.Status.Conditions {
		conditions[c.Type] = fmt.Sprintf("%s %s, with a message: %v", c.Status, c.Reason, c.Message != "")
	}
	return map[string]any{
		"spec": o.Spec, "generation": o.Metadata.Generation, "observedGeneration": o.Status.ObservedGeneration,
		"conditions": conditions, "verdict": o.Status.Verdict,
		"has begun": o.Status.StartTime != "", "has ended": o.Status.CompletionTime != "",
		"a run is active": o.Status.Active != "",
	}
}

// Load tests in each state.
func TestObjectsOfLoadTests(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		create := func(name string, change func(*v1alpha1.RedisLoadTest)) {
			w.create(newLoadTest(name, redis.address(), change))
		}
		create("checkout-cache", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%")}
			test.Spec.Load.Duration = length(10 * time.Second)
		})
		w.keep("new", w.loadTest("checkout-cache"))
		w.kubelet.Start()
		startOperator(w.place, spy{})
		create("held", func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true })
		w.keep("running", w.testHasReason("checkout-cache", time.Minute, v1alpha1.ReasonRunning))
		passed := w.testEnds("checkout-cache", time.Minute)
		w.keep("passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.create(copied)
		w.keep("restored", w.testEnds("restored", time.Minute))
		w.keep("suspended", w.testHasReason("held", time.Minute, v1alpha1.ReasonSuspended))
		create("too-slow", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Objectives = &v1alpha1.Objectives{MaxLatencyP99: length(time.Microsecond)}
			test.Spec.Client.AddedLatency = length(5 * time.Millisecond)
		})
		w.keep("missed", w.testEnds("too-slow", time.Minute))
		create("given-up", func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = length(time.Hour) })
		w.testHasReason("given-up", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(10 * time.Second)
		w.mustChange(change(w.place, w.loadTest("given-up"), func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		w.keep("aborted", w.testEnds("given-up", time.Minute))
		create("no-secret", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth = &v1alpha1.RedisAuth{
				PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "gone", Key: "password"},
			}
			test.Spec.Pods.StartDeadline = *length(30 * time.Second)
		})
		w.keep("failed", w.testEnds("no-secret", 5*time.Minute))
	})
}

// Faults in each state.
func TestObjectsOfFaults(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.create(plainFault("kill-primary", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = length(20 * time.Second)
		}))
		w.keep("new", w.fault("kill-primary"))
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(plainFault("held", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }))
		w.keep("suspended", w.faultHasReason("held", time.Minute, v1alpha1.ReasonSuspended))
		load := longRun(redis.address())
		load.Spec.Suspend = true
		w.create(load)
		w.keep("waiting", w.faultHasReason("kill-primary", time.Minute, v1alpha1.ReasonWaitingForLoad))
		w.mustChange(change(w.place, load, func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = false }))
		passed := w.faultEnds("kill-primary", 5*time.Minute)
		w.keep("passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.create(copied)
		w.keep("restored", w.faultEnds("restored", time.Minute))
		w.create(plainFault("rehearsal", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) { f.Spec.DryRun = true }))
		w.keep("dryrun", w.faultEnds("rehearsal", 5*time.Minute))
		time.Sleep(30 * time.Second) // or the throughput before the fault would not be steady
		w.create(plainFault("too-long", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: length(100 * time.Millisecond)}
		}))
		w.keep("missed", w.faultEnds("too-long", 5*time.Minute))
		w.create(hzFor("slow", "50", 20*time.Second))
		w.keep("active", w.faultHasReason("slow", time.Minute, v1alpha1.ReasonActive))
		w.keep("lasted", w.faultEnds("slow", 5*time.Minute))
		w.create(hzFor("given-up", "50", 5*time.Minute))
		w.faultHasReason("given-up", time.Minute, v1alpha1.ReasonActive)
		w.mustChange(change(w.place, w.fault("given-up"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		w.keep("aborted", w.faultEnds("given-up", 5*time.Minute))
		w.create(plainFault("no-load", "gone", v1alpha1.FaultPodKill, nil))
		w.keep("failed", w.faultEnds("no-load", 5*time.Minute))
		redis.downFor = time.Hour
		w.create(plainFault("dead", "run", v1alpha1.FaultPodKill, nil))
		w.keep("not-recovered", w.faultEnds("dead", 5*time.Minute))
	})
}

// Experiments in each state.
func TestObjectsOfExperiments(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		create := func(name string, change func(*v1alpha1.RedisExperiment)) {
			w.create(newExperiment(name, redis.address(), func(e *v1alpha1.RedisExperiment) {
				e.Spec.Order = v1alpha1.OrderSequential
				if change != nil {
					change(e)
				}
			}))
		}
		create("latency", nil)
		w.keep("new", w.experiment("latency"))
		w.kubelet.Start()
		startOperator(w.place, spy{})
		create("held", func(e *v1alpha1.RedisExperiment) { e.Spec.Suspend = true })
		w.keep("suspended", w.experimentHasReason("held", v1alpha1.ReasonSuspended))
		w.keep("running", w.experimentHasReason("latency", v1alpha1.ReasonRunning))
		passed := w.experimentEnds("latency", 10*time.Minute)
		w.keep("passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.create(copied)
		w.keep("restored", w.experimentEnds("restored", time.Minute))
		create("not-worse", func(e *v1alpha1.RedisExperiment) { e.Spec.Compare.Require = v1alpha1.RequireNotWorse })
		w.keep("missed", w.experimentEnds("not-worse", 10*time.Minute))
		create("given-up", nil)
		w.experimentHasReason("given-up", v1alpha1.ReasonRunning)
		time.Sleep(5 * time.Second)
		w.mustChange(change(w.place, w.experiment("given-up"), func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
		w.keep("aborted", w.experimentEnds("given-up", time.Minute))
		create("no-field", func(e *v1alpha1.RedisExperiment) { e.Spec.Matrix[0].Path = "client.latency" })
		w.keep("failed", w.experimentEnds("no-field", time.Minute))
	})
}

// Schedules in each state.
func TestObjectsOfSchedules(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		n.takes = slower(2*time.Millisecond, night(3), night(1000))
		n.create(newSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			toLast(e)
			e.Spec.Template.Spec.Order = v1alpha1.OrderSequential
			e.Spec.Template.Spec.Objectives = &v1alpha1.ExperimentObjectives{NoRegression: true}
		}))
		n.keep("new", n.schedule("nightly"))
		startOperator(n.place, spy{})
		n.create(newSchedule("no-field", func(s *v1alpha1.RedisExperimentSchedule) {
			s.Spec.Template.Spec.Matrix[0].Path = "client.latency"
		}))
		time.Sleep(time.Minute)
		n.keep("waiting", n.schedule("nightly"))
		n.keep("invalid", n.schedule("no-field"))
		n.runsHaveEnded("nightly", 2, longAfter)
		time.Sleep(time.Hour)
		n.keep("passed", n.schedule("nightly"))
		n.scheduleIs("nightly", "it runs", longAfter, func(e *v1alpha1.RedisExperimentSchedule) bool {
			return e.Status.Active != ""
		})
		time.Sleep(2 * time.Second)
		n.keep("running", n.schedule("nightly"))
		n.runsHaveEnded("nightly", 3, longAfter)
		time.Sleep(time.Hour)
		n.keep("regressed", n.schedule("nightly"))
		n.mustChange(change(n.place, n.schedule("nightly"), func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.Suspend = true
		}))
		time.Sleep(time.Minute)
		n.keep("suspended", n.schedule("nightly"))
	})
}

// experimentHasReason waits for a reason of the condition Complete.
func (p *place) experimentHasReason(name, want string) *v1alpha1.RedisExperiment {
	p.t.Helper()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.until(name+" is "+want, time.Hour, func() bool {
		p.read(e)
		return reason(e.Status.Conditions) == want
	}, func() string { return where(e.Status.Conditions) })
	return e
}

// plainFault is newFault without allowances, as people write it.
func plainFault(name, test string, kind v1alpha1.FaultType, change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	f := newFault(name, test, kind, change)
	f.Spec.Allow = nil
	return f
}
