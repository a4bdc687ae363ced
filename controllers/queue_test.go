package controllers

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
)

// queueJobs suspends each Job at its creation, as the webhook of a queue does. Pods of the load test slow are never
// made.
func (w *world) queueJobs() {
	w.client = interceptor.NewClient(w.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if job, is := object.(*batchv1.Job); is {
				job.Spec.Suspend = new(true)
			} else if _, is := object.(*corev1.Pod); is && strings.HasPrefix(object.GetName(), children.LoadJobName("slow")) {
				return nil
			}
			return c.Create(ctx, object, options...)
		},
	})
	w.kubelet.Client = w.client
}

// admitJob lets the Job of a load test go on.
func (w *world) admitJob(test string) {
	w.t.Helper()
	w.mustChange(change(w.place, w.job(test), func(job *batchv1.Job) { job.Spec.Suspend = new(false) }))
}

func (w *world) job(test string) *batchv1.Job {
	w.t.Helper()
	job := jobOf(test)
	if !w.read(job) {
		w.t.Fatalf("load test %s has no Job", test)
	}
	return job
}

func jobOf(test string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: children.LoadJobName(test)}}
}

// isQueued fails the test unless a load test waits for whatever holds its Job, and is on its way.
func (w *world) isQueued(name string) {
	w.t.Helper()
	c := w.loadTest(name).Status.Conditions
	if reason(c) != v1alpha1.ReasonJobSuspended || !meta.IsStatusConditionTrue(c, v1alpha1.ConditionSuspended) ||
		!meta.IsStatusConditionTrue(c, v1alpha1.ConditionReconciling) {
		w.t.Fatalf("after %s in the queue: %+v", 10*time.Minute, c)
	}
}

// The time in a queue does not count for the start deadline, also where the spec changes meanwhile, and another
// operator goes on.
func TestQueuedJob(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.queueJobs()
		w.kubelet.Start()
		first := startOperator(w.place, spy{})
		for _, name := range []string{"run", "slow", "given-up", "deleted"} {
			w.create(newLoadTest(name, redis.address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Pods.StartDeadline = *length(30 * time.Second)
			}))
		}
		time.Sleep(10 * time.Minute)
		w.isQueued("run")

		first.stop()
		startOperator(w.place, spy{})
		before := w.job("run").UID
		w.mustChange(change(w.place, w.loadTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration = length(
				10 * time.Second)
		}))
		time.Sleep(10 * time.Minute)
		if w.isQueued("run"); w.job("run").UID == before {
			t.Error("the Job is that of the former spec")
		}
		w.admitJob("run")
		w.testHasReason("run", 10*time.Second, v1alpha1.ReasonRunning)
		if ended := w.testEnds("run", time.Minute); reason(ended.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("run: %+v", ended.Status.Conditions)
		}

		w.mustChange(change(w.place, w.loadTest("given-up"), func(test *v1alpha1.RedisLoadTest) { test.Spec.Abort = true }))
		w.testHasReason("given-up", 10*time.Second, v1alpha1.ReasonAborted)
		if err := w.client.Delete(t.Context(), w.loadTest("deleted")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if w.read(jobOf("deleted")) {
			t.Error("the Job of a deleted load test is left")
		}

		w.admitJob("slow")
		time.Sleep(25 * time.Second)
		w.testHasReason("slow", time.Second, v1alpha1.ReasonPreparing)
		w.testHasReason("slow", 10*time.Second, v1alpha1.ReasonStartDeadline)
	})
}
