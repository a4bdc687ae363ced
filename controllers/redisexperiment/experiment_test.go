package redisexperiment_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

func TestExperiment(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		p, t := w.Place, w.T
		p.Create(operatortest.NewExperiment("latency", p.Redis.Address(), nil))
		e := p.ExperimentEnds("latency", 10*time.Minute)
		st := &e.Status
		if operatortest.Reason(st.Conditions) != v1alpha1.ReasonSucceeded || st.Verdict != v1alpha1.VerdictPass ||
			len(st.Comparison) != 1 {
			t.Fatalf("%s, verdict %s, comparison %+v", operatortest.Where(st.Conditions), st.Verdict, st.Comparison)
		}
		if c := st.Comparison[0]; c.Verdict != v1alpha1.ComparisonWorse || c.Cell != "latency=10ms" || c.Repeats != 4 {
			t.Errorf("comparison %+v", c)
		}
		t.Logf("%s: %s; %s", operatortest.Reason(st.Conditions), operatortest.Where(st.Conditions), st.Comparison[0].Message)
		runs := p.RunsOf("latency")
		if len(runs) != 8 || runs[0].Name != "latency-0001" {
			t.Errorf("%d runs", len(runs))
		}
		rounds := map[string][]string{}
		for i := range runs {
			round := runs[i].Labels[v1alpha1.LabelRound]
			rounds[round] = append(rounds[round], runs[i].Annotations[v1alpha1.AnnotationCell])
			if i > 0 && runs[i].Status.StartTime.Before(runs[i-1].Status.CompletionTime) {
				t.Errorf("%s began before %s had ended", runs[i].Name, runs[i-1].Name)
			}
		}
		for round, cells := range rounds {
			if slices.Sort(cells); !slices.Equal(cells, []string{"latency=10ms", "latency=5ms"}) {
				t.Errorf("round %s ran %q", round, cells)
			}
		}
		if len(st.Warnings) > 0 {
			t.Errorf("warnings %q", st.Warnings)
		}
		if d := st.Display; d.Progress != "8/8" || d.Cells != "2" || d.Worse != "1/1" {
			t.Errorf("display %+v", d)
		}
	})
}

// ofExperiment are the writes for an experiment.
func ofExperiment(w operatortest.Write) bool {
	if _, is := w.Object.(*v1alpha1.RedisExperiment); is {
		return true
	}
	owner := metav1.GetControllerOf(w.Object)
	return owner != nil && owner.Kind == "RedisExperiment" && w.Verb != "patch-status"
}

// The operator ends just before or after each of its writes for an experiment. Another process continues, and the
// result is the same: no run that has ended runs again, and none is missing.
func TestExperimentSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 32; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				operatortest.InWorld(t, func(w *operatortest.World) {
					redis := w.StartRedis("")
					w.Kubelet.Start()
					var writes atomic.Int32
					loads := sync.Map{}
					starts := operatortest.KeepRunning(w.Place, func(self func() *operatortest.Operator) operatortest.Spy {
						s := operatortest.CrashAtOf(n, after, &writes, ofExperiment, self)
						also := s.After
						s.After = func(w operatortest.Write) {
							if test, is := w.Object.(*v1alpha1.RedisLoadTest); is && w.Verb == "create" &&
								!strings.Contains(test.Name, "-check-") {
								loads.Store(test.UID, test.Name)
							}
							if also != nil {
								also(w)
							}
						}
						return s
					})
					w.Create(operatortest.NewExperiment("latency", redis.Address(), func(e *v1alpha1.RedisExperiment) {
						e.Spec.Repeat = 2
					}))
					e := w.ExperimentEnds("latency", 5*time.Minute)
					if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Finished != 4 ||
						e.Status.Progress.Inconclusive != 0 {
						w.T.Fatalf("%s; %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress)
					}
					made := 0
					loads.Range(func(_, _ any) bool { made++; return true })
					if runs := w.RunsOf("latency"); len(runs) != 4 || made > 4 {
						w.T.Errorf("%d load tests are there, %d were created; want 4", len(runs), made)
					}
					for _, c := range e.Status.Cells {
						if c.Finished != 2 {
							w.T.Errorf("%+v", c)
						}
					}
					w.T.Logf("%d processes, %d writes", starts.Load(), writes.Load())
				})
			})
		}
	}
}

