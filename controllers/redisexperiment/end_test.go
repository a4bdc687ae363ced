package redisexperiment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A setting does not stay because the load of its run cannot be created: the run ends, its setting is reverted, and the
// experiment goes on.
func TestRunThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	tests := v1alpha1.GroupVersion.WithResource("redisloadtests").GroupResource()
	kind := v1alpha1.GroupVersion.WithKind("RedisLoadTest").GroupKind()
	for name, refusal := range map[string]struct {
		err  error
		says string
		ends time.Duration
	}{
		"a quota": {
			apierrors.NewForbidden(tests, "x", errors.New("exceeded quota: most")),
			"exceeded quota: most", 15 * time.Minute,
		},
		"a webhook that does not answer": {
			apierrors.NewInternalError(errors.New("failed calling webhook")),
			"failed calling webhook", 15 * time.Minute,
		},
		"a value that is refused": {
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(field.NewPath("spec", "load"), "s3cret", "no")}),
			"spec.load: no",
			3 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Kubelet.Start()
				before := redis.Setting("hz", "")
				operatortest.StartOperator(w.Place, operatortest.Spy{Before: func(wr operatortest.Write) error {
					test, is := wr.Object.(*v1alpha1.RedisLoadTest)
					if is && wr.Verb == "create" && !strings.Contains(test.Name, "-check-") &&
						strings.HasSuffix(test.Annotations[v1alpha1.AnnotationCell], "hz=50") {
						return refusal.err
					}
					return nil
				}})
				w.Create(operatortest.NewExperiment("settings", redis.Address(), withSetting))
				e := w.ExperimentEnds("settings", refusal.ends)
				if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Finished != 4 ||
					e.Status.Progress.Failed != 2 {
					w.T.Errorf("%s; %+v", operatortest.Where(e.Status.Conditions), e.Status.Progress)
				}
				if c := e.Status.Cells[1]; !strings.Contains(c.Message, refusal.says) || strings.Contains(c.Message, "s3cret") {
					w.T.Errorf("%+v", c)
				}
				if hz := redis.Setting("hz", ""); hz != before {
					w.T.Errorf("hz is %s in the end, was %s", hz, before)
				}
				for _, f := range w.Faults() {
					if f.Spec.Setting && operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded &&
						operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonAborted {
						w.T.Errorf("%s: %s", f.Name, operatortest.Where(f.Status.Conditions))
					}
				}
			})
		})
	}
}

// An experiment whose figures cannot be stored can be aborted.
func TestAbortWithARecordOfSomebodyElse(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "latency-experiment"}})
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), nil))
		w.Until("it says so", time.Minute, func() bool {
			return operatortest.Reason(w.Experiment("latency").Status.Conditions) == v1alpha1.ReasonObjectNotOwned
		}, func() string { return operatortest.Where(w.Experiment("latency").Status.Conditions) })
		w.MustChange(operatortest.Change(w.Place, w.Experiment("latency"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Abort = true
		}))
		if e := w.ExperimentEnds("latency", time.Minute); operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonAborted {
			w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
		}
	})
}

// Aborted at any moment of a run, an experiment leaves neither a load that runs nor a setting, and says why the run has
// no figures.
func TestExperimentIsAbortedAnywhere(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 12; n++ {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				w.Kubelet.Start()
				before := redis.Setting("hz", "")
				writes := 0
				operatortest.StartOperator(w.Place, operatortest.Spy{After: func(wr operatortest.Write) {
					if !ofExperiment(wr) || strings.Contains(wr.Object.GetName(), "-check-") {
						return
					}
					if writes++; writes == n {
						w.MustChange(operatortest.Change(w.Place, w.Experiment("settings"), func(e *v1alpha1.RedisExperiment) {
							e.Spec.Abort = true
						}))
					}
				}})
				w.Create(operatortest.NewExperiment("settings", redis.Address(), func(e *v1alpha1.RedisExperiment) {
					withSetting(e)
					e.Spec.Order, e.Spec.Matrix[0].Settings = v1alpha1.OrderSequential, e.Spec.Matrix[0].Settings[1:]
					e.Spec.CompareTo = &v1alpha1.EarlierRun{Run: "other"}
					e.Spec.Template.Spec.Load.Duration = operatortest.Length(time.Minute)
				}))
				e := w.ExperimentEnds("settings", 5*time.Minute)
				if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonAborted {
					w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
				}
				for _, c := range e.Status.Cells {
					if strings.Contains(c.Message, "deleted") {
						w.T.Errorf("%+v", c)
					}
				}
				for _, test := range w.RunsOf("settings") {
					if !state.IsFinished(test.Status.Conditions) {
						w.T.Errorf("%s goes on: %s", test.Name, operatortest.Where(test.Status.Conditions))
					}
				}
				if hz := redis.Setting("hz", ""); hz != before {
					w.T.Errorf("hz is %s in the end, was %s", hz, before)
				}
				w.T.Logf("%d writes; %+v", writes, e.Status.Cells)
			})
		})
	}
}

// What another version has planned, and this one cannot plan, ends with its run.
func TestRunOfAnotherVersion(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		before := w.Redis.Setting("hz", "")
		w.Create(operatortest.NewExperiment("settings", w.Redis.Address(), func(e *v1alpha1.RedisExperiment) {
			withSetting(e)
			e.Spec.Order, e.Spec.Template.Spec.Load.Duration = v1alpha1.OrderSequential, operatortest.Length(10*time.Minute)
		}))
		w.MustChange(operatortest.Change(w.Place, w.TestHasReason("settings-0001", time.Minute, v1alpha1.ReasonRunning),
			func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		w.TestHasReason("settings-0002", time.Minute, v1alpha1.ReasonRunning)
		w.MustChange(operatortest.Change(w.Place, w.Experiment("settings"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Baseline = map[string]v1alpha1.ValueName{"hz": "none"}
		}))
		e := w.ExperimentEnds("settings", 2*time.Minute)
		if operatortest.Reason(e.Status.Conditions) != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(operatortest.Where(e.Status.Conditions), "spec.baseline.hz") {
			w.T.Errorf("%s", operatortest.Where(e.Status.Conditions))
		}
		if test := w.LoadTest("settings-0002"); operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonAborted {
			w.T.Errorf("the load test: %s", operatortest.Where(test.Status.Conditions))
		}
		if hz := w.Redis.Setting("hz", ""); hz != before {
			w.T.Errorf("hz is %s in the end, was %s", hz, before)
		}
	})
}

// Old load tests are deleted although one of them is gone already.
func TestOldRunsAreDeletedAcrossAGap(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewExperiment("latency", w.Redis.Address(), nil))
		w.TestHasReason("latency-0006", 10*time.Minute, v1alpha1.ReasonRunning)
		w.MustChange(w.Client.Delete(context.Background(), w.LoadTest("latency-0004")))
		w.MustChange(operatortest.Change(w.Place, w.Experiment("latency"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.LoadTestsHistoryLimit = new(int32(2))
		}))
		w.ExperimentEnds("latency", 10*time.Minute)
		if runs := w.RunsOf("latency"); len(runs) != 2 || runs[0].Name != "latency-0007" {
			w.T.Errorf("%d load tests are left, the first is %s", len(runs), runs[0].Name)
		}
	})
}
