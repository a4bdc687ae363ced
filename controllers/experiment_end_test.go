package controllers

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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				before := redis.setting("hz", "")
				startOperator(w.place, spy{Before: func(wr write) error {
					test, is := wr.Object.(*v1alpha1.RedisLoadTest)
					if is && wr.Verb == "create" && !strings.Contains(test.Name, "-check-") &&
						strings.HasSuffix(test.Annotations[v1alpha1.AnnotationCell], "hz=50") {
						return refusal.err
					}
					return nil
				}})
				w.create(newExperiment("settings", redis.address(), withSetting))
				e := w.experimentEnds("settings", refusal.ends)
				if reason(e.Status.Conditions) != v1alpha1.ReasonSucceeded || e.Status.Progress.Finished != 4 ||
					e.Status.Progress.Failed != 2 {
					w.t.Errorf("%s; %+v", where(e.Status.Conditions), e.Status.Progress)
				}
				if c := e.Status.Cells[1]; !strings.Contains(c.Message, refusal.says) || strings.Contains(c.Message, "s3cret") {
					w.t.Errorf("%+v", c)
				}
				if hz := redis.setting("hz", ""); hz != before {
					w.t.Errorf("hz is %s in the end, was %s", hz, before)
				}
				for _, f := range w.faults() {
					if f.Spec.Setting && reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded &&
						reason(f.Status.Conditions) != v1alpha1.ReasonAborted {
						w.t.Errorf("%s: %s", f.Name, where(f.Status.Conditions))
					}
				}
			})
		})
	}
}

// An experiment whose figures cannot be stored can be aborted.
func TestAbortWithARecordOfSomebodyElse(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "latency-experiment"}})
		w.create(newExperiment("latency", redis.address(), nil))
		w.until("it says so", time.Minute, func() bool {
			return reason(w.experiment("latency").Status.Conditions) == v1alpha1.ReasonObjectNotOwned
		}, func() string { return where(w.experiment("latency").Status.Conditions) })
		w.mustChange(change(w.place, w.experiment("latency"), func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
		if e := w.experimentEnds("latency", time.Minute); reason(e.Status.Conditions) != v1alpha1.ReasonAborted {
			w.t.Errorf("%s", where(e.Status.Conditions))
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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				before := redis.setting("hz", "")
				writes := 0
				startOperator(w.place, spy{After: func(wr write) {
					if !ofExperiment(wr) || strings.Contains(wr.Object.GetName(), "-check-") {
						return
					}
					if writes++; writes == n {
						w.mustChange(change(w.place, w.experiment("settings"), func(e *v1alpha1.RedisExperiment) { e.Spec.Abort = true }))
					}
				}})
				w.create(newExperiment("settings", redis.address(), func(e *v1alpha1.RedisExperiment) {
					withSetting(e)
					e.Spec.Order, e.Spec.Matrix[0].Settings = v1alpha1.OrderSequential, e.Spec.Matrix[0].Settings[1:]
					e.Spec.CompareTo = &v1alpha1.EarlierRun{Run: "other"}
					e.Spec.Template.Spec.Load.Duration = length(time.Minute)
				}))
				e := w.experimentEnds("settings", 5*time.Minute)
				if reason(e.Status.Conditions) != v1alpha1.ReasonAborted {
					w.t.Errorf("%s", where(e.Status.Conditions))
				}
				for _, c := range e.Status.Cells {
					if strings.Contains(c.Message, "deleted") {
						w.t.Errorf("%+v", c)
					}
				}
				for _, test := range w.runsOf("settings") {
					if !state.IsFinished(test.Status.Conditions) {
						w.t.Errorf("%s goes on: %s", test.Name, where(test.Status.Conditions))
					}
				}
				if hz := redis.setting("hz", ""); hz != before {
					w.t.Errorf("hz is %s in the end, was %s", hz, before)
				}
				w.t.Logf("%d writes; %+v", writes, e.Status.Cells)
			})
		})
	}
}

// What another version has planned, and this one cannot plan, ends with its run.
func TestRunOfAnotherVersion(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		before := redis.setting("hz", "")
		startOperator(w.place, spy{})
		w.create(newExperiment("settings", redis.address(), func(e *v1alpha1.RedisExperiment) {
			withSetting(e)
			e.Spec.Order, e.Spec.Template.Spec.Load.Duration = v1alpha1.OrderSequential, length(10*time.Minute)
		}))
		w.mustChange(change(w.place, w.testHasReason("settings-0001", time.Minute, v1alpha1.ReasonRunning),
			func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		w.testHasReason("settings-0002", time.Minute, v1alpha1.ReasonRunning)
		w.mustChange(change(w.place, w.experiment("settings"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.Baseline = map[string]v1alpha1.ValueName{"hz": "none"}
		}))
		e := w.experimentEnds("settings", 2*time.Minute)
		if reason(e.Status.Conditions) != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(where(e.Status.Conditions), "spec.baseline.hz") {
			w.t.Errorf("%s", where(e.Status.Conditions))
		}
		if test := w.loadTest("settings-0002"); reason(test.Status.Conditions) != v1alpha1.ReasonAborted {
			w.t.Errorf("the load test: %s", where(test.Status.Conditions))
		}
		if hz := redis.setting("hz", ""); hz != before {
			w.t.Errorf("hz is %s in the end, was %s", hz, before)
		}
	})
}

// Old load tests are deleted although one of them is gone already.
func TestOldRunsAreDeletedAcrossAGap(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newExperiment("latency", redis.address(), nil))
		w.testHasReason("latency-0006", 10*time.Minute, v1alpha1.ReasonRunning)
		w.mustChange(w.client.Delete(context.Background(), w.loadTest("latency-0004")))
		w.mustChange(change(w.place, w.experiment("latency"), func(e *v1alpha1.RedisExperiment) {
			e.Spec.LoadTestsHistoryLimit = new(int32(2))
		}))
		w.experimentEnds("latency", 10*time.Minute)
		if runs := w.runsOf("latency"); len(runs) != 2 || runs[0].Name != "latency-0007" {
			w.t.Errorf("%d load tests are left, the first is %s", len(runs), runs[0].Name)
		}
	})
}