func TestExperimentIsAborted(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Template.Spec.Load.Duration = operatortest.Length(time.Minute)
		}))
		w.TestHasReason("latency-0001", time.Minute, v1alpha1.ReasonRunning)
		w.MustChange(operatortest.Change(w.Place, w.Experiment("latency"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Abort = true
		}))
		e := w.ExperimentEnds("latency", 30*time.Second)
		if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonAborted ||
			e.Status.Verdict != v1alpha1.VerdictInconclusive ||
			e.Status.Progress.Finished != 1 || e.Status.Run != nil {
			w.T.Errorf("%s, verdict %s, %+v", operatortest.Where(e.Status.Conditions), e.Status.Verdict, e.Status.Progress)
		}
		if test := w.LoadTest("latency-0001"); operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonAborted {
			w.T.Errorf("the load test: %s", operatortest.Where(test.Status.Conditions))
		}
	})
}

// Suspended, an experiment ends the run that is under way, and goes on afterwards.
func TestExperimentIsSuspended(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Repeat = 1
		}))
		w.TestHasReason("latency-0001", time.Minute, v1alpha1.ReasonRunning)
		suspend := func(held bool) {
			w.MustChange(operatortest.Change(w.Place, w.Experiment("latency"), func(e *v1alpha1.RedisExperiment) {
				e.Spec.Suspend = held
			}))
		}
		suspend(true)
		time.Sleep(time.Minute)
		e := w.Experiment("latency")
		if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSuspended || e.Status.Progress.Finished != 1 ||
			len(w.RunsOf("latency")) != 1 {
			w.T.Errorf("%s, %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress)
		}
		suspend(false)
		if e := w.ExperimentEnds("latency",
			time.Minute); operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded ||
			e.Status.Progress.Finished != 2 {
			w.T.Errorf("%s, %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress)
		}
	})
}

// A run that cannot complete, or misses an objective, is counted; with stopOnFailure it is the last.
func TestRunsThatFail(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stop %v", stop), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
					e.Spec.StopOnFailure, e.Spec.Order = stop, v1alpha1.OrderSequential
					e.Spec.Template.Spec.Objectives = &v1alpha1.Objectives{MaxLatencyP99: operatortest.Length(7 * time.Millisecond)}
				}))
				e := w.ExperimentEnds("latency", 10*time.Minute)
				st := &e.Status
				switch {
				case stop && (operatortest.Reason(st.Conditions) != v1alpha1.ReasonRunFailed || st.Progress.Finished != 2 ||
					st.Verdict != v1alpha1.VerdictFail ||
					!meta.IsStatusConditionFalse(st.Conditions, v1alpha1.ConditionObjectivesMet) || len(st.Comparison) != 1 ||
					st.Comparison[0].Verdict != ""):
					w.T.Errorf("%s, %+v, %+v", operatortest.Where(st.Conditions), st.Progress, st.Comparison)
				case !stop && (operatortest.Reason(st.Conditions) != v1alpha1.ReasonSucceeded || st.Progress.Finished != 8 ||
					st.Progress.Failed != 4 || st.Verdict != v1alpha1.VerdictFail):
					w.T.Errorf("%s, %+v, verdict %s", operatortest.Where(st.Conditions), st.Progress, st.Verdict)
				}
				w.T.Logf("%s; %s", operatortest.Where(st.Conditions),
					meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionObjectivesMet).Message)
			})
		})
	}
}

// A load test that is deleted is a run without figures, and the experiment goes on.
func TestRunIsDeleted(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Repeat = 2
		}))
		w.MustChange(w.Client.Delete(context.Background(),
			w.TestHasReason("latency-0001", time.Minute, v1alpha1.ReasonRunning)))
		e := w.ExperimentEnds("latency", 5*time.Minute)
		if e.Status.Progress.Finished != 4 || e.Status.Progress.Inconclusive != 1 ||
			e.Status.Verdict != v1alpha1.VerdictInconclusive {
			w.T.Errorf("%s, %+v, verdict %s", operatortest.Where(e.Status.Conditions), e.Status.Progress, e.Status.Verdict)
		}
	})
}

