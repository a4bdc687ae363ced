package redisfault_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/record"
	reports "github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/report/subject"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// verifiedRun is a load for some minutes that keeps a ledger.
func verifiedRun(address string) *v1alpha1.RedisLoadTest {
	return operatortest.NewLoadTest("run", address, func(test *v1alpha1.RedisLoadTest) {
		operatortest.Verifies(test)
		test.Spec.Load.Duration = operatortest.Length(3 * time.Minute)
	})
}

// hzUnlessLost is a fault of some minutes that ends at a lost write.
func hzUnlessLost(lasts time.Duration) *v1alpha1.RedisFault {
	f := operatortest.HzFor("stops", "50", lasts)
	f.Spec.StopIf = &v1alpha1.StopConditions{LostWrites: new(int64(10))}
	return f
}

// Lost writes revert the fault while the load runs; the final figure is that of the ledger, which is read after the
// load.
func TestLostWritesAreABreach(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		redis := w.Redis
		w.Create(hzUnlessLost(2 * time.Minute))
		operatortest.HzIs(t, redis, "50", time.Minute)
		time.Sleep(20 * time.Second)
		began := time.Now()
		redis.Flush()
		reverted := operatortest.HzIs(t, redis, "10", 10*time.Second)
		f := w.FaultEnds("stops", 5*time.Minute)
		b := f.Status.Breach
		if b == nil || b.Condition != "spec.stopIf.lostWrites" || !b.Answered ||
			!strings.Contains(b.Message, "acknowledged ledger writes are lost, limit 10") {
			t.Fatalf("breach %+v", b)
		}
		if seen := b.At.Sub(began); seen < 0 || seen > 3*time.Second || reverted.Sub(b.At.Time) > time.Second {
			t.Errorf("the breach was seen after %s, and the fault reverted %s later", seen, reverted.Sub(b.At.Time))
		}
		checkStopped(t, w, f, v1alpha1.VerdictFail)
		if lost := f.Status.Impact.LostWrites; lost == nil || *lost < 1000 {
			t.Errorf("lost writes in the end: %v", lost)
		}
		t.Log(b.Message)
	})
}

// A Redis that hangs has lost nothing, and its ledger is not read meanwhile: neither is a breach.
func TestAnUnreadLedgerIsNoBreach(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		w.Create(hzUnlessLost(time.Minute))
		operatortest.HzIs(t, w.Redis, "50", time.Minute)
		w.Redis.Silence()
		time.Sleep(20 * time.Second)
		w.Redis.Resume()
		f := w.FaultEnds("stops", 5*time.Minute)
		if f.Status.Breach != nil || operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
			t.Errorf("%s, %+v", operatortest.Where(f.Status.Conditions), f.Status.Breach)
		}
	})
}

// If keys may have been evicted while the fault is active, lost writes will not be known: no answer is a breach.
func TestUnknowableLostWritesAreABreach(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		w.Create(hzUnlessLost(2 * time.Minute))
		operatortest.HzIs(t, w.Redis, "50", time.Minute)
		time.Sleep(10 * time.Second)
		w.Servers.FailChecks(record.LedgerCheck{Failure: "the ledger may have been evicted", Unknowable: true})
		operatortest.HzIs(t, w.Redis, "10", 10*time.Second)
		f := w.FaultEnds("stops", 5*time.Minute)
		if b := f.Status.Breach; b == nil || b.Answered || !strings.Contains(b.Message, "the ledger may have been evicted") ||
			f.Status.Verdict != v1alpha1.VerdictInconclusive {
			t.Errorf("verdict %s, breach %+v", f.Status.Verdict, b)
		}
	})
}

