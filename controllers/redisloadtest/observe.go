package redisloadtest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
)

// observe reads everything that the decision depends on. It returns nil if the test was deleted or
// is being deleted.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope.Test, error) {
	test := &v1alpha1.RedisLoadTest{}
	err := r.Client.Get(ctx, key, test)
	if apierrors.IsNotFound(err) {
		return nil, r.pruneSessions(ctx)
	} else if err != nil {
		return nil, fmt.Errorf("read the load test: %w", err)
	}
	if test.DeletionTimestamp != nil {
		return nil, r.pruneSessions(ctx)
	}
	s := &scope.Test{
		Test:   test,
		Before: test.DeepCopy(),
		Lost:   map[int]string{},
	}
	if state.MayRun(test, test.Status.Conditions) {
		test.Status = v1alpha1.RedisLoadTestStatus{}
	}
	s.Seen = lifecycle.LoadTest{
		Suspend:   test.Spec.Suspend,
		Abort:     test.Spec.Abort,
		TTL:       state.TTL(test.Spec.TTLSecondsAfterFinished),
		Finished:  state.IsFinished(test.Status.Conditions),
		Suspended: suspended(test),
		Noted:     state.Noted(test),
	}
	if test.Status.StartTime == nil {
		s.Seen.Restored = state.Restored(test, "RedisLoadTest")
	}
	if test.Status.CompletionTime != nil {
		s.Seen.CompletedAt = test.Status.CompletionTime.Time
	}
	if s.Seen.Finished || s.Seen.Restored != "" || (s.Seen.Suspend && s.Seen.Suspended) {
		return s, nil
	}
	return s, r.observeRun(ctx, s)
}

// observeRun reads everything about a test that is neither finished nor suspended.
func (r *Reconciler) observeRun(ctx context.Context, s *scope.Test) error {
	spec := &s.Test.Spec
	s.Seen.PendingSince = pendingSince(s.Test, r.Clock.Now())
	s.Seen.StartWithin = spec.Pods.StartDeadline.Duration
	s.Seen.LostPolicy = spec.Pods.Lost
	s.Seen.PodsWanted = int(spec.Pods.Count)
	if s.Test.Status.StartTime != nil {
		s.Seen.StartedAt = s.Test.Status.StartTime.Time
	}
	c := meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionComplete)
	if c != nil {
		s.Seen.PodsExplain = c.Message // the reason why the last attempt to create the pods failed
	}
	err := r.observePlan(ctx, s)
	if err != nil || s.Seen.Problem != nil || s.Plan == nil {
		return err
	}
	s.Seen.RampUp, s.Seen.WarmUp, s.Seen.Length = s.Plan.Shape.RampUp, s.Plan.Shape.WarmUp,
		s.Plan.Shape.Length()
	extension := s.Test.Spec.Load.UntilFaultsSettle
	if extension != nil {
		s.Seen.Extension = extension.Duration
	}
	if err := r.observeChildren(ctx, s); err != nil {
		return err
	}
	if err := r.observeSession(ctx, s); err != nil {
		return err
	}
	observeSearch(s, r.Clock.Now())
	r.observeMetrics(ctx, s)
	if err := r.observeLimit(ctx, s); err != nil {
		return err
	}
	if err := r.observeFaults(ctx, s); err != nil {
		return err
	}
	return r.observeExits(ctx, s)
}

// observeChildren reads the Job and its pods.
func (r *Reconciler) observeChildren(ctx context.Context, s *scope.Test) error {
	namespace, name := s.Test.Namespace, s.Test.Name
	job := &batchv1.Job{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: children.LoadJobName(name)},
		job)
	if apierrors.IsNotFound(err) ||
		(err == nil && (job.DeletionTimestamp != nil || !metav1.IsControlledBy(job, s.Test))) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Job %s: %w", children.LoadJobName(name), err)
	}
	s.Job = job
	// Until the load begins the spec may change, and pods of Redis come and go: then load pods that
	// were made for others are replaced.
	s.Stale = s.Seen.StartedAt.IsZero() &&
		(job.Annotations[v1alpha1.AnnotationGeneration] != strconv.FormatInt(s.Test.Generation, 10) ||
			job.Annotations[v1alpha1.AnnotationAddresses] != addressesOf(s.Plan))
	s.Seen.Children = !s.Stale
	s.Seen.JobSuspended = job.Spec.Suspend != nil && *job.Spec.Suspend
	var pods corev1.PodList
	err = r.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{
		v1alpha1.LabelLoadTest: name,
	})
	if err != nil {
		return fmt.Errorf("list the load pods: %w", err)
	}
	for _, pod := range pods.Items {
		if metav1.IsControlledBy(&pod, job) {
			s.Pods = append(s.Pods, pod)
		}
	}
	return nil
}

// observeFaults lists the faults on this load, pending and injected ones, without its settings.
func (r *Reconciler) observeFaults(ctx context.Context, s *scope.Test) error {
	var all v1alpha1.RedisFaultList
	err := r.Client.List(ctx, &all, client.InNamespace(s.Test.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the faults: %w", err)
	}
	for _, f := range all.Items {
		if f.Spec.Setting { // the load runs with it, and it waits for the end of the load
			continue
		}
		if awaited(&f, s.Test) {
			s.Seen.FaultsUnsettled = append(s.Seen.FaultsUnsettled, f.Name)
		}
		if f.Status.LoadTest != s.Test.Name || f.Status.StartTime == nil ||
			!f.Status.LoadStartTime.Equal(s.Test.Status.StartTime) {
			continue
		}
		s.Faults = append(s.Faults, f)
		if !state.IsFinished(f.Status.Conditions) {
			s.Seen.FaultsUnfinished = append(s.Seen.FaultsUnfinished, f.Name)
		}
	}
	return nil
}

// awaited reports whether a load with untilFaultsSettle waits for a fault. It does not wait for one
// that is suspended or being deleted.
func awaited(f *v1alpha1.RedisFault, test *v1alpha1.RedisLoadTest) bool {
	return f.Spec.LoadTestRef != nil && f.Spec.LoadTestRef.Name == test.Name &&
		f.Status.SettledTime == nil && !state.IsFinished(f.Status.Conditions) &&
		f.DeletionTimestamp == nil && (!f.Spec.Suspend || f.Status.StartTime != nil)
}

// suspended reports whether spec.suspend has ended the run already.
func suspended(test *v1alpha1.RedisLoadTest) bool {
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionSuspended)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.ReasonJobSuspended
}

// pendingSince returns when the test became pending, by the operator's clock: when it was first
// seen, or at the end of a suspension, its own or that of its Job.
func pendingSince(test *v1alpha1.RedisLoadTest, now time.Time) time.Time {
	c := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionSuspended)
	if c == nil || c.Status == metav1.ConditionTrue { // a suspension ends with this reconcile
		return now
	}
	return c.LastTransitionTime.Time
}

// pruneSessions drops the sessions of tests that no longer exist.
func (r *Reconciler) pruneSessions(ctx context.Context) error {
	var tests v1alpha1.RedisLoadTestList
	if err := r.Client.List(ctx, &tests); err != nil {
		return fmt.Errorf("list the load tests: %w", err)
	}
	keep := map[types.UID]bool{}
	for i := range tests.Items {
		if tests.Items[i].DeletionTimestamp == nil {
			keep[tests.Items[i].UID] = true
		}
	}
	r.Runs.Retain(keep)
	r.Metrics.RetainLoads(keep)
	return nil
}