// Old load tests are deleted; their figures are not.
func TestOldRunsAreDeleted(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			e.Spec.LoadTestsHistoryLimit = new(int32(3))
		}))
		e := w.ExperimentEnds("latency", 10*time.Minute)
		runs := w.RunsOf("latency")
		if len(runs) != 3 || runs[0].Name != "latency-0006" || e.Status.Comparison[0].Repeats != 4 ||
			e.Status.Comparison[0].Verdict != v1alpha1.ComparisonWorse {
			w.T.Errorf("%d load tests are left; comparison %+v", len(runs), e.Status.Comparison)
		}
	})
}

// What cannot run is refused before anything runs.
func TestExperimentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change       func(*v1alpha1.RedisExperiment)
		reason, want string
	}{
		"unknown path": {
			func(e *v1alpha1.RedisExperiment) { e.Spec.Matrix[0].Path = "client.latency" },
			v1alpha1.ReasonInvalidSpec,
			"spec.matrix[0], value 5ms: there is no field latency in client",
		},
		"a fault that cannot be injected": {func(e *v1alpha1.RedisExperiment) {
			e.Spec.Faults = []v1alpha1.ExperimentFault{
				{Name: "kill", Spec: v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultFailover}}},
			}
		}, v1alpha1.ReasonRefused, "cell latency=5ms: fault kill: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), test.change))
				e := w.ExperimentEnds("latency", 2*time.Minute)
				c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionComplete)
				if c.Reason != test.reason || !strings.Contains(c.Message, test.want) || len(w.RunsOf("latency")) > 0 {
					w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
				}
				w.T.Log(c.Message)
			})
		})
	}
}

// Whoever changes the ConfigMap does not decide what runs.
func TestRecordIsChanged(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*experiment.Record){
		"other cells": func(r *experiment.Record) { r.Cells = append(r.Cells, "latency=20ms") },
		"fewer runs":  func(r *experiment.Record) { r.Runs = nil },
		"more runs": func(r *experiment.Record) {
			for range 20 {
				r.Runs = append(r.Runs, r.Runs[0])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), nil))
				w.TestHasReason("latency-0002", time.Minute, v1alpha1.ReasonRunning)
				stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "latency-experiment"}}
				w.MustChange(operatortest.Change(w.Place, stored, func(m *corev1.ConfigMap) {
					r, err := experiment.DecodeRecord(m.BinaryData["runs.json.gz"])
					if err != nil {
						w.T.Fatal(err)
					}
					edit(r)
					if m.BinaryData["runs.json.gz"], err = r.Encode(); err != nil {
						w.T.Fatal(err)
					}
				}))
				e := w.ExperimentEnds("latency", 2*time.Minute)
				if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonResultsNotStorable ||
					!strings.Contains(operatortest.Where(e.Status.Conditions), "ConfigMap latency-experiment was ") {
					w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
				}
			})
		})
	}
}

// withSetting is an experiment on a setting of the server, beside the latency.
func withSetting(e *v1alpha1.RedisExperiment) {
	e.Spec.Repeat = 2
	e.Spec.Matrix = []v1alpha1.ExperimentParameter{{Name: "hz", Settings: []v1alpha1.ExperimentSetting{
		{Name: "as-is"}, {Name: "50", Config: map[string]v1alpha1.ParameterValue{"hz": "50"}},
	}}}
}