// A fault that was ended as its condition could not be evaluated any more, and that had lost too much for certain, is a
// Fail; that it was ended early is a doubt about all else, in its status, its report and an experiment.
func TestLostTooMuchAndEndedEarly(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		f := hzUnlessLost(2 * time.Minute)
		f.Spec.Objectives = &v1alpha1.FaultObjectives{
			MaxLostWrites: new(int64(0)), MaxOutage: operatortest.Length(10 * time.Second), MaxErrors: new(int64(1_000_000)),
		}
		w.Create(f)
		operatortest.HzIs(t, w.Redis, "50", time.Minute)
		time.Sleep(10 * time.Second)
		w.Servers.FailChecks(record.LedgerCheck{Failure: "the ledger may have been evicted", Unknowable: true})
		w.Redis.Flush()
		operatortest.HzIs(t, w.Redis, "10", 20*time.Second)
		f = w.FaultEnds("stops", 5*time.Minute)
		early := slices.ContainsFunc(f.Status.Impact.Doubts, func(d v1alpha1.Doubt) bool {
			return d.Reason == v1alpha1.ReasonStopConditionMet
		})
		if b := f.Status.Breach; b == nil || b.Answered || f.Status.Verdict != v1alpha1.VerdictFail || !early {
			t.Fatalf("verdict %s, breach %+v, doubts %v", f.Status.Verdict, b, f.Status.Impact.Doubts)
		}
		test := w.LoadTest("run")
		report, err := run.Fault(subject.Input{Name: "run", Test: test, Faults: []v1alpha1.RedisFault{*f}}, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range report.Objectives {
			if missed := o.Name == "maxLostWrites"; missed != (o.Judged == reports.Missed) || !missed && o.Judged != reports.NotJudged {
				t.Errorf("the report judges %s as %s", o.Name, o.Judged)
			}
		}
		meta.SetStatusCondition(&test.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded,
		})
		test.Status.Verdict, test.Status.Doubts = v1alpha1.VerdictPass, nil
		if why := experiment.OfObjects(test, []v1alpha1.RedisFault{*f}, result.Run{}).Inconclusive; !strings.Contains(why,
			"RedisFault stops: StopConditionMet: ") {
			t.Errorf("an experiment says %q", why)
		}
	})
}

// A condition that would never hold keeps the fault from being injected.
func TestLostWritesThatCannotBeKnown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(w *operatortest.World, test *v1alpha1.RedisLoadTest)
		reason  string
		says    string
	}{
		"no ledger": {
			func(_ *operatortest.World, test *v1alpha1.RedisLoadTest) {
				test.Spec.Verify, test.Spec.Objectives = nil,
					nil
			}, v1alpha1.ReasonInvalidSpec,
			"spec.stopIf.lostWrites: RedisLoadTest run does not verify its writes: set verify.acknowledgedWrites there",
		},
		"eviction": {
			func(w *operatortest.World, _ *v1alpha1.RedisLoadTest) {
				w.Servers.FailChecks(record.LedgerCheck{Failure: "maxmemory-policy is not noeviction", Unknowable: true})
			},
			v1alpha1.ReasonStopConditionMet,
			"spec.stopIf.lostWrites: lost writes are not known while the load runs: maxmemory-policy is not noeviction",
		},
		"forbidden": {
			func(w *operatortest.World, _ *v1alpha1.RedisLoadTest) {
				w.Servers.FailChecks(record.LedgerCheck{Failure: "10.0.0.2:6379 replied with an error: NOPERM"})
			},
			v1alpha1.ReasonStopConditionMet,
			"spec.stopIf.lostWrites: the load pods cannot look for lost writes: 10.0.0.2:6379 replied with an error: NOPERM",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				run := verifiedRun(redis.Address())
				test.prepare(w, run)
				w.Kubelet.Start()
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(run)
				w.Create(hzUnlessLost(time.Minute))
				f := w.FaultEnds("stops", time.Minute)
				if operatortest.Reason(f.Status.Conditions) != test.reason ||
					!strings.Contains(operatortest.Where(f.Status.Conditions), test.says) {
					t.Errorf("%s; want %s, %q", operatortest.Where(f.Status.Conditions), test.reason, test.says)
				}
				if f.Status.InjectedAt != nil || redis.Hz("") != "10" || len(f.Status.Targets) > 0 {
					t.Errorf("it was injected at %v", f.Status.InjectedAt)
				}
			})
		})
	}
}

// A fault that begins with its load waits for the first check of the ledger.
func TestFirstCheckOfTheLedgerIsAwaited(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		f := hzUnlessLost(10 * time.Second)
		f.Spec.Trigger.After = operatortest.Length(0)
		w.Create(f)
		operatortest.HzIs(t, w.Redis, "50", 30*time.Second)
		f = w.FaultEnds("stops", 5*time.Minute)
		if f.Status.Breach != nil || f.Status.InjectedOffset.Duration < time.Second {
			t.Errorf("injected after %s, %s", f.Status.InjectedOffset.Duration, operatortest.Where(f.Status.Conditions))
		}
	})
}

// A fault that leaves nothing to revert says that its stop conditions are only checked before.
func TestStopConditionsOfAFaultThatDoesNotLast(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: verifiedRun}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.NewFault("crash", "run", v1alpha1.FaultProcessCrash, func(f *v1alpha1.RedisFault) {
			f.Spec.StopIf = &v1alpha1.StopConditions{LostWrites: new(int64(1))}
		}))
		f := w.FaultEnds("crash", 5*time.Minute)
		if f.Status.InjectedAt == nil ||
			!strings.Contains(strings.Join(f.Status.Warnings, "; "), "spec.stopIf is only evaluated before the injection") {
			t.Errorf("%s; warnings %q", operatortest.Where(f.Status.Conditions), f.Status.Warnings)
		}
	})
}
