package virtual

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
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
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
func replaceByBackup[T client.Object](p *operatortest.Place, object T) {
	p.T.Helper()
	backup := fromBackup(object)
	if err := p.Client.Delete(p.T.Context(), object); err != nil {
		p.T.Fatal(err)
	}
	gone := object.DeepCopyObject().(client.Object)
	p.Until(object.GetName()+" is gone", time.Minute, func() bool { return !p.Read(gone) }, func() string {
		return "it is there"
	})
	p.Create(backup)
}

// isRestored fails unless an object has ended as a copy of another one, without a verdict, and its message says what
// that was and how to run it.
func isRestored(t *testing.T, o client.Object, conditions []metav1.Condition, verdict v1alpha1.Verdict, of types.UID) {
	t.Helper()
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonRestored ||
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed) {
		t.Fatalf("%s: %s, want that it is complete with reason %s", o.GetName(), operatortest.Where(conditions),
			v1alpha1.ReasonRestored)
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
func hz() *v1alpha1.RedisFault { return operatortest.HzFor("slow", "50", 5*time.Second) }

// A finished fault that is restored injects nothing, and ends at once with a message. It runs once more when somebody
// removes the annotation.
func TestRestoredFault(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		t := w.T
		w.Create(hz())
		f := w.FaultEnds("slow", 5*time.Minute)
		if f.Status.InjectedAt == nil || f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Fatalf("%s, annotations %q", operatortest.Where(f.Status.Conditions), f.Annotations)
		}
		was := f.UID
		f.Finalizers = []string{v1alpha1.FinalizerFault} // a backup from the middle of its run has it
		replaceByBackup(w.Place, f)
		f = w.FaultEnds("slow", 5*time.Minute)
		isRestored(t, f, f.Status.Conditions, f.Status.Verdict, was)
		if st := f.Status; st.InjectedAt != nil || st.StartTime != nil || len(st.Targets) > 0 || w.Redis.Hz("") != "10" {
			t.Errorf("something was done: %+v", st)
		}
		if ended := w.Operator.Exported(t).Sum("redquake_fault_ended_total"); ended != 1 {
			t.Errorf("%v faults are counted as ended, want the one that ran", ended)
		}
		// To suspend it changes nothing.
		w.MustChange(operatortest.Change(w.Place, f, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }))
		w.MustChange(operatortest.Change(w.Place, f, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		time.Sleep(time.Minute)
		isRestored(t, w.Fault("slow"), w.Fault("slow").Status.Conditions, "", was)
		w.MustChange(operatortest.Change(w.Place, f, func(f *v1alpha1.RedisFault) {
			delete(f.Annotations,
				v1alpha1.AnnotationBegunAs)
		}))
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		if f = w.FaultEnds("slow", 5*time.Minute); f.Status.InjectedAt == nil || f.Status.Verdict == "" ||
			f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", operatortest.Where(f.Status.Conditions),
				f.Annotations)
		}
	})
}

// A finished load test that is restored makes no load pods, and ends at once; it runs when somebody removes the
// annotation.
func TestRestoredLoadTest(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		t := w.T
		redis := w.StartRedis("")
		w.Kubelet.Start()
		jobs := 0
		o := operatortest.StartOperator(w.Place, operatortest.Spy{After: func(w operatortest.Write) {
			if w.Verb == "create" && w.Object.GetName() == children.LoadJobName("run") {
				jobs++
			}
		}})
		w.Create(operatortest.NewLoadTest("run", redis.Address(), nil))
		test := w.TestEnds("run", 5*time.Minute)
		if test.Annotations[v1alpha1.AnnotationBegunAs] != string(test.UID) || jobs != 1 {
			t.Fatalf("annotations %q, %d Jobs", test.Annotations, jobs)
		}
		was := test.UID
		replaceByBackup(w.Place, test)
		test = w.TestEnds("run", 5*time.Minute)
		isRestored(t, test, test.Status.Conditions, test.Status.Verdict, was)
		if test.Status.StartTime != nil || test.Status.Summary != nil || jobs != 1 {
			t.Errorf("%d Jobs, status %+v", jobs, test.Status)
		}
		if ended := o.Exported(t).Sum("redquake_loadtest_ended_total"); ended != 1 {
			t.Errorf("%v load tests are counted as ended, want the one that ran", ended)
		}
		w.MustChange(operatortest.Change(w.Place, test, func(test *v1alpha1.RedisLoadTest) {
			delete(test.Annotations,
				v1alpha1.AnnotationBegunAs)
		}))
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		if test = w.TestEnds("run", 5*time.Minute); test.Status.Verdict == "" ||
			test.Annotations[v1alpha1.AnnotationBegunAs] != string(test.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", operatortest.Where(test.Status.Conditions),
				test.Annotations)
		}
	})
}