// A setting is in force for the load of its cells, and reverted after each.
func TestSettingsOfCells(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Kubelet.Start()
		seen := map[string]string{}
		var mu sync.Mutex
		operatortest.StartOperator(w.Place, operatortest.Spy{After: func(wr operatortest.Write) {
			test, is := wr.Object.(*v1alpha1.RedisLoadTest)
			if !is || wr.Verb != "patch-status" || operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonRunning {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[test.Name+" "+test.Annotations[v1alpha1.AnnotationCell]] = redis.Setting("hz", "")
		}})
		before := redis.Setting("hz", "")
		w.Create(operatortest.NewExperiment("settings", redis.Address(), withSetting))
		e := w.ExperimentEnds("settings", 5*time.Minute)
		if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Inconclusive != 0 ||
			e.Status.Progress.Finished != 4 {
			w.T.Fatalf("%s; %+v; %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress, e.Status.Cells)
		}
		if len(seen) != 4 {
			w.T.Errorf("seen %v", seen)
		}
		for run, hz := range seen {
			if want := map[bool]string{true: "50", false: before}[strings.HasSuffix(run, "hz=50")]; hz != want {
				w.T.Errorf("%s ran with hz %s, want %s", run, hz, want)
			}
		}
		if hz := redis.Setting("hz", ""); hz != before {
			w.T.Errorf("hz is %s in the end, was %s", hz, before)
		}
		for _, f := range w.Faults() {
			if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || f.Status.Verdict != v1alpha1.VerdictPass {
				w.T.Errorf("%s: %s, verdict %s", f.Name, operatortest.Where(f.Status.Conditions), f.Status.Verdict)
			}
		}
		for i, test := range w.RunsOf("settings") {
			if len(test.Status.Faults) > 0 {
				w.T.Errorf("run %d has the faults %+v", i, test.Status.Faults)
			}
		}
	})
}

// A fault that restarts the server loses the setting: such a run says so, and is not compared.
func TestSettingIsLostInARun(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("lost", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			withSetting(e)
			e.Spec.Template.Spec.Load.Duration = operatortest.Length(40 * time.Second)
			e.Spec.Template.Spec.Load.UntilFaultsSettle = operatortest.Length(time.Minute)
			e.Spec.Compare.Figures = nil
			e.Spec.Faults = []v1alpha1.ExperimentFault{
				{Name: "kill", RandomDelay: operatortest.Length(3 * time.Second), Spec: v1alpha1.RedisFaultSpec{
					Action:  v1alpha1.Action{Type: v1alpha1.FaultPodKill},
					Trigger: v1alpha1.FaultTrigger{After: operatortest.Length(20 * time.Second)},
				}},
			}
		}))
		e := w.ExperimentEnds("lost", 10*time.Minute)
		if e.Status.Progress.Finished != 4 || e.Status.Progress.Inconclusive != 2 ||
			e.Status.Verdict != v1alpha1.VerdictInconclusive {
			w.T.Errorf("%s; %+v; %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress, e.Status.Cells)
		}
		if c := e.Status.Cells[1]; c.Inconclusive != 2 ||
			!strings.Contains(c.Message, "the setting Config was not in force for the whole load") {
			w.T.Errorf("%+v", c)
		}
		delays := map[time.Duration]bool{}
		for _, f := range w.Faults() {
			if f.Spec.Trigger.After != nil {
				delays[f.Spec.Trigger.After.Duration] = true
			}
		}
		if len(delays) < 3 {
			w.T.Errorf("the faults come after %v", delays)
		}
		w.T.Logf("%s; %+v", operatortest.Where(e.Status.Conditions), e.Status.Cells)
	})
}

// A ConfigMap of somebody else is not overwritten, and the message says what to do.
func TestRecordOfSomebodyElse(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		theirs := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "latency-experiment"},
			Data:       map[string]string{"a": "b"},
		}
		w.Create(theirs)
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Repeat = 1
		}))
		w.Until("it says so", time.Minute, func() bool {
			return operatortest.Reason(w.Experiment("latency").Status.Conditions) == v1alpha1.ReasonObjectNotOwned
		}, func() string { return operatortest.Where(w.Experiment("latency").Status.Conditions) })
		if w.Read(theirs); theirs.Data["a"] != "b" {
			w.T.Errorf("it was overwritten: %+v", theirs)
		}
		w.MustChange(w.Client.Delete(context.Background(), theirs))
		if e := w.ExperimentEnds("latency", 2*time.Minute); e.Status.Progress.Finished != 2 {
			w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
		}
	})
}
