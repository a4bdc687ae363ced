package controllers

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
)

// fromBackup is what a backup creates of an object: what the API server sets is missing, and so is the status, which
// its kinds have as a subresource. Labels, annotations and finalizers are there.
func fromBackup[T client.Object](object T) T {
	o := object.DeepCopyObject().(T)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetDeletionTimestamp(nil)
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	switch o := any(o).(type) {
	case *v1alpha1.RedisLoadTest:
		o.Status = v1alpha1.RedisLoadTestStatus{}
	case *v1alpha1.RedisFault:
		o.Status = v1alpha1.RedisFaultStatus{}
	case *v1alpha1.RedisExperiment:
		o.Status = v1alpha1.RedisExperimentStatus{}
	}
	return o
}

// replaceByBackup deletes an object, waits until it is gone, and restores it.
func replaceByBackup[T client.Object](p *place, object T) {
	p.t.Helper()
	backup := fromBackup(object)
	if err := p.client.Delete(p.t.Context(), object); err != nil {
		p.t.Fatal(err)
	}
	gone := object.DeepCopyObject().(client.Object)
	p.until(object.GetName()+" is gone", time.Minute, func() bool { return !p.read(gone) }, func() string {
		return "it is there"
	})
	p.create(backup)
}

// isRestored fails unless an object has ended as a copy of another one, without a verdict, and its message says what
// that was and how to run it.
func isRestored(t *testing.T, o client.Object, conditions []metav1.Condition, verdict v1alpha1.Verdict, of types.UID) {
	t.Helper()
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonRestored ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed) {
		t.Fatalf("%s: %s, want that it is complete with reason %s", o.GetName(), where(conditions), v1alpha1.ReasonRestored)
	}
	for _, part := range []string{
		string(of), "nothing was done", "kubectl annotate -n test ",
		o.GetName() + " redquake.dev/begun-as-", "redquake rerun",
	} {
		if !strings.Contains(c.Message, part) {
			t.Errorf("%s: the message lacks %q: %s", o.GetName(), part, c.Message)
		}
	}
	if verdict != "" {
		t.Errorf("%s has the verdict %s", o.GetName(), verdict)
	}
}

// hz is a fault that changes a setting of the Redis of the load test run, for 5 s.
func hz() *v1alpha1.RedisFault { return hzFor("slow", "50", 5*time.Second) }

// A finished fault that is restored injects nothing, and ends at once with a message. It runs once more when somebody
// removes the annotation.
func TestRestoredFault(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		t := w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		o := startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(hz())
		f := w.faultEnds("slow", 5*time.Minute)
		if f.Status.InjectedAt == nil || f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Fatalf("%s, annotations %q", where(f.Status.Conditions), f.Annotations)
		}
		was := f.UID
		f.Finalizers = []string{v1alpha1.FinalizerFault} // a backup from the middle of its run has it
		replaceByBackup(w.place, f)
		f = w.faultEnds("slow", 5*time.Minute)
		isRestored(t, f, f.Status.Conditions, f.Status.Verdict, was)
		if st := f.Status; st.InjectedAt != nil || st.StartTime != nil || len(st.Targets) > 0 || redis.hz("") != "10" {
			t.Errorf("something was done: %+v", st)
		}
		if ended := o.exported(t).sum("redquake_fault_ended_total"); ended != 1 {
			t.Errorf("%v faults are counted as ended, want the one that ran", ended)
		}
		// To suspend it changes nothing.
		w.mustChange(change(w.place, f, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }))
		w.mustChange(change(w.place, f, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		time.Sleep(time.Minute)
		isRestored(t, w.fault("slow"), w.fault("slow").Status.Conditions, "", was)
		w.mustChange(change(w.place, f, func(f *v1alpha1.RedisFault) { delete(f.Annotations, v1alpha1.AnnotationBegunAs) }))
		w.faultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		if f = w.faultEnds("slow", 5*time.Minute); f.Status.InjectedAt == nil || f.Status.Verdict == "" ||
			f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", where(f.Status.Conditions), f.Annotations)
		}
	})
}

