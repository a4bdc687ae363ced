package virtual

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
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

var updateObjects = flag.Bool("update-objects", false, "write the objects that the tests of Argo CD and Flux read")

// customizations is the folder with the files for Argo CD, a folder for each kind.
const customizations = "../../config/argocd/resource_customizations/redquake.dev"

// keep compares an object with the file testdata/NAME.yaml of its kind, which the tests of Argo CD's scripts, of
// kstatus and of a real Argo CD read: in all that tools conclude something from. Figures and times may differ.
func keep(w *operatortest.World, name string, object client.Object) {
	w.T.Helper()
	kinds, _, err := w.Client.Scheme().ObjectKinds(object)
	if err != nil {
		w.T.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	text, err := yaml.Marshal(object)
	if err != nil {
		w.T.Fatal(err)
	}
	path := filepath.Join(customizations, kinds[0].Kind, "testdata", name+".yaml")
	if *updateObjects {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.T.Fatal(err)
		}
		if err := os.WriteFile(path,
			append([]byte("# As the operator has left it in a test. Written by make objects-gitops.\n"), text...),
			0o644); err != nil {
			w.T.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil {
		w.T.Fatalf("%v: run make objects-gitops", err)
	}
	if diff := cmp.Diff(essence(w.T, stored), essence(w.T, text)); diff != "" {
		w.T.Errorf("%s is not what the operator writes: run make objects-gitops (-stored +written)\n%s", path, diff)
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
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		create := func(name string, change func(*v1alpha1.RedisLoadTest)) {
			w.Create(operatortest.NewLoadTest(name, redis.Address(), change))
		}
		create("checkout-cache", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Objectives = &v1alpha1.Objectives{MaxErrorRate: new("1%")}
			test.Spec.Load.Duration = operatortest.Length(10 * time.Second)
		})
		keep(w, "new", w.LoadTest("checkout-cache"))
		w.Kubelet.Start()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		create("held", func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = true })
		keep(w, "running", w.TestHasReason("checkout-cache", time.Minute, v1alpha1.ReasonRunning))
		passed := w.TestEnds("checkout-cache", time.Minute)
		keep(w, "passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.Create(copied)
		keep(w, "restored", w.TestEnds("restored", time.Minute))
		keep(w, "suspended", w.TestHasReason("held", time.Minute, v1alpha1.ReasonSuspended))
		create("too-slow", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Objectives = &v1alpha1.Objectives{MaxLatencyP99: operatortest.Length(time.Microsecond)}
			test.Spec.Client.AddedLatency = operatortest.Length(5 * time.Millisecond)
		})
		keep(w, "missed", w.TestEnds("too-slow", time.Minute))
		create("given-up", func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = operatortest.Length(time.Hour) })
		w.TestHasReason("given-up", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(10 * time.Second)
		w.MustChange(operatortest.Change(w.Place, w.LoadTest("given-up"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Abort = true
		}))
		keep(w, "aborted", w.TestEnds("given-up", time.Minute))
		create("no-secret", func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Target.Auth = &v1alpha1.RedisAuth{
				PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "gone", Key: "password"},
			}
			test.Spec.Pods.StartDeadline = *operatortest.Length(30 * time.Second)
		})
		keep(w, "failed", w.TestEnds("no-secret", 5*time.Minute))
	})
}

// Faults in each state.
func TestObjectsOfFaults(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Create(operatortest.PlainFault("kill-primary", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger.After = operatortest.Length(20 * time.Second)
		}))
		keep(w, "new", w.Fault("kill-primary"))
		w.Kubelet.Start()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		w.Create(operatortest.PlainFault("held", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Suspend = true
		}))
		keep(w, "suspended", w.FaultHasReason("held", time.Minute, v1alpha1.ReasonSuspended))
		load := operatortest.LongRun(redis.Address())
		load.Spec.Suspend = true
		w.Create(load)
		keep(w, "waiting", w.FaultHasReason("kill-primary", time.Minute, v1alpha1.ReasonWaitingForLoad))
		w.MustChange(operatortest.Change(w.Place, load, func(test *v1alpha1.RedisLoadTest) { test.Spec.Suspend = false }))
		passed := w.FaultEnds("kill-primary", 5*time.Minute)
		keep(w, "passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.Create(copied)
		keep(w, "restored", w.FaultEnds("restored", time.Minute))
		w.Create(operatortest.PlainFault("rehearsal", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.DryRun = true
		}))
		keep(w, "dryrun", w.FaultEnds("rehearsal", 5*time.Minute))
		time.Sleep(30 * time.Second) // or the throughput before the fault would not be steady
		w.Create(operatortest.PlainFault("too-long", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxOutage: operatortest.Length(100 * time.Millisecond)}
		}))
		keep(w, "missed", w.FaultEnds("too-long", 5*time.Minute))
		w.Create(operatortest.HzFor("slow", "50", 20*time.Second))
		keep(w, "active", w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive))
		keep(w, "lasted", w.FaultEnds("slow", 5*time.Minute))
		w.Create(operatortest.HzFor("given-up", "50", 5*time.Minute))
		w.FaultHasReason("given-up", time.Minute, v1alpha1.ReasonActive)
		w.MustChange(operatortest.Change(w.Place, w.Fault("given-up"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		keep(w, "aborted", w.FaultEnds("given-up", 5*time.Minute))
		w.Create(operatortest.PlainFault("no-load", "gone", v1alpha1.FaultPodKill, nil))
		keep(w, "failed", w.FaultEnds("no-load", 5*time.Minute))
		redis.DownFor = time.Hour
		w.Create(operatortest.PlainFault("dead", "run", v1alpha1.FaultPodKill, nil))
		keep(w, "not-recovered", w.FaultEnds("dead", 5*time.Minute))
	})
}

