package redisloadtest

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// The Job and the session of a finished test are deleted. A reconcile that read a stale copy of the test must not open
// another session, which would record every load pod as lost.
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
	series := merged.New(plan.Run, began.Time, plan.Interval, plan.Operations(), plan.Pods)
	series.SetTallies(plan.Tallies())
	series.SetReadOnly(plan.ReadOnly())
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
	cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(test).
		WithObjects(test, children.AgentSecret(test, credentials), children.ResultsConfigMap(test, data)).Build()
	key := client.ObjectKeyFromObject(test)
	before, ended := &v1alpha1.RedisLoadTest{}, &v1alpha1.RedisLoadTest{}
	for _, read := range []*v1alpha1.RedisLoadTest{before, ended} {
		if err := cluster.Get(t.Context(), key, read); err != nil {
			t.Fatal(err)
		}
	}
	ended.Status.Conditions = []metav1.Condition{
		{
			Type:               v1alpha1.ConditionComplete,
			Status:             metav1.ConditionTrue,
			Reason:             v1alpha1.ReasonSucceeded,
			LastTransitionTime: metav1.Now(),
		},
	}
	if err := cluster.Status().Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	cached := interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object,
			o ...client.GetOption,
		) error {
			if test, ok := into.(*v1alpha1.RedisLoadTest); ok {
				before.DeepCopyInto(test)
				return nil
			}
			return c.Get(ctx, key, into, o...)
		},
	})
	r := &Reconciler{
		Client:    cached,
		APIReader: cluster,
		Recorder:  events.NewFakeRecorder(16),
		Clock:     clock.RealClock{},
		Runs:      runs.NewRegistry(),
	}
	t.Cleanup(r.Runs.Close)

	result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || result != state.Stale() {
		t.Errorf("%+v, %v; want a requeue", result, err)
	}
	if r.Runs.Find(test.UID) != nil {
		t.Error("another session was opened")
	}
	stored, err := (resultsStore{client: cluster, test: test}).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after, err := merged.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if after.Lost() != 1 {
		t.Errorf("the record has %d lost pods, want 1", after.Lost())
	}
}