// A finished load test that is restored makes no load pods, and ends at once; it runs when somebody removes the
// annotation.
func TestRestoredLoadTest(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		t := w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		jobs := 0
		o := startOperator(w.place, spy{After: func(w write) {
			if w.Verb == "create" && w.Object.GetName() == children.LoadJobName("run") {
				jobs++
			}
		}})
		w.create(newLoadTest("run", redis.address(), nil))
		test := w.testEnds("run", 5*time.Minute)
		if test.Annotations[v1alpha1.AnnotationBegunAs] != string(test.UID) || jobs != 1 {
			t.Fatalf("annotations %q, %d Jobs", test.Annotations, jobs)
		}
		was := test.UID
		replaceByBackup(w.place, test)
		test = w.testEnds("run", 5*time.Minute)
		isRestored(t, test, test.Status.Conditions, test.Status.Verdict, was)
		if test.Status.StartTime != nil || test.Status.Summary != nil || jobs != 1 {
			t.Errorf("%d Jobs, status %+v", jobs, test.Status)
		}
		if ended := o.exported(t).sum("redquake_loadtest_ended_total"); ended != 1 {
			t.Errorf("%v load tests are counted as ended, want the one that ran", ended)
		}
		w.mustChange(change(w.place, test, func(test *v1alpha1.RedisLoadTest) {
			delete(test.Annotations,
				v1alpha1.AnnotationBegunAs)
		}))
		w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		if test = w.testEnds("run", 5*time.Minute); test.Status.Verdict == "" ||
			test.Annotations[v1alpha1.AnnotationBegunAs] != string(test.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", where(test.Status.Conditions), test.Annotations)
		}
	})
}

// A finished experiment that is restored creates nothing, and ends at once. So do its load tests, of which a backup has
// left out the owner.
func TestRestoredExperiment(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		t := w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		created := 0
		startOperator(w.place, spy{After: func(w write) {
			if w.Verb == "create" && metav1.GetControllerOf(w.Object) != nil {
				created++
			}
		}})
		w.create(newExperiment("latency", redis.address(), nil))
		e := w.experimentEnds("latency", 10*time.Minute)
		if e.Annotations[v1alpha1.AnnotationBegunAs] != string(e.UID) {
			t.Fatalf("annotations %q", e.Annotations)
		}
		was, run := e.UID, w.loadTest("latency-0001")
		replaceByBackup(w.place, e)
		before := created
		e = w.experimentEnds("latency", 10*time.Minute)
		isRestored(t, e, e.Status.Conditions, e.Status.Verdict, was)
		w.until("its load tests are gone", time.Minute, func() bool { return len(w.runsOf("latency")) == 0 }, func() string {
			return "they are there"
		})
		wasRun := run.UID
		w.create(fromBackup(run))
		run = w.testEnds("latency-0001", time.Minute)
		isRestored(t, run, run.Status.Conditions, run.Status.Verdict, wasRun)
		if created != before || e.Status.Seed != nil || e.Status.StartTime != nil {
			t.Errorf("%d children were created: %+v", created-before, e.Status)
		}
		w.mustChange(change(w.place, run, func(test *v1alpha1.RedisLoadTest) {
			delete(test.Labels,
				v1alpha1.LabelExperiment)
		}))
		if err := w.client.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		w.mustChange(change(w.place, e, func(e *v1alpha1.RedisExperiment) {
			delete(e.Annotations,
				v1alpha1.AnnotationBegunAs)
		}))
		w.experimentHasReason("latency", v1alpha1.ReasonRunning)
		if e = w.experimentEnds("latency", 10*time.Minute); e.Status.Verdict != v1alpha1.VerdictPass ||
			e.Annotations[v1alpha1.AnnotationBegunAs] != string(e.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", where(e.Status.Conditions), e.Annotations)
		}
	})
}

// A schedule is no run: a restored one goes on at its next time, with its history, which has no owner after a restore.
// Its earlier runs do not run again.
func TestRestoredSchedule(t *testing.T) {
	t.Parallel()
	inNights(t, func(n *nights) {
		t := n.t
		startOperator(n.place, spy{})
		n.create(newSchedule("nightly", toLast))
		e := n.runsHaveEnded("nightly", 2, longAfter)
		if e.Annotations[v1alpha1.AnnotationBegunAs] != "" {
			t.Errorf("annotations %q", e.Annotations)
		}
		history := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.HistoryName("nightly")}}
		second := n.experiment(nameOf("nightly", night(2)))
		if !n.read(history) || second.UID == "" {
			t.Fatal("there is no history, or no run")
		}
		if err := n.client.Delete(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		gone := second.DeepCopy()
		n.until("the run is gone", longAfter, func() bool { return !n.read(gone) }, func() string { return "it is there" })
		n.until("the history is gone", longAfter, func() bool { return !n.read(history.DeepCopy()) }, func() string {
			return "it is there"
		})
		for _, o := range []client.Object{fromBackup(history), fromBackup(second), fromBackup(e)} {
			n.create(o)
		}
		copied := n.experimentEnds(second.Name, time.Minute)
		isRestored(t, copied, copied.Status.Conditions, copied.Status.Verdict, second.UID)
		e = n.runsHaveEnded("nightly", 3, longAfter)
		last := e.Status.History[len(e.Status.History)-1]
		if !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) ||
			last.Verdict != v1alpha1.VerdictPass || e.Status.History[0].Name != nameOf("nightly", night(1)) {
			t.Errorf("%s, history %+v", where(e.Status.Conditions), e.Status.History)
		}
		// compared with the runs of the history
		if c := regressedCondition(t, e.Status.Conditions); c.Status != metav1.ConditionFalse {
			t.Errorf("%+v", c)
		}
	})
}

