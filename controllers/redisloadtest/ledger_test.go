package redisloadtest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/figures"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// verified is a test that began at t0 and has this ledger.
func verified(ledger *record.Ledger) *scope.Test {
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "shop"}}
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	test.Status.StartTime, test.Status.Summary = &metav1.MicroTime{Time: t0}, &v1alpha1.LoadSummary{}
	test.Status.Display = &v1alpha1.LoadTestDisplay{}
	s := &scope.Test{
		Test:   test,
		Before: test.DeepCopy(),
		Plan:   &plan.Plan{Verify: &plan.Verify{}},
		Seen:   lifecycle.LoadTest{Course: lifecycle.Course{StartedAt: t0}},
	}
	s.Session.Ledger = ledger
	figures.SetVerification(s)
	return s
}

const second = int64(time.Second)

// The status has the losses of the ledger.
func TestVerificationStatus(t *testing.T) {
	s := verified(&record.Ledger{
		Acked: 100, Lost: 36, FirstLost: 9 * second, LastLost: 62 * second, Errors: 2,
		Losses: []record.Loss{
			{First: 3 * second, Last: 4*second + 5e8, Count: 1},
			{First: 14 * second, Last: 15 * second, Count: 35, Errors: 2},
		},
	})
	v := s.Test.Status.Verification
	if *s.Test.Status.Summary.LostWrites != 36 || *v.LostWrites != 36 || !*v.SawErrors ||
		!v.FirstLost.Time.Equal(t0.Add(9*time.Second)) || !v.LastLost.Time.Equal(t0.Add(62*time.Second)) {
		t.Errorf("36 lost writes are verified as %+v", v)
	}
	if d := s.Test.Status.Display; d.LostWrites != "36" {
		t.Errorf("the column shows %q, want 36", d.LostWrites)
	}
	want := []v1alpha1.LossWindow{
		{First: v1alpha1.DurationOf(3 * time.Second), Last: v1alpha1.DurationOf(4_500 * time.Millisecond), Count: 1},
		{First: v1alpha1.DurationOf(14 * time.Second), Last: v1alpha1.DurationOf(15 * time.Second), Count: 35, Errors: 2},
	}
	if diff := cmp.Diff(want, v.Losses); diff != "" {
		t.Error(diff)
	}
}