// A finished experiment that is restored creates nothing, and ends at once. So do its load tests, of which a backup has
// left out the owner.
func TestRestoredExperiment(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		t := w.T
		redis := w.StartRedis("")
		w.Kubelet.Start()
		created := 0
		operatortest.StartOperator(w.Place, operatortest.Spy{After: func(w operatortest.Write) {
			if w.Verb == "create" && metav1.GetControllerOf(w.Object) != nil {
				created++
			}
		}})
		w.Create(operatortest.NewExperiment("latency", redis.Address(), nil))
		e := w.ExperimentEnds("latency", 10*time.Minute)
		if e.Annotations[v1alpha1.AnnotationBegunAs] != string(e.UID) {
			t.Fatalf("annotations %q", e.Annotations)
		}
		was, run := e.UID, w.LoadTest("latency-0001")
		replaceByBackup(w.Place, e)
		before := created
		e = w.ExperimentEnds("latency", 10*time.Minute)
		isRestored(t, e, e.Status.Conditions, e.Status.Verdict, was)
		w.Until("its load tests are gone", time.Minute, func() bool { return len(w.RunsOf("latency")) == 0 }, func() string {
			return "they are there"
		})
		wasRun := run.UID
		w.Create(fromBackup(run))
		run = w.TestEnds("latency-0001", time.Minute)
		isRestored(t, run, run.Status.Conditions, run.Status.Verdict, wasRun)
		if created != before || e.Status.Seed != nil || e.Status.StartTime != nil {
			t.Errorf("%d children were created: %+v", created-before, e.Status)
		}
		w.MustChange(operatortest.Change(w.Place, run, func(test *v1alpha1.RedisLoadTest) {
			delete(test.Labels,
				v1alpha1.LabelExperiment)
		}))
		if err := w.Client.Delete(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		w.MustChange(operatortest.Change(w.Place, e, func(e *v1alpha1.RedisExperiment) {
			delete(e.Annotations,
				v1alpha1.AnnotationBegunAs)
		}))
		experimentHasReason(w.Place, "latency", v1alpha1.ReasonRunning)
		if e = w.ExperimentEnds("latency", 10*time.Minute); e.Status.Verdict != v1alpha1.VerdictPass ||
			e.Annotations[v1alpha1.AnnotationBegunAs] != string(e.UID) {
			t.Errorf("after the annotation was removed: %s, annotations %q", operatortest.Where(e.Status.Conditions),
				e.Annotations)
		}
	})
}

// A schedule is no run: a restored one goes on at its next time, with its history, which has no owner after a restore.
// Its earlier runs do not run again.
func TestRestoredSchedule(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t := n.T
		n.Begin(scheduletest.ToLast)
		e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
		if e.Annotations[v1alpha1.AnnotationBegunAs] != "" {
			t.Errorf("annotations %q", e.Annotations)
		}
		history := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: children.HistoryName("nightly")}}
		second := n.Experiment(scheduletest.NameOf("nightly", scheduletest.Night(2)))
		if !n.Read(history) || second.UID == "" {
			t.Fatal("there is no history, or no run")
		}
		if err := n.Client.Delete(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		gone := second.DeepCopy()
		n.Until("the run is gone", scheduletest.LongAfter, func() bool { return !n.Read(gone) }, func() string {
			return "it is there"
		})
		n.Until("the history is gone", scheduletest.LongAfter, func() bool { return !n.Read(history.DeepCopy()) },
			func() string {
				return "it is there"
			})
		for _, o := range []client.Object{fromBackup(history), fromBackup(second), fromBackup(e)} {
			n.Create(o)
		}
		copied := n.ExperimentEnds(second.Name, time.Minute)
		isRestored(t, copied, copied.Status.Conditions, copied.Status.Verdict, second.UID)
		e = scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
		last := e.Status.History[len(e.Status.History)-1]
		if !meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) ||
			last.Verdict != v1alpha1.VerdictPass ||
			e.Status.History[0].Name != scheduletest.NameOf("nightly", scheduletest.Night(1)) {
			t.Errorf("%s, history %+v", operatortest.Where(e.Status.Conditions), e.Status.History)
		}
		// compared with the runs of the history
		if c := scheduletest.RegressedCondition(t, e.Status.Conditions); c.Status != metav1.ConditionFalse {
			t.Errorf("%+v", c)
		}
	})
}

// A copy under another name is one as well: nobody has asked it to run.
func TestCopyUnderAnotherName(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(hz())
		f := w.FaultHasReason("slow", 5*time.Minute, v1alpha1.ReasonActive)
		again := fromBackup(f)
		again.Name = "again"
		w.Create(again)
		again = w.FaultEnds("again", time.Minute)
		isRestored(w.T, again, again.Status.Conditions, again.Status.Verdict, f.UID)
		if f = w.FaultEnds("slow", 5*time.Minute); operatortest.Reason(f.Status.Conditions) == v1alpha1.ReasonRestored {
			w.T.Errorf("the original: %s", operatortest.Where(f.Status.Conditions))
		}
	})
}