// Experiments in each state.
func TestObjectsOfExperiments(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		create := func(name string, change func(*v1alpha1.RedisExperiment)) {
			w.Create(operatortest.NewExperiment(name, redis.Address(), func(e *v1alpha1.RedisExperiment) {
				e.Spec.Order = v1alpha1.OrderSequential
				if change != nil {
					change(e)
				}
			}))
		}
		create("latency", nil)
		keep(w, "new", w.Experiment("latency"))
		w.Kubelet.Start()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		create("held", func(e *v1alpha1.RedisExperiment) { e.Spec.Suspend = true })
		keep(w, "suspended", experimentHasReason(w.Place, "held", v1alpha1.ReasonSuspended))
		keep(w, "running", experimentHasReason(w.Place, "latency", v1alpha1.ReasonRunning))
		passed := w.ExperimentEnds("latency", 10*time.Minute)
		keep(w, "passed", passed)
		copied := fromBackup(passed)
		copied.Name = "restored"
		w.Create(copied)
		keep(w, "restored", w.ExperimentEnds("restored", time.Minute))
		create("not-worse", func(e *v1alpha1.RedisExperiment) { e.Spec.Compare.Require = v1alpha1.RequireNotWorse })
		keep(w, "missed", w.ExperimentEnds("not-worse", 10*time.Minute))
		create("given-up", nil)
		experimentHasReason(w.Place, "given-up", v1alpha1.ReasonRunning)
		time.Sleep(5 * time.Second)
		w.MustChange(operatortest.Change(w.Place, w.Experiment("given-up"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Abort = true
		}))
		keep(w, "aborted", w.ExperimentEnds("given-up", time.Minute))
		create("no-field", func(e *v1alpha1.RedisExperiment) { e.Spec.Matrix[0].Path = "client.latency" })
		keep(w, "failed", w.ExperimentEnds("no-field", time.Minute))
	})
}

// Schedules in each state.
func TestObjectsOfSchedules(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(3), scheduletest.Night(1000))
		n.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
			scheduletest.ToLast(e)
			e.Spec.Template.Spec.Order = v1alpha1.OrderSequential
			e.Spec.Template.Spec.Objectives = &v1alpha1.ExperimentObjectives{NoRegression: true}
		}))
		keep(n.World, "new", scheduletest.Schedule(n.World.Place, "nightly"))
		operatortest.StartOperator(n.Place, operatortest.Spy{})
		n.Create(scheduletest.NewSchedule("no-field", func(s *v1alpha1.RedisExperimentSchedule) {
			s.Spec.Template.Spec.Matrix[0].Path = "client.latency"
		}))
		time.Sleep(time.Minute)
		keep(n.World, "waiting", scheduletest.Schedule(n.World.Place, "nightly"))
		keep(n.World, "invalid", scheduletest.Schedule(n.World.Place, "no-field"))
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		time.Sleep(time.Hour)
		keep(n.World, "passed", scheduletest.Schedule(n.World.Place, "nightly"))
		scheduletest.ScheduleIs(n.World.Place, "nightly", "it runs", scheduletest.LongAfter,
			func(e *v1alpha1.RedisExperimentSchedule) bool {
				return e.Status.Active != ""
			})
		time.Sleep(2 * time.Second)
		keep(n.World, "running", scheduletest.Schedule(n.World.Place, "nightly"))
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
		time.Sleep(time.Hour)
		keep(n.World, "regressed", scheduletest.Schedule(n.World.Place, "nightly"))
		n.MustChange(operatortest.Change(n.Place, scheduletest.Schedule(n.World.Place, "nightly"),
			func(e *v1alpha1.RedisExperimentSchedule) {
				e.Spec.Suspend = true
			}))
		time.Sleep(time.Minute)
		keep(n.World, "suspended", scheduletest.Schedule(n.World.Place, "nightly"))
	})
}

// experimentHasReason waits for a reason of the condition Complete.
func experimentHasReason(p *operatortest.Place, name, want string) *v1alpha1.RedisExperiment {
	p.T.Helper()
	e := &v1alpha1.RedisExperiment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Until(name+" is "+want, time.Hour, func() bool {
		p.Read(e)
		return operatortest.Reason(e.Status.Conditions) == want
	}, func() string { return operatortest.Where(e.Status.Conditions) })
	return e
}
