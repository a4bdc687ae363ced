package redisfault

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// A reconcile that read a stale copy must not overwrite the record of a later injection.
func TestStaleRecordIsRejected(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kill"}}
	cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(fault).WithObjects(fault).
		Build()
	r := &Reconciler{
		Client:   cluster,
		Recorder: events.NewFakeRecorder(16),
		Clock:    testingclock.NewFakePassiveClock(now),
		Runs:     runs.NewRegistry(),
	}
	read := func() *scope.Fault {
		f := &v1alpha1.RedisFault{}
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(fault), f); err != nil {
			t.Fatal(err)
		}
		return &scope.Fault{Fault: f, Before: f.DeepCopy()}
	}
	report := func(s *scope.Fault, action lifecycle.FaultAction) error {
		return r.report(t.Context(), s,
			lifecycle.Decision[lifecycle.FaultAction]{Action: action, Reason: v1alpha1.ReasonInjecting}, state.Outcome{})
	}
	record := func(s *scope.Fault) {
		s.Fault.Status.StartTime = &metav1.MicroTime{Time: now}
		s.Fault.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u1"}}
	}
	stale, fresh := read(), read()
	record(fresh)
	if err := report(fresh, lifecycle.FaultRecord); err != nil {
		t.Fatal(err)
	}
	injected := read()
	injected.Fault.Status.Targets[0].InjectedAt = &metav1.MicroTime{Time: now}
	injected.Fault.Status.InjectedAt = injected.Fault.Status.Targets[0].InjectedAt
	if err := report(injected, lifecycle.FaultInject); err != nil {
		t.Fatal(err)
	}

	record(stale)
	err := report(stale, lifecycle.FaultRecord)
	if !apierrors.IsConflict(err) {
		t.Errorf("a record that was made on a stale copy was stored: error %v", err)
	}
	if got := read().Fault.Status.Targets; len(got) != 1 || got[0].InjectedAt == nil {
		t.Errorf("the record of the injection was overwritten: %+v", got)
	}
	if result, err := state.ResultForPatchError(err); err != nil || result != state.Stale() {
		t.Errorf("%+v, %v; want a requeue", result, err)
	}
}

// A copy from before the record is seen just after it: targets are not selected and checked again, as a check sends
// commands to servers.
func TestNothingIsCheckedOnAStaleCopy(t *testing.T) {
	stored := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "config"}}
	live := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(stored).WithObjects(stored).Build()
	stale, recorded := &v1alpha1.RedisFault{}, &v1alpha1.RedisFault{}
	for _, read := range []*v1alpha1.RedisFault{stale, recorded} {
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(stored), read); err != nil {
			t.Fatal(err)
		}
	}
	recorded.Status.StartTime = &metav1.MicroTime{Time: t0}
	if err := live.Status().Update(t.Context(), recorded); err != nil {
		t.Fatal(err)
	}
	// without rules, servers and kinds of faults: whatever asks one of them panics
	r := &Reconciler{Client: live, APIReader: live, Clock: testingclock.NewFakePassiveClock(t0)}
	s := &scope.Fault{Fault: stale.DeepCopy(), Before: stale}
	o := r.perform(t.Context(), s, lifecycle.Decision[lifecycle.FaultAction]{Action: lifecycle.FaultRecord})
	if !o.Stale || s.Fault.Status.StartTime != nil {
		t.Errorf("%+v with the record of %v; want a stale copy", o, s.Fault.Status.StartTime)
	}
}
