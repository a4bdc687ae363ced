package redisfault

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/conditions"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// struck is a fault that was injected at a time after t0, when its test began.
func struck(name string, after time.Duration) v1alpha1.RedisFault {
	f := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: "shop"}
	f.Status.LoadTest = "shop"
	f.Status.LoadStartTime = &metav1.MicroTime{Time: t0}
	f.Status.InjectedAt = &metav1.MicroTime{Time: t0.Add(after)}
	f.Status.Impact, f.Status.SettledTime = &v1alpha1.Impact{Recovered: true}, &metav1.MicroTime{
		Time: t0.Add(after + 15*time.Second),
	}
	f.UID = types.UID(name)
	return f
}

// verified is a test that began at t0, with these losses in its verification.
func verified(losses ...v1alpha1.LossWindow) *v1alpha1.RedisLoadTest {
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "shop"}}
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	test.Status.StartTime = &metav1.MicroTime{Time: t0}
	test.Status.Verification = &v1alpha1.Verification{Acknowledged: 100, LostWrites: new(int64(0)), Losses: losses}
	for _, l := range losses {
		*test.Status.Verification.LostWrites += l.Count
	}
	return test
}

// fromStart is a time from the start of the load.
func fromStart(seconds float64) v1alpha1.Duration {
	return v1alpha1.DurationOf(time.Duration(seconds * float64(time.Second)))
}

func TestLossesAreAttributedToFaults(t *testing.T) {
	test := verified(
		// before any fault
		v1alpha1.LossWindow{First: fromStart(3), Last: fromStart(4), After: fromStart(4), Until: fromStart(5), Count: 1},
		// around the first
		v1alpha1.LossWindow{
			First: fromStart(9.5),
			Last:  fromStart(12),
			After: fromStart(12),
			Until: fromStart(13),
			Count: 10,
		},
		// later, but before the second
		v1alpha1.LossWindow{
			First:  fromStart(14),
			Last:   fromStart(15),
			After:  fromStart(15),
			Until:  fromStart(16),
			Count:  5,
			Errors: 1,
		},
		// ends just before the second
		v1alpha1.LossWindow{
			First:  fromStart(20),
			Last:   fromStart(29.6),
			After:  fromStart(29.6),
			Until:  fromStart(31),
			Count:  20,
			Errors: 1,
		},
	)
	faults := []v1alpha1.RedisFault{
		struck("c-quiet", 50*time.Second), struck("a-failover", 10*time.Second),
		struck("b-kill", 30*time.Second),
	}
	ms := func(n int64) *v1alpha1.Duration { return new(v1alpha1.DurationOf(time.Duration(n) * time.Millisecond)) }
	for name, want := range map[string]v1alpha1.Impact{
		"a-failover": {
			Recovered:  true,
			LostWrites: new(int64(15)),
			FirstLost:  ms(-500),
			LastLost:   ms(5000),
			SawErrors:  new(true),
		},
		"b-kill": {
			Recovered:  true,
			LostWrites: new(int64(20)),
			FirstLost:  ms(-10000),
			LastLost:   ms(-400),
			SawErrors:  new(true),
		},
		"c-quiet": {Recovered: true, LostWrites: new(int64(0))},
	} {
		i := slices.IndexFunc(faults, func(f v1alpha1.RedisFault) bool { return f.Name == name })
		of := &scope.Fault{Fault: faults[i].DeepCopy(), Test: test}
		figures.ObserveLosses(of, faults)
		figures.SetLosses(of)
		if diff := cmp.Diff(want, *of.Fault.Status.Impact); diff != "" || of.Seen.LossesPending {
			t.Errorf("%s: pending %v\n%s", name, of.Seen.LossesPending, diff)
		}
		if d := conditions.Display(of); d == nil || d.LostWrites != fmt.Sprint(*want.LostWrites) {
			t.Errorf("%s: the column shows %+v, want %d", name, d, *want.LostWrites)
		}
	}
}

// Where some absent writes may have been evicted, the losses of a fault have bounds too.
func TestLossesOfAFaultHaveBounds(t *testing.T) {
	f := struck("kill", 10*time.Second)
	test := verified(v1alpha1.LossWindow{First: fromStart(11), Last: fromStart(12), Count: 10})
	test.Status.Verification.LostWrites, test.Status.Verification.LostWritesAtLeast, test.Status.Verification.LostWritesAtMost = nil,
		new(int64(6)), new(int64(10))
	s := &scope.Fault{Fault: &f, Test: test}
	figures.ObserveLosses(s, []v1alpha1.RedisFault{f})
	figures.SetLosses(s)
	if i := s.Fault.Status.Impact; i.LostWrites != nil || *i.LostWritesAtLeast != 6 || *i.LostWritesAtMost != 10 ||
		i.FirstLost == nil {
		t.Errorf("%+v", i)
	}
	if d := conditions.Display(s); d == nil || d.LostWrites != "6-10" {
		t.Errorf("the column shows %+v, want 6-10", d)
	}
}

