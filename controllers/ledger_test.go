package controllers

import (
	"math"
	"slices"
	"strings"
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
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
)

// struck is a fault of a test that began at t0, so long after it.
func struck(name string, after time.Duration) v1alpha1.RedisFault {
	f := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: "shop"}
	f.Status.LoadTest = "shop"
	f.Status.LoadStartTime = &metav1.MicroTime{Time: t0}
	f.Status.InjectedAt = &metav1.MicroTime{Time: t0.Add(after)}
	f.Status.Impact, f.Status.SettledTime = &v1alpha1.Impact{Recovered: true}, &metav1.MicroTime{Time: t0.Add(after + 15*time.Second)}
	f.UID = types.UID(name)
	return f
}

// verified is a test that began at t0 and whose ledger says so.
func verified(ledger *record.Ledger) *loadTestScope {
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "shop"}}
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	test.Status.StartTime, test.Status.Summary = &metav1.MicroTime{Time: t0}, &v1alpha1.LoadSummary{}
	s := &loadTestScope{test: test, before: test.DeepCopy(), plan: &plan.Plan{Verify: &plan.Verify{}}, seen: lifecycle.LoadTest{StartedAt: t0}}
	s.session.Ledger = ledger
	s.setVerification()
	return s
}

const second = int64(time.Second)

func TestLossesGoToTheirFaults(t *testing.T) {
	ledger := &record.Ledger{
		Acked: 100, Lost: 36, FirstLost: 9 * second, LastLost: 62 * second, Errors: 2,
		Losses: []record.Loss{
			{First: 3 * second, Last: 4 * second, Count: 1},                   // before any fault
			{First: 9*second + 5e8, Last: 12 * second, Count: 10},             // around the first
			{First: 14 * second, Last: 15 * second, Count: 5, Errors: 1},      // later, but still its
			{First: 20 * second, Last: 29*second + 6e8, Count: 20, Errors: 1}, // ends just before the second
		},
	}
	s := verified(ledger)
	faults := []v1alpha1.RedisFault{struck("c-quiet", 50*time.Second), struck("a-failover", 10*time.Second), struck("b-kill", 30*time.Second)}
	ms := func(n int64) *v1alpha1.Microseconds { return new(v1alpha1.Microseconds(n * 1000)) }
	for name, want := range map[string]v1alpha1.Impact{
		"a-failover": {Recovered: true, LostWrites: new(int64(15)), FirstLost: ms(-500), LastLost: ms(5000), SawErrors: new(true)},
		"b-kill":     {Recovered: true, LostWrites: new(int64(20)), FirstLost: ms(-10000), LastLost: ms(-400), SawErrors: new(true)},
		"c-quiet":    {Recovered: true, LostWrites: new(int64(0))},
	} {
		i := slices.IndexFunc(faults, func(f v1alpha1.RedisFault) bool { return f.Name == name })
		of := &faultScope{fault: faults[i].DeepCopy(), test: s.test}
		of.observeLosses(faults)
		of.setLosses()
		if diff := cmp.Diff(want, *of.fault.Status.Impact); diff != "" || of.seen.LossesPending {
			t.Errorf("%s: pending %v\n%s", name, of.seen.LossesPending, diff)
		}
	}
	v := s.test.Status.Verification
	if *s.test.Status.Summary.LostWrites != 36 || *v.LostWrites != 36 || !*v.SawErrors || len(v.Losses) != 4 || !v.FirstLost.Time.Equal(t0.Add(9*time.Second)) || !v.LastLost.Time.Equal(t0.Add(62*time.Second)) {
		t.Errorf("%+v", v)
	}
}

// Until the test has read back what was acknowledged, and while it may still do so, the losses are pending.
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
		"the test does not ask": {func(test *v1alpha1.RedisLoadTest) { test.Spec.Verify, test.Status.Verification = nil, nil }, false, false},
		"the test failed": {func(test *v1alpha1.RedisLoadTest) {
			test.Status.Verification = nil
			setStanding(&test.Status.Conditions, 1, standing{failed: true, reason: v1alpha1.ReasonPodsLost})
		}, false, false},
	} {
		test := verified(&record.Ledger{Acked: 100}).test
		tc.change(test)
		s := &faultScope{fault: &f, test: test}
		s.observeLosses([]v1alpha1.RedisFault{f})
		if s.seen.LossesPending != tc.pending || (s.losses != nil) != tc.known {
			t.Errorf("%s: pending %v, losses %+v", name, s.seen.LossesPending, s.losses)
		}
	}
}