// A copy under another name is one as well: nobody has asked it to run.
func TestCopyUnderAnotherName(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(hz())
		f := w.faultHasReason("slow", 5*time.Minute, v1alpha1.ReasonActive)
		again := fromBackup(f)
		again.Name = "again"
		w.create(again)
		again = w.faultEnds("again", time.Minute)
		isRestored(w.t, again, again.Status.Conditions, again.Status.Verdict, f.UID)
		if f = w.faultEnds("slow", 5*time.Minute); reason(f.Status.Conditions) == v1alpha1.ReasonRestored {
			w.t.Errorf("the original: %s", where(f.Status.Conditions))
		}
	})
}

// What has not begun yet is no run: a suspended object that is restored is still suspended, and a dry run may look
// again.
func TestRestoredBeforeItsRun(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		t := w.t
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		held, rehearsal := hz(), hz()
		held.Name, held.Spec.Suspend = "held", true
		rehearsal.Name, rehearsal.Spec.DryRun = "rehearsal", true
		w.create(held)
		w.create(rehearsal)
		held = w.faultHasReason("held", time.Minute, v1alpha1.ReasonSuspended)
		w.faultEnds("rehearsal", time.Minute)
		replaceByBackup(w.place, held)
		w.faultHasReason("held", time.Minute, v1alpha1.ReasonSuspended)
		dry := fromBackup(w.fault("rehearsal"))
		dry.Name, dry.Annotations = "dry", map[string]string{v1alpha1.AnnotationBegunAs: "another"}
		w.create(dry)
		if dry = w.faultEnds("dry", time.Minute); reason(dry.Status.Conditions) != v1alpha1.ReasonDryRun {
			t.Errorf("the dry run: %s", where(dry.Status.Conditions))
		}
		w.mustChange(change(w.place, held, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		f := w.faultHasReason("held", 5*time.Minute, v1alpha1.ReasonActive)
		if f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Errorf("annotations %q", f.Annotations)
		}
		w.faultEnds("held", 5*time.Minute)
	})
}

// While an object runs, its annotation comes back, whoever has removed or changed it, also with another process.
func TestAnnotationOfARunComesBack(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		o := startOperator(w.place, spy{})
		w.create(longRun(redis.address()))
		w.create(hzFor("slow", "50", 5*time.Minute))
		w.faultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		comesBack := func(what string) {
			w.t.Helper()
			w.until(what, time.Minute, func() bool {
				f, test := w.fault("slow"), w.loadTest("run")
				return f.Annotations[v1alpha1.AnnotationBegunAs] == string(f.UID) &&
					test.Annotations[v1alpha1.AnnotationBegunAs] == string(test.UID)
			}, func() string { return where(w.fault("slow").Status.Conditions) })
			if f := w.fault("slow"); reason(f.Status.Conditions) != v1alpha1.ReasonActive {
				w.t.Errorf("%s: %s", what, where(f.Status.Conditions))
			}
			w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		}
		w.mustChange(change(w.place, w.fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		w.mustChange(change(w.place, w.loadTest("run"), func(test *v1alpha1.RedisLoadTest) { test.Annotations = nil }))
		comesBack("removed")
		o.end()
		another := map[string]string{v1alpha1.AnnotationBegunAs: "another"}
		w.mustChange(change(w.place, w.fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = another }))
		w.mustChange(change(w.place, w.loadTest("run"), func(test *v1alpha1.RedisLoadTest) { test.Annotations = another }))
		startOperator(w.place, spy{})
		comesBack("changed")
	})
}

// Somebody removes the annotation and keeps the operator from writing it: the fault is active for its time and reverted
// all the same.
func TestRevertWithoutTheAnnotation(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		var refuses atomic.Bool
		var refused atomic.Int32
		startOperator(w.place, spy{Before: func(w write) error {
			if w.Verb == "patch" && refuses.Load() && state.Noted(w.Object) {
				refused.Add(1)
				return apierrors.NewForbidden(schema.GroupResource{Resource: "redisfaults"}, w.Object.GetName(),
					errors.New("a policy"))
			}
			return nil
		}})
		w.create(longRun(redis.address()))
		w.create(hzFor("slow", "50", 30*time.Second))
		w.faultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		refuses.Store(true)
		w.mustChange(change(w.place, w.fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		f := w.faultEnds("slow", 5*time.Minute)
		if took := f.Status.RevertedAt.Sub(f.Status.InjectedAt.Time); took > 32*time.Second ||
			reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.hz("") != "10" || refused.Load() == 0 {
			w.t.Errorf("reverted after %s, %d writes were refused: %s", took, refused.Load(), where(f.Status.Conditions))
		}
	})
}