// The losses are pending until the test has read the acknowledged writes back, or cannot do so any more.
func TestLossesArePending(t *testing.T) {
	f := struck("failover", 10*time.Second)
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.RedisLoadTest)
		pending bool
		known   bool
	}{
		"under load": {func(test *v1alpha1.RedisLoadTest) { test.Status.Verification = nil }, true, false},
		"read back":  {func(*v1alpha1.RedisLoadTest) {}, false, true},
		"cannot be read": {func(test *v1alpha1.RedisLoadTest) {
			test.Status.Verification = &v1alpha1.Verification{Unread: "no primary"}
		}, false, false},
		"the test does not ask": {func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Verify, test.Status.Verification = nil,
				nil
		}, false, false},
		"the test failed": {func(test *v1alpha1.RedisLoadTest) {
			test.Status.Verification = nil
			state.SetSummary(&test.Status.Conditions, 1, state.Summary{Failed: true, Reason: v1alpha1.ReasonPodsLost})
		}, false, false},
	} {
		test := verified()
		tc.change(test)
		s := &scope.Fault{Fault: &f, Test: test}
		figures.ObserveLosses(s, []v1alpha1.RedisFault{f})
		if s.Seen.LossesPending != tc.pending || (s.Losses != nil) != tc.known {
			t.Errorf("%s: pending %v, losses %+v", name, s.Seen.LossesPending, s.Losses)
		}
	}
}

// A settled fault is complete when its losses are known, and its verdict includes them: the change of its test triggers
// a reconcile.
func TestASettledFaultIsCompleteWithItsLosses(t *testing.T) {
	f := struck("failover", 10*time.Second)
	f.Finalizers = []string{v1alpha1.FinalizerFault}
	f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxLostWrites: new(int64(9))}
	f.Spec.Action.Type, f.Status.Effect = v1alpha1.FaultPodKill, v1alpha1.EffectConfirmed
	f.Status.StartTime, f.Status.RecoveredAt = &metav1.MicroTime{Time: t0.Add(9 * time.Second)},
		&metav1.MicroTime{Time: t0.Add(11 * time.Second)}
	f.Status.Impact.RecoveryTime = &v1alpha1.BoundedDuration{
		Value:   v1alpha1.DurationOf(1 * time.Second),
		AtLeast: v1alpha1.DurationOf(1 * time.Second),
		AtMost:  v1alpha1.DurationOf(1 * time.Second),
	}
	f.Status.Targets = []v1alpha1.FaultTarget{
		{
			Pod:        "redis-0",
			UID:        "u",
			InjectedAt: f.Status.InjectedAt,
			ActiveAt:   f.Status.InjectedAt,
			RevertedAt: f.Status.InjectedAt,
		},
	}
	test := verified()
	test.Status.Verification = nil
	c := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithStatusSubresource(&f, test).WithObjects(&f, test).
		Build()
	r := &Reconciler{
		Client:    c,
		APIReader: c,
		Clock:     testingclock.NewFakePassiveClock(t0.Add(time.Hour)),
		Recorder:  events.NewFakeRecorder(16),
		Runs:      runs.NewRegistry(),
		Term:      faultrun.NewRegistry(nil).NewTerm(),
	}
	look := func() *v1alpha1.RedisFaultStatus {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&f)}); err != nil {
			t.Fatal(err)
		}
		var stored v1alpha1.RedisFault
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(&f), &stored); err != nil {
			t.Fatal(err)
		}
		return &stored.Status
	}
	status := look()
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionComplete); c == nil ||
		c.Status == metav1.ConditionTrue || c.Reason != v1alpha1.ReasonWaitingForLosses || status.Verdict != "" {
		t.Errorf("before the ledger was read: %+v, verdict %q", c, status.Verdict)
	}
	test.Status.Verification = verified(v1alpha1.LossWindow{
		First: fromStart(11),
		Last:  fromStart(12),
		Count: 10,
	}).Status.Verification
	if err := c.Status().Update(t.Context(), test); err != nil {
		t.Fatal(err)
	}
	if requests := r.RequestsForLoadTest(t.Context(), test); len(requests) != 1 {
		t.Errorf("the test's change triggers %v", requests)
	}
	status = look()
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete) || status.Impact.LostWrites == nil ||
		*status.Impact.LostWrites != 10 || status.Verdict != v1alpha1.VerdictFail {
		t.Errorf("after it: %+v, verdict %q", status.Impact, status.Verdict)
	}
	if requests := r.RequestsForLoadTest(t.Context(), test); len(requests) != 0 {
		t.Errorf("the fault is complete, but the test triggers %v", requests)
	}
}