// What has not begun yet is no run: a suspended object that is restored is still suspended, and a dry run may look
// again.
func TestRestoredBeforeItsRun(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		t := w.T
		held, rehearsal := hz(), hz()
		held.Name, held.Spec.Suspend = "held", true
		rehearsal.Name, rehearsal.Spec.DryRun = "rehearsal", true
		w.Create(held)
		w.Create(rehearsal)
		held = w.FaultHasReason("held", time.Minute, v1alpha1.ReasonSuspended)
		w.FaultEnds("rehearsal", time.Minute)
		replaceByBackup(w.Place, held)
		w.FaultHasReason("held", time.Minute, v1alpha1.ReasonSuspended)
		dry := fromBackup(w.Fault("rehearsal"))
		dry.Name, dry.Annotations = "dry", map[string]string{v1alpha1.AnnotationBegunAs: "another"}
		w.Create(dry)
		if dry = w.FaultEnds("dry", time.Minute); operatortest.Reason(dry.Status.Conditions) != v1alpha1.ReasonDryRun {
			t.Errorf("the dry run: %s", operatortest.Where(dry.Status.Conditions))
		}
		w.MustChange(operatortest.Change(w.Place, held, func(f *v1alpha1.RedisFault) { f.Spec.Suspend = false }))
		f := w.FaultHasReason("held", 5*time.Minute, v1alpha1.ReasonActive)
		if f.Annotations[v1alpha1.AnnotationBegunAs] != string(f.UID) {
			t.Errorf("annotations %q", f.Annotations)
		}
		w.FaultEnds("held", 5*time.Minute)
	})
}

// While an object runs, its annotation comes back, whoever has removed or changed it, also with another process.
func TestAnnotationOfARunComesBack(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{
		Load:   operatortest.LongRun,
		Faults: []*v1alpha1.RedisFault{operatortest.HzFor("slow", "50", 5*time.Minute)},
	}.Run(t, func(w *operatortest.World) {
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		comesBack := func(what string) {
			w.T.Helper()
			w.Until(what, time.Minute, func() bool {
				f, test := w.Fault("slow"), w.LoadTest("run")
				return f.Annotations[v1alpha1.AnnotationBegunAs] == string(f.UID) &&
					test.Annotations[v1alpha1.AnnotationBegunAs] == string(test.UID)
			}, func() string { return operatortest.Where(w.Fault("slow").Status.Conditions) })
			if f := w.Fault("slow"); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonActive {
				w.T.Errorf("%s: %s", what, operatortest.Where(f.Status.Conditions))
			}
			w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		}
		w.MustChange(operatortest.Change(w.Place, w.Fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		w.MustChange(operatortest.Change(w.Place, w.LoadTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Annotations = nil
		}))
		comesBack("removed")
		w.Operator.End()
		another := map[string]string{v1alpha1.AnnotationBegunAs: "another"}
		w.MustChange(operatortest.Change(w.Place, w.Fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = another }))
		w.MustChange(operatortest.Change(w.Place, w.LoadTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Annotations = another
		}))
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		comesBack("changed")
	})
}

// Somebody removes the annotation and keeps the operator from writing it: the fault is active for its time and reverted
// all the same.
func TestRevertWithoutTheAnnotation(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Kubelet.Start()
		var refuses atomic.Bool
		var refused atomic.Int32
		operatortest.StartOperator(w.Place, operatortest.Spy{Before: func(w operatortest.Write) error {
			if w.Verb == "patch" && refuses.Load() && state.Noted(w.Object) {
				refused.Add(1)
				return apierrors.NewForbidden(schema.GroupResource{Resource: "redisfaults"}, w.Object.GetName(),
					errors.New("a policy"))
			}
			return nil
		}})
		w.Create(operatortest.LongRun(redis.Address()))
		w.Create(operatortest.HzFor("slow", "50", 30*time.Second))
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		refuses.Store(true)
		w.MustChange(operatortest.Change(w.Place, w.Fault("slow"), func(f *v1alpha1.RedisFault) { f.Annotations = nil }))
		f := w.FaultEnds("slow", 5*time.Minute)
		if took := f.Status.RevertedAt.Sub(f.Status.InjectedAt.Time); took > 32*time.Second ||
			operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.Hz("") != "10" || refused.Load() == 0 {
			w.T.Errorf("reverted after %s, %d writes were refused: %s", took, refused.Load(),
				operatortest.Where(f.Status.Conditions))
		}
	})
}
