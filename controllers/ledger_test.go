package controllers

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/runs"
)

// struck is a fault of a test that began at t0, so long after it.
func struck(name string, after time.Duration) v1alpha1.RedisFault {
	f := v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	f.Spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: "shop"}
	f.Status.LoadTest = "shop"
	f.Status.LoadStartTime = &metav1.MicroTime{Time: t0}
	f.Status.InjectedAt = &metav1.MicroTime{Time: t0.Add(after)}
	f.Status.Impact = &v1alpha1.Impact{Recovered: true, RecoveryTime: "1s"}
	return f
}

func verified(result *record.Ledger, faults ...v1alpha1.RedisFault) *loadTestScope {
	test := &v1alpha1.RedisLoadTest{}
	test.Status.Summary = &v1alpha1.LoadSummary{}
	s := &loadTestScope{test: test, before: test.DeepCopy(), faults: faults, seen: lifecycle.LoadTest{StartedAt: t0}}
	s.session.Ledger = result
	s.setImpacts()
	s.setVerification()
	return s
}

const second = int64(time.Second)

func TestLossesGoToTheirFaults(t *testing.T) {
	result := &record.Ledger{
		Acked: 100, Lost: 36, FirstLost: 9 * second, LastLost: 62 * second, Errors: 2,
		Losses: []record.Loss{
			{First: 3 * second, Last: 4 * second, Count: 1},                   // before any fault
			{First: 9*second + 5e8, Last: 12 * second, Count: 10},             // around the first
			{First: 14 * second, Last: 15 * second, Count: 5, Errors: 1},      // later, but still its
			{First: 20 * second, Last: 29*second + 6e8, Count: 20, Errors: 1}, // ends just before the second
		},
	}
	s := verified(result, struck("a-failover", 10*time.Second), struck("b-kill", 30*time.Second), struck("c-quiet", 50*time.Second))
	want := []struct {
		lost        int64
		first, last string
		sawErrors   *bool
	}{{15, "-500ms", "5s", new(true)}, {20, "-10s", "-400ms", new(true)}, {0, "", "", nil}}
	for i, w := range want {
		got := s.test.Status.Impacts[i].Impact
		if got.LostWrites == nil || *got.LostWrites != w.lost || got.FirstLost != w.first || got.LastLost != w.last || !cmp.Equal(got.SawErrors, w.sawErrors) {
			t.Errorf("%s: %+v, want %+v", s.test.Status.Impacts[i].Fault, got, w)
		}
	}
	for _, f := range s.faults {
		if f.Status.Impact.LostWrites != nil {
			t.Error("the fault's own status is not the test's to change")
		}
	}
	v := s.test.Status.Verification
	if *s.test.Status.Summary.LostWrites != 36 || *v.LostWrites != 36 || !*v.SawErrors || !v.FirstLost.Time.Equal(t0.Add(9*time.Second)) || !v.LastLost.Time.Equal(t0.Add(62*time.Second)) {
		t.Errorf("%+v", v)
	}
}

// What the status holds survives a session that knows nothing of it.
func TestVerificationSurvivesARestart(t *testing.T) {
	result := &record.Ledger{Acked: 100, Lost: 10, Losses: []record.Loss{{First: 11 * second, Last: 12 * second, Count: 10}}}
	stored := verified(result, struck("failover", 10*time.Second)).test
	s := &loadTestScope{test: stored.DeepCopy(), before: stored, faults: []v1alpha1.RedisFault{struck("failover", 10*time.Second)}, seen: lifecycle.LoadTest{StartedAt: t0}}
	s.test.Status.Summary = &v1alpha1.LoadSummary{}
	s.setImpacts()
	s.setVerification()
	if diff := cmp.Diff(stored.Status, s.test.Status); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadLedgerLosesNoNumber(t *testing.T) {
	s := verified(&record.Ledger{Acked: 100, Lost: 10, Unread: "no primary"}, struck("failover", 10*time.Second))
	if s.test.Status.Summary.LostWrites != nil || s.test.Status.Verification.LostWrites != nil || s.test.Status.Impacts[0].Impact.LostWrites != nil {
		t.Errorf("%+v", s.test.Status.Verification)
	}
	s.test.Spec.Objectives = &v1alpha1.Objectives{MaxLostWrites: new(int64(0))}
	s.judge(v1alpha1.ReasonSucceeded)
	if s.test.Status.Verdict != v1alpha1.VerdictInconclusive {
		t.Errorf("verdict %s", s.test.Status.Verdict)
	}
}

// What is new about acknowledged writes is written at once: the pods wait for it.
func TestVerificationIsDue(t *testing.T) {
	s := verified(&record.Ledger{Acked: 100})
	r := &RedisLoadTestReconciler{Clock: testingclock.NewFakePassiveClock(t0), Runs: runs.NewRegistry()}
	s.run = newRun()
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

// A fault that was over long before takes what it lost from its test, once that has finished.
func TestFinishedFaultLearnsItsLoss(t *testing.T) {
	f := struck("failover", 10*time.Second)
	setStanding(&f.Status.Conditions, 1, standing{complete: true, reason: v1alpha1.ReasonSucceeded})
	test := verified(&record.Ledger{Acked: 100, Lost: 10, Losses: []record.Loss{{First: 11 * second, Last: 12 * second, Count: 10}}}, f).test
	test.Namespace, test.Name = "ns", "shop"
	test.Status.StartTime = &metav1.MicroTime{Time: t0}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithStatusSubresource(&f, test).WithObjects(&f, test).Build()
	r := &RedisFaultReconciler{Client: c, Clock: testingclock.NewFakePassiveClock(t0.Add(time.Hour)), Runs: runs.NewRegistry()}
	look := func() *int64 {
		t.Helper()
		s, err := r.observe(t.Context(), client.ObjectKeyFromObject(&f))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.report(t.Context(), s, lifecycle.Decision[lifecycle.FaultAction]{}, outcome{}); err != nil {
			t.Fatal(err)
		}
		var stored v1alpha1.RedisFault
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(&f), &stored); err != nil {
			t.Fatal(err)
		}
		return stored.Status.Impact.LostWrites
	}
	if got := look(); got != nil {
		t.Errorf("%d lost before the test has finished", *got)
	}
	setStanding(&test.Status.Conditions, 1, standing{complete: true, reason: v1alpha1.ReasonSucceeded})
	if err := c.Status().Update(t.Context(), test); err != nil {
		t.Fatal(err)
	}
	if requests := r.faultsOfLoadTest(t.Context(), test); len(requests) != 1 {
		t.Errorf("the test's end wakes %v", requests)
	}
	if got := look(); got == nil || *got != 10 {
		t.Errorf("lost %v", got)
	}
	if requests := r.faultsOfLoadTest(t.Context(), test); len(requests) != 0 {
		t.Errorf("nothing is left to learn, yet the test wakes %v", requests)
	}
}