// What the status holds survives a session that knows nothing of it.
func TestVerificationSurvivesARestart(t *testing.T) {
	stored := verified(&record.Ledger{Acked: 100, Lost: 10, Losses: []record.Loss{{First: 11 * second, Last: 12 * second, Count: 10}}})
	again := &loadTestScope{test: stored.test.DeepCopy(), plan: stored.plan, seen: stored.seen}
	again.test.Status.Summary = &v1alpha1.LoadSummary{}
	again.session.Finished = true
	again.setVerification()
	if diff := cmp.Diff(stored.test.Status, again.test.Status); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadLedgerLosesNoNumber(t *testing.T) {
	for name, s := range map[string]*loadTestScope{"unread": verified(&record.Ledger{Acked: 100, Lost: 10, Unread: "no primary"}), "none reported": verified(nil)} {
		s.session.Finished = true
		s.setVerification()
		if v := s.test.Status.Verification; v == nil || v.Unread == "" || v.LostWrites != nil || s.test.Status.Summary.LostWrites != nil {
			t.Fatalf("%s: %+v", name, v)
		}
		s.test.Spec.Objectives = &v1alpha1.Objectives{MaxLostWrites: new(int64(0))}
		s.result = &result.Load{Total: result.Operation{Requests: 1}}
		s.judge(v1alpha1.ReasonSucceeded)
		if s.test.Status.Verdict != v1alpha1.VerdictInconclusive {
			t.Errorf("%s: verdict %s", name, s.test.Status.Verdict)
		}
	}
}

// What is new about acknowledged writes is written at once: the pods wait for it.
func TestVerificationIsDue(t *testing.T) {
	s := verified(&record.Ledger{Acked: 100})
	r := &RedisLoadTestReconciler{Clock: testingclock.NewFakePassiveClock(t0), Runs: runs.NewRegistry()}
	s.run = runs.NewRegistry().Add("shop", t0, nil)
	for range 2 {
		if !r.due(s) {
			t.Error("not due")
		}
	}
}

func TestVerificationFitsTheCRD(t *testing.T) {
	huge := uint64(math.MaxInt64)
	schema := statusSchema(t, "redquake.dev_redisloadtests.yaml").Properties["verification"]
	for _, l := range []*record.Ledger{{}, {
		Acked: huge, Failed: huge, Unknown: huge, UnknownPresent: huge, Lost: huge, FirstLost: 1, LastLost: int64(168 * time.Hour), Errors: huge,
		ReplicaMissing: huge, Replicas: 1000, Settings: strings.Repeat("x", 2000), Notes: []string{strings.Repeat("y", 2000)},
		Stale: &record.Staleness{Reads: huge, Stale: huge, MaxWrites: huge, MaxBehind: int64(168 * time.Hour), NonMonotonic: 1}, Dual: &record.DualPrimary{Writes: huge},
	}, {Unread: strings.Repeat("z", 2000)}} {
		fits(t, "verification", &schema, content(t, verificationStatus(l, t0)))
	}
}

// A settled fault is complete when its losses are known, and its verdict counts them: the change of its test wakes it.
func TestASettledFaultIsCompleteWithItsLosses(t *testing.T) {
	f := struck("failover", 10*time.Second)
	f.Finalizers = []string{v1alpha1.FinalizerFault}
	f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxLostWrites: new(int64(9))}
	f.Spec.Action.Type, f.Status.Effect = v1alpha1.FaultPodKill, v1alpha1.EffectConfirmed
	f.Status.StartTime, f.Status.RecoveredAt = &metav1.MicroTime{Time: t0.Add(9 * time.Second)}, &metav1.MicroTime{Time: t0.Add(11 * time.Second)}
	f.Status.Impact.RecoveryTime = &v1alpha1.BoundedDuration{Value: 1e6, AtLeast: 1e6, AtMost: 1e6}
	f.Status.Targets = []v1alpha1.FaultTarget{{Pod: "redis-0", UID: "u", InjectedAt: f.Status.InjectedAt, ActiveAt: f.Status.InjectedAt, RevertedAt: f.Status.InjectedAt}}
	test := verified(nil).test
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&f, test).WithObjects(&f, test).Build()
	r := &RedisFaultReconciler{Client: c, Live: c, Clock: testingclock.NewFakePassiveClock(t0.Add(time.Hour)), Recorder: events.NewFakeRecorder(16), Runs: runs.NewRegistry()}
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
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionComplete); c == nil || c.Status == metav1.ConditionTrue || c.Reason != v1alpha1.ReasonWaitingForLosses || status.Verdict != "" {
		t.Errorf("before the ledger was read: %+v, verdict %q", c, status.Verdict)
	}
	test.Status.Verification = verified(&record.Ledger{Acked: 100, Lost: 10, Losses: []record.Loss{{First: 11 * second, Last: 12 * second, Count: 10}}}).test.Status.Verification
	if err := c.Status().Update(t.Context(), test); err != nil {
		t.Fatal(err)
	}
	if requests := r.faultsOfLoadTest(t.Context(), test); len(requests) != 1 {
		t.Errorf("the test's change wakes %v", requests)
	}
	status = look()
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionComplete) || status.Impact.LostWrites == nil || *status.Impact.LostWrites != 10 || status.Verdict != v1alpha1.VerdictFail {
		t.Errorf("after it: %+v, verdict %q", status.Impact, status.Verdict)
	}
	if requests := r.faultsOfLoadTest(t.Context(), test); len(requests) != 0 {
		t.Errorf("a complete fault changes no more, yet the test wakes %v", requests)
	}
}