// The result has when the first and the last lost write were acknowledged: of the ledger, and by the status when the
// load pods are released.
func TestInstantsOfLostWrites(t *testing.T) {
	s := verified(&record.Ledger{
		Acked:     100,
		Lost:      2,
		FirstLost: 9 * second,
		LastLost:  62*second + 5e8,
		Errors:    2,
		Notes:     []string{"a note"},
	})
	s.Result = &result.Load{Total: result.Operation{Requests: 100, OK: 100}}
	figures.Judge(s, v1alpha1.ReasonSucceeded)
	released := &scope.Test{Test: s.Test, Seen: s.Seen, Result: &result.Load{Total: s.Result.Total}}
	figures.Judge(released, v1alpha1.ReasonSucceeded)
	for name, l := range map[string]*result.Load{"of the ledger": s.Result, "by the status": released.Result} {
		if v := l.Verification; v == nil || v.FirstLost != result.Seconds(9*time.Second) ||
			v.LastLost != result.Seconds(62500*time.Millisecond) || *v.Lost != 2 {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if v := s.Result.Verification; v.Errors != 2 || len(s.Result.Notes) != 1 {
		t.Errorf("of the ledger: %+v, notes %q", v, s.Result.Notes)
	}
}

// What Redis may have evicted makes the number a range, for the verdict and the faults as well.
func TestVerificationOfEvictedKeys(t *testing.T) {
	s := verified(&record.Ledger{
		Acked:     100,
		Lost:      36,
		LastLost:  second,
		Unique:    true,
		Evictions: map[string]record.Evictions{"a": {Keys: 10, Final: true}},
	})
	v := s.Test.Status.Verification
	if v.LostWrites != nil || s.Test.Status.Summary.LostWrites != nil || *v.LostWritesAtLeast != 26 ||
		*v.LostWritesAtMost != 36 || v.LastLost == nil ||
		!strings.HasPrefix(v.Note, "Between 26 and 36 writes were lost") {
		t.Errorf("%+v", v)
	}
	if d := s.Test.Status.Display; d.LostWrites != "26-36" {
		t.Errorf("the column shows %q, want 26-36", d.LostWrites)
	}
	if diff := cmp.Diff(&result.Count{AtLeast: 26, AtMost: 36}, digest.VerificationOf(v, t0).LostWrites()); diff != "" {
		t.Error(diff)
	}
}

// Of a library the status has what the server executed although it failed, and more than once, and so has the result
// that is made of the status. That nothing was acknowledged is no reason not to know it.
func TestExecutionsOfALibrary(t *testing.T) {
	for _, acked := range []uint64{0, 600} {
		v := verified(&record.Ledger{
			Acked: acked, Failed: 4, Unknown: 9, UnknownPresent: 5, FailedPresent: 1, ExecutedTwice: new(uint64(50)),
		}).Test.Status.Verification
		back := digest.VerificationOf(v, t0)
		if *v.FailedButExecuted != 6 || *v.ExecutedTwice != 50 || *back.FailedButExecuted != 6 || *back.ExecutedTwice != 50 {
			t.Errorf("%+v, and back %+v", v, back)
		}
	}
	if v := verified(&record.Ledger{Acked: 1, UnknownPresent: 5}).Test.Status.Verification; v.FailedButExecuted != nil ||
		digest.VerificationOf(v, t0).ExecutedTwice != nil {
		t.Errorf("of driver Native: %+v", v)
	}
}

// The status has what the load pods found of locks, and so has the result that is made of the status; two users that
// held one lock miss the objective, a load pod that did not tell leaves it open.
func TestGuarantees(t *testing.T) {
	for name, row := range map[string]struct {
		found *record.Guarantees
		limit time.Duration
		want  v1alpha1.Verdict
	}{
		"none": {&record.Guarantees{Lock: &record.Lock{Taken: 9}}, 0, v1alpha1.VerdictPass},
		"overlap": {
			&record.Guarantees{Lock: &record.Lock{
				Taken: 9, Overlaps: 2, Overlap: 7e6, FirstOverlap: second, LastOverlap: 2 * second, Lost: 3, Expired: 1,
				Unreplicated: 4, Unheld: 5 * second, FencesBack: new(uint64(6)),
			}}, 0, v1alpha1.VerdictFail,
		},
		"within": {&record.Guarantees{Lock: &record.Lock{Taken: 9, Overlaps: 2, Overlap: 7e6}}, 7 * time.Millisecond, v1alpha1.VerdictPass},
		"part":   {&record.Guarantees{Lock: &record.Lock{Taken: 9}, Untold: "a pod was lost"}, 0, v1alpha1.VerdictInconclusive},
		"part with an overlap": {
			&record.Guarantees{Lock: &record.Lock{Taken: 9, Overlaps: 1, Overlap: 7e6}, Untold: "a pod was lost"}, 0, v1alpha1.VerdictFail,
		},
		"never taken": {&record.Guarantees{Lock: &record.Lock{}}, 0, v1alpha1.VerdictInconclusive},
		"nothing":     {nil, 0, v1alpha1.VerdictInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "shop"}}
			test.Spec.Objectives = &v1alpha1.Objectives{MaxLockOverlap: &metav1.Duration{Duration: row.limit}}
			test.Status.StartTime = &metav1.MicroTime{Time: t0}
			s := &scope.Test{
				Test:   test,
				Before: test.DeepCopy(),
				Plan:   &plan.Plan{Workload: plan.Workload{Lock: &plan.Lock{}}},
				Seen:   lifecycle.LoadTest{Course: lifecycle.Course{StartedAt: t0}},
				Result: &result.Load{Total: result.Operation{Requests: 100, OK: 100}},
			}
			if name == "overlap" { // which is certain, whatever else is in doubt
				s.Result.Doubts = []impact.Doubt{{Reason: impact.GeneratorStarved, Message: "it had no CPU"}}
			}
			s.Session.Guarantees, s.Session.Finished = row.found, true
			figures.SetGuarantees(s)
			figures.Judge(s, v1alpha1.ReasonSucceeded)
			if test.Status.Verdict != row.want {
				t.Errorf("%s: %+v", test.Status.Verdict, test.Status.Objectives)
			}
			if test.Status.Guarantees == nil {
				t.Fatal("the status has nothing")
			}
			of := s.Result.Guarantees
			released := &scope.Test{Test: test, Seen: s.Seen, Result: &result.Load{Total: s.Result.Total}}
			figures.Judge(released, v1alpha1.ReasonSucceeded)
			if row.found == nil {
				of = &result.Guarantees{Untold: test.Status.Guarantees.Untold}
			}
			if diff := cmp.Diff(of, digest.LoadOf(&test.Status, plan.Shape{}).Guarantees); diff != "" {
				t.Errorf("an experiment reads: %s", diff)
			}
			if diff := cmp.Diff(of, released.Result.Guarantees); diff != "" || test.Status.Verdict != row.want {
				t.Errorf("by the status %s: %s", test.Status.Verdict, diff)
			}
		})
	}
}

