package redisloadtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// queueJobs suspends each Job at its creation, as the webhook of a queue does. Pods of the load test slow are never
// made.
func queueJobs(w *operatortest.World) {
	w.Client = interceptor.NewClient(w.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if job, is := object.(*batchv1.Job); is {
				job.Spec.Suspend = new(true)
			} else if _, is := object.(*corev1.Pod); is && strings.HasPrefix(object.GetName(), children.LoadJobName("slow")) {
				return nil
			}
			return c.Create(ctx, object, options...)
		},
	})
	w.Kubelet.Client = w.Client
}

// admitJob lets the Job of a load test go on.
func admitJob(w *operatortest.World, test string) {
	w.T.Helper()
	w.MustChange(operatortest.Change(w.Place, job(w, test), func(job *batchv1.Job) { job.Spec.Suspend = new(false) }))
}

func job(w *operatortest.World, test string) *batchv1.Job {
	w.T.Helper()
	job := jobOf(test)
	if !w.Read(job) {
		w.T.Fatalf("load test %s has no Job", test)
	}
	return job
}

func jobOf(test string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: children.LoadJobName(test)}}
}

// isQueued fails the test unless a load test waits for whatever holds its Job, and is on its way.
func isQueued(w *operatortest.World, name string) {
	w.T.Helper()
	c := w.LoadTest(name).Status.Conditions
	if operatortest.Reason(c) != v1alpha1.ReasonJobSuspended ||
		!meta.IsStatusConditionTrue(c, v1alpha1.ConditionSuspended) ||
		!meta.IsStatusConditionTrue(c, v1alpha1.ConditionReconciling) {
		w.T.Fatalf("after %s in the queue: %+v", 10*time.Minute, c)
	}
}

// The time in a queue does not count for the start deadline, also where the spec changes meanwhile, and another
// operator goes on.
func TestQueuedJob(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		queueJobs(w)
		w.Kubelet.Start()
		first := operatortest.StartOperator(w.Place, operatortest.Spy{})
		for _, name := range []string{"run", "slow", "given-up", "deleted"} {
			w.Create(operatortest.NewLoadTest(name, redis.Address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Pods.StartDeadline = *operatortest.Length(30 * time.Second)
			}))
		}
		time.Sleep(10 * time.Minute)
		isQueued(w, "run")

		first.Stop()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		before := job(w, "run").UID
		w.MustChange(operatortest.Change(w.Place, w.LoadTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = operatortest.Length(
				10 * time.Second)
		}))
		time.Sleep(10 * time.Minute)
		if isQueued(w, "run"); job(w, "run").UID == before {
			t.Error("the Job is that of the former spec")
		}
		admitJob(w, "run")
		w.TestHasReason("run", 10*time.Second, v1alpha1.ReasonRunning)
		if ended := w.TestEnds("run", time.Minute); operatortest.Reason(ended.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("run: %+v", ended.Status.Conditions)
		}

		w.MustChange(operatortest.Change(w.Place, w.LoadTest("given-up"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Abort = true
		}))
		w.TestHasReason("given-up", 10*time.Second, v1alpha1.ReasonAborted)
		if err := w.Client.Delete(t.Context(), w.LoadTest("deleted")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if w.Read(jobOf("deleted")) {
			t.Error("the Job of a deleted load test is left")
		}

		admitJob(w, "slow")
		time.Sleep(25 * time.Second)
		w.TestHasReason("slow", time.Second, v1alpha1.ReasonPreparing)
		w.TestHasReason("slow", 10*time.Second, v1alpha1.ReasonStartDeadline)
	})
}
