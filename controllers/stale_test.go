package controllers

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/runs"
)

// A reconcile that read an old copy must not overwrite the record of what was injected since.
func TestStaleRecordIsRefused(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kill"}}
	cluster := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(fault).WithObjects(fault).Build()
	r := &RedisFaultReconciler{Client: cluster, Recorder: events.NewFakeRecorder(16), Clock: testingclock.NewFakePassiveClock(now), Runs: runs.NewRegistry()}
	read := func() *faultScope {
		f := &v1alpha1.RedisFault{}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(fault), f); err != nil {
			t.Fatal(err)
		}
		return &faultScope{fault: f, before: f.DeepCopy()}
	}
	report := func(s *faultScope, action lifecycle.FaultAction) error {
		return r.report(t.Context(), s, lifecycle.Decision[lifecycle.FaultAction]{Action: action, Reason: v1alpha1.ReasonInjecting}, outcome{})
	}
	record := func(s *faultScope) {
		s.fault.Status.StartTime = &metav1.MicroTime{Time: now}
		s.fault.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u1"}}
	}
	stale, fresh := read(), read()
	record(fresh)
	if err := report(fresh, lifecycle.FaultRecord); err != nil {
		t.Fatal(err)
	}
	injected := read()
	injected.fault.Status.Targets[0].InjectedAt = &metav1.MicroTime{Time: now}
	injected.fault.Status.InjectedAt = injected.fault.Status.Targets[0].InjectedAt
	if err := report(injected, lifecycle.FaultInject); err != nil {
		t.Fatal(err)
	}

	record(stale)
	err := report(stale, lifecycle.FaultRecord)
	if !apierrors.IsConflict(err) {
		t.Errorf("a record made on an old copy was stored: error %v", err)
	}
	if got := read().fault.Status.Targets; len(got) != 1 || got[0].InjectedAt == nil {
		t.Errorf("the record of the injection is gone: %+v", got)
	}
	if result, err := refused(err); err != nil || result.RequeueAfter != staleRetry {
		t.Errorf("refused: %+v, %v; want to look again after %s", result, err, staleRetry)
	}
}

// The Job of an ended test is gone, and its session. A reconcile that read the test from before its end must not open another, which would find
// every load pod lost and store that over the record.
func TestEndedRecordIsNotOpenedAgain(t *testing.T) {
	began := metav1.NewMicroTime(time.Now().Add(-8 * time.Second).Truncate(time.Microsecond))
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "u"}}
	test.Spec.Target.Addresses = []string{"redis:6379"}
	test.Spec.Load.Duration, test.Spec.Load.Users = &metav1.Duration{Duration: 5 * time.Second}, new(int32(2))
	test.Spec.Workload.Commands = []v1alpha1.WorkloadCommand{{Name: "get", Weight: 1, Command: []string{"GET", "{key}"}}}
	test.Spec.Pods.Count, test.Spec.Pods.Lost = 2, v1alpha1.LostPodContinue
	test.Status.StartTime, test.Status.Target = &began, &v1alpha1.TargetStatus{Addresses: test.Spec.Target.Addresses}
	if err := manifest.Default(test); err != nil {
		t.Fatal(err)
	}
	plan, err := children.Plan(test, test.Spec.Target.Addresses)
	if err != nil {
		t.Fatal(err)
	}
	series := record.NewSeries(plan.Run, began.Time, plan.Interval, plan.Operations(), plan.Pods)
	series.SetTallies(plan.Tallies())
	series.Lose(0)
	series.Finish(1)
	data, err := series.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := agent.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(test).
		WithObjects(test, children.AgentSecret(test, credentials), children.ResultsConfigMap(test, data)).Build()
	key := client.ObjectKeyFromObject(test)
	before, ended := &v1alpha1.RedisLoadTest{}, &v1alpha1.RedisLoadTest{}
	for _, read := range []*v1alpha1.RedisLoadTest{before, ended} {
		if err := cluster.Get(t.Context(), key, read); err != nil {
			t.Fatal(err)
		}
	}
	ended.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded, LastTransitionTime: metav1.Now()}}
	if err := cluster.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	cached := interceptor.NewClient(cluster, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
		if test, ok := into.(*v1alpha1.RedisLoadTest); ok {
			before.DeepCopyInto(test)
			return nil
		}
		return c.Get(ctx, key, into, o...)
	}})
	r := &RedisLoadTestReconciler{Client: cached, Live: cluster, Recorder: events.NewFakeRecorder(16), Clock: clock.RealClock{}, Runs: runs.NewRegistry()}
	t.Cleanup(r.Runs.Close)

	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter != staleRetry {
		t.Errorf("%+v, %v; want to look again after %s", result, err, staleRetry)
	}
	if r.Runs.Find(test.UID) != nil {
		t.Error("another session was opened")
	}
	stored, err := (resultsStore{client: cluster, test: test}).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after, err := record.DecodeSeries(stored)
	if err != nil {
		t.Fatal(err)
	}
	if after.Lost() != 1 {
		t.Errorf("the record says now that %d pods were lost, want 1", after.Lost())
	}
}