// A session without the ledger does not change the stored verification.
func TestVerificationSurvivesARestart(t *testing.T) {
	stored := verified(&record.Ledger{
		Acked:  100,
		Lost:   10,
		Losses: []record.Loss{{First: 11 * second, Last: 12 * second, Count: 10}},
	})
	again := &scope.Test{Test: stored.Test.DeepCopy(), Plan: stored.Plan, Seen: stored.Seen}
	again.Test.Status.Summary = &v1alpha1.LoadSummary{}
	again.Session.Finished = true
	figures.SetVerification(again)
	if diff := cmp.Diff(stored.Test.Status, again.Test.Status); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadLedgerHasNoLosses(t *testing.T) {
	for name, s := range map[string]*scope.Test{
		"unread":        verified(&record.Ledger{Acked: 100, Lost: 10, Unread: "no primary"}),
		"none reported": verified(nil),
	} {
		s.Session.Finished = true
		figures.SetVerification(s)
		if v := s.Test.Status.Verification; v == nil || v.Unread == "" || v.LostWrites != nil ||
			s.Test.Status.Summary.LostWrites != nil {
			t.Fatalf("%s: %+v", name, v)
		}
		s.Test.Spec.Objectives = &v1alpha1.Objectives{MaxLostWrites: new(int64(0))}
		s.Result = &result.Load{Total: result.Operation{Requests: 1, OK: 1}}
		figures.Judge(s, v1alpha1.ReasonSucceeded)
		if s.Test.Status.Verdict != v1alpha1.VerdictInconclusive {
			t.Errorf("%s: verdict %s", name, s.Test.Status.Verdict)
		}
	}
}

// A new verification is written at once, as the pods wait for that.
func TestVerificationIsDue(t *testing.T) {
	s := verified(&record.Ledger{Acked: 100})
	r := &Reconciler{Clock: testingclock.NewFakePassiveClock(t0), Runs: runs.NewRegistry()}
	s.Run = runs.NewRegistry().Add("shop", t0, nil)
	for range 2 {
		if !r.statusDue(s) {
			t.Error("not due")
		}
	}
}

func TestVerificationFitsTheCRD(t *testing.T) {
	huge := uint64(math.MaxInt64)
	schema := apitest.StatusSchema(t, "redquake.dev_redisloadtests.yaml").Properties["verification"]
	for _, l := range []*record.Ledger{{}, {
		Acked:          huge,
		Failed:         huge,
		Unknown:        huge,
		UnknownPresent: huge,
		Lost:           huge,
		FirstLost:      1,
		LastLost:       int64(168 * time.Hour),
		Errors:         huge,
		ReplicaMissing: huge,
		Replicas:       1000,
		Settings:       strings.Repeat("x", 2000),
		Notes:          []string{strings.Repeat("y", 2000)},
		Stale: &record.Staleness{
			Reads:        huge,
			Stale:        huge,
			MaxWrites:    huge,
			MaxBehind:    int64(168 * time.Hour),
			NonMonotonic: 1,
		},
		Dual: &record.DualPrimary{Writes: huge},
	}, {Unread: strings.Repeat("z", 2000)}} {
		apitest.Fits(t, "verification", &schema, digest.Ledger(l, t0))
	}
}
