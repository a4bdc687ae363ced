package redisfault_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// A setting is in force before its load exists, the load does not see it, and it is reverted as soon as the load has
// ended.
func TestSettingOfALoad(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"its own target", "the load's target"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				redis := w.Redis
				setting := operatortest.SettingFor("setting", "hz", "50")
				if from != "its own target" {
					setting.Spec.Target = nil
				}
				w.Create(setting)
				if from == "its own target" {
					f := w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
					if redis.Hz("") != "50" || f.Status.LoadStartTime != nil || f.Status.Display == nil ||
						!strings.Contains(operatortest.Where(f.Status.Conditions), "which has not started yet") {
						t.Errorf("%s; hz %s, %+v", operatortest.Where(f.Status.Conditions), redis.Hz(""), f.Status.Display)
					}
				} else {
					w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
				}
				w.CreateLoad(operatortest.Lasting(20*time.Second, operatortest.UntilFaultsSettle))
				if from == "its own target" {
					time.Sleep(15 * time.Second)
				} else {
					w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				}
				test := w.TestEnds("run", time.Minute)
				if test.Status.Verdict != v1alpha1.VerdictPass || len(test.Status.Faults) != 0 ||
					test.Status.Display.Faults != "" || test.Status.Progress != 100 {
					t.Errorf("load: %s, verdict %s, faults %v", operatortest.Where(test.Status.Conditions), test.Status.Verdict,
						test.Status.Faults)
				}
				if took := test.Status.CompletionTime.Sub(test.Status.StartTime.Time); took > 30*time.Second {
					t.Errorf("the load of 20s took %s: it has waited for its setting", took)
				}
				f := w.FaultEnds("setting", 20*time.Second)
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.Hz("") != "10" {
					t.Errorf("%s; hz %s", operatortest.Where(f.Status.Conditions), redis.Hz(""))
				}
				operatortest.HeldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
				if !f.Status.LoadStartTime.Equal(test.Status.StartTime) || f.Status.LoadTestUID != string(test.UID) ||
					f.Status.HeldUntil == nil ||
					f.Status.RevertingSince.Before(f.Status.HeldUntil) || f.Status.RevertingSince.Before(test.Status.CompletionTime) {
					t.Errorf("load %s of %s, held until %s, reverted from %s on", f.Status.LoadTestUID, f.Status.LoadStartTime,
						f.Status.HeldUntil, f.Status.RevertingSince)
				}
			})
		})
	}
}

// Without a load a setting stays for its duration; an abort, and a stop, end it before.
func TestSettingWithoutALoad(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *operatortest.World){
		v1alpha1.ReasonSucceeded: func(*operatortest.World) {},
		v1alpha1.ReasonAborted: func(w *operatortest.World) {
			w.MustChange(operatortest.Change(w.Place, w.Fault("setting"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				operatortest.StartOperator(w.Place, operatortest.Spy{})
				setting := operatortest.SettingFor("setting", "hz", "50")
				setting.Spec.Duration = operatortest.Length(2 * time.Minute)
				w.Create(setting)
				w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				began := time.Now()
				time.Sleep(time.Minute)
				end(w)
				f := w.FaultEnds("setting", 2*time.Minute)
				if operatortest.Reason(f.Status.Conditions) != name || redis.Hz("") != "10" {
					t.Errorf("%s; hz %s", operatortest.Where(f.Status.Conditions), redis.Hz(""))
				}
				if took := time.Since(began); name == v1alpha1.ReasonSucceeded &&
					(took < 115*time.Second || took > 125*time.Second) {
					t.Errorf("it stayed for %s", took)
				}
				operatortest.HeldIs(t, f, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
			})
		})
	}
}

// A setting without a load does not stay for its duration of a day: neither where the load never comes, nor where it is
// deleted before its start.
func TestSettingWhoseLoadDoesNotCome(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted %v", deleted), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				w.Create(operatortest.SettingFor("setting", "hz", "50"))
				w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				if deleted {
					time.Sleep(4 * time.Minute)
					waits := operatortest.LongRun(w.Redis.Address())
					waits.Spec.Suspend = true
					w.Create(waits)
					time.Sleep(3 * time.Minute)
					w.MustChange(w.Client.Delete(t.Context(), w.LoadTest("run")))
				}
				gone := time.Now()
				f := w.FaultEnds("setting", 2*lifecycle.LoadGrace)
				if took := time.Since(gone); took < lifecycle.LoadGrace-10*time.Second ||
					took > lifecycle.LoadGrace+10*time.Second {
					t.Errorf("it ended %s after its load was there, %s", took, operatortest.Where(f.Status.Conditions))
				}
				if w.Redis.Hz("") != "10" || f.Status.RevertedAt == nil ||
					operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonLoadTestNotFound {
					t.Errorf("%s; hz %s", operatortest.Where(f.Status.Conditions), w.Redis.Hz(""))
				}
				if held := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionHeld); held == nil ||
					held.Reason != v1alpha1.ReasonCutShort {
					t.Errorf("held %+v", held)
				}
			})
		})
	}
}

// A setting that is created in the middle of its load is injected, but the figures are not those of it.
func TestLateSetting(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Load(func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.WarmUp, test.Spec.Load.Duration = operatortest.Length(10*time.Second),
			operatortest.Length(time.Minute)
	})}.Run(t, func(w *operatortest.World) {
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonWarmingUp)
		w.Create(operatortest.SettingFor("early", "hz", "50"))
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(2 * time.Second)
		w.Create(operatortest.SettingFor("late", "maxmemory", "100000000"))
		w.TestEnds("run", 2*time.Minute)
		operatortest.HeldIs(t, w.FaultEnds("early", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld,
			v1alpha1.VerdictPass)
		operatortest.HeldIs(t, w.FaultEnds("late", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLate,
			v1alpha1.VerdictInconclusive)
	})
}

// A setting that is late for its load breaks nothing.
func TestSettingOfALoadThatIsOver(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.Load()}.Run(t, func(w *operatortest.World) {
		w.TestEnds("run", time.Minute)
		w.Create(operatortest.SettingFor("setting", "hz", "50"))
		f := w.FaultEnds("setting", 20*time.Second)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonLoadTestEnded || f.Status.StartTime != nil {
			t.Errorf("%s, %+v", operatortest.Where(f.Status.Conditions), f.Status)
		}
	})
}

// A load test that is deleted before its start is still to come, also after a restart of the operator; one that had
// started is over.
func TestSettingWhoseLoadIsDeleted(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{
				Faults: []*v1alpha1.RedisFault{operatortest.SettingFor("setting", "hz", "50")},
			}.Run(t, func(w *operatortest.World) {
				redis := w.Redis
				w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				held := operatortest.LongRun(redis.Address())
				held.Spec.Suspend = true
				w.Create(held)
				w.TestHasReason("run", 20*time.Second, v1alpha1.ReasonSuspended)
				w.MustChange(w.Client.Delete(t.Context(), held))
				time.Sleep(20 * time.Second)
				w.CreateLoad(operatortest.LongRun)
				w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
				if f := w.Fault("setting"); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonActive ||
					redis.Hz("") != "50" {
					t.Fatalf("while the load runs: %s, hz %s", operatortest.Where(f.Status.Conditions), redis.Hz(""))
				}
				if restart {
					w.Operator.Stop()
				}
				w.MustChange(w.Client.Delete(t.Context(), w.LoadTest("run")))
				if restart {
					// another one of the same name, before anybody has seen that the first is gone
					w.CreateLoad(operatortest.LongRun)
					operatortest.StartOperator(w.Place, operatortest.Spy{})
				}
				f := w.FaultEnds("setting", 20*time.Second)
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.Hz("") != "10" {
					t.Errorf("%s; hz %s", operatortest.Where(f.Status.Conditions), redis.Hz(""))
				}
				operatortest.HeldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
			})
		})
	}
}

// Faults on the load act beside its setting, and are measured as without it. A kill loses the setting, which its
// verdict says; the kill itself passes.
func TestFaultBesideASetting(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.SetPolicy("version: v1alpha1\nmaxFaults: 1\n")
		w.Create(operatortest.SettingFor("setting", "hz", "50"))
		w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
		w.CreateLoad(operatortest.Lasting(30*time.Second, operatortest.UntilFaultsSettle))
		// of another load, longer in the queue than the faults of this one
		stranger := operatortest.HzFor("stranger", "70", 20*time.Second)
		stranger.Spec.LoadTestRef, stranger.Spec.Target = nil, operatortest.SettingFor("", "", "").Spec.Target
		w.Create(stranger)
		w.FaultHasReason("stranger", time.Minute, v1alpha1.ReasonWaitingForFault)
		same := operatortest.HzFor("same", "60", 20*time.Second)
		w.Create(same)
		other := operatortest.HzFor("other", "60", 10*time.Second)
		other.Spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{"maxmemory": "100000000"}
		w.Create(other)
		kill := operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: operatortest.Length(10 * time.Second)}
		})
		w.Create(kill)
		f := w.FaultEnds("same", time.Minute)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(c.Message, "RedisFault setting, a setting of RedisLoadTest run, changes hz of pod redis-0") {
			t.Errorf("same: %s", operatortest.Where(f.Status.Conditions))
		}
		for _, name := range []string{"other", "kill"} {
			f := w.FaultEnds(name, 5*time.Minute)
			if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded ||
				f.Status.Verdict != v1alpha1.VerdictPass ||
				f.Status.Impact == nil {
				t.Errorf("%s: %s, verdict %s, %+v", name, operatortest.Where(f.Status.Conditions), f.Status.Verdict,
					f.Status.Impact)
			}
		}
		if f := w.Fault("setting"); operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonActive {
			t.Errorf("beside the faults: %s", operatortest.Where(f.Status.Conditions))
		}
		test := w.TestEnds("run", 5*time.Minute)
		if len(test.Status.Faults) != 2 {
			t.Errorf("the load has the faults %+v", test.Status.Faults)
		}
		operatortest.HeldIs(t, w.FaultEnds("setting", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
			v1alpha1.VerdictInconclusive)
		if f := w.FaultHasReason("stranger", 3*time.Minute,
			v1alpha1.ReasonActive); f.Status.InjectedAt.Time.Before(w.Fault("setting").Status.RevertedAt.Time) {
			t.Errorf("the fault of another load acted beside the setting: %s", f.Status.InjectedAt)
		}
	})
}

// Two settings of a load, and a fault that is still active when the load ends, are reverted in the reverse order of
// their injection, also by an abort.
func TestSettingsAreRevertedInReverse(t *testing.T) {
	t.Parallel()
	for _, abort := range []bool{false, true} {
		t.Run(fmt.Sprintf("abort %v", abort), func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
				w.Create(operatortest.SettingFor("first", "hz", "50"))
				time.Sleep(time.Second)
				w.Create(operatortest.SettingFor("second", "maxmemory", "100000000"))
				w.FaultHasReason("second", time.Minute, v1alpha1.ReasonActive)
				w.CreateLoad(operatortest.Lasting(time.Minute))
				a, b := w.Fault("first"), w.Fault("second")
				if b.Status.InjectedAt.Time.Before(a.Status.Targets[0].ActiveAt.Time) {
					t.Errorf("%s was injected before %s was complete", b.Name, a.Name)
				}
				if abort {
					time.Sleep(20 * time.Second)
					w.MustChange(operatortest.Change(w.Place, w.Fault(a.Name), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
					f := w.FaultHasReason(a.Name, 20*time.Second, v1alpha1.ReasonReverting)
					w.Until("it names the other", 10*time.Second, func() bool {
						f = w.Fault(a.Name)
						return strings.Contains(operatortest.Where(f.Status.Conditions),
							"RedisFault "+b.Name+", which was injected later")
					}, func() string { return operatortest.Where(f.Status.Conditions) })
				}
				a, b = w.FaultEnds(a.Name, 3*time.Minute), w.FaultEnds(b.Name, 3*time.Minute)
				if a.Status.RevertingSince.Time.Before(b.Status.RevertedAt.Time) {
					t.Errorf("%s was reverted from %s on, %s at %s", a.Name, a.Status.RevertingSince, b.Name, b.Status.RevertedAt)
				}
				if got := w.Redis.Hz("") + " " + w.Redis.Setting("maxmemory", ""); got != "10 0" {
					t.Errorf("in the end: %s", got)
				}
				operatortest.HeldIs(t, b, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
				if abort {
					operatortest.HeldIs(t, a, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
				} else {
					operatortest.HeldIs(t, a, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
				}
			})
		})
	}
}

// A setting is rehearsed without its load.
func TestSettingIsRehearsed(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		f := operatortest.SettingFor("setting", "hz", "50")
		f.Spec.DryRun = true
		w.Create(f)
		f = w.FaultEnds("setting", 20*time.Second)
		if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonDryRun || redis.Hz("") != "10" ||
			len(f.Status.Warnings) != 0 {
			t.Errorf("%s, hz %s, warnings %v", operatortest.Where(f.Status.Conditions), redis.Hz(""), f.Status.Warnings)
		}
		if p := f.Status.Plan; p == nil || p.Trigger != "at once, whether RedisLoadTest run exists yet or not" ||
			!strings.HasPrefix(p.End, "when RedisLoadTest run has ended, at the latest 24h") {
			t.Errorf("plan %+v", p)
		}
	})
}

// The operator ends just before or after each of its writes, and another one goes on: the load runs with the setting,
// and in the end nothing of it is left.
func TestSettingSurvivesACrashAnywhere(t *testing.T) {
	t.Parallel()
	for n := int32(1); n <= 24; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) {
				t.Parallel()
				operatortest.InWorld(t, func(w *operatortest.World) {
					redis := w.StartRedis("")
					w.Kubelet.Start()
					var writes atomic.Int32
					operatortest.KeepRunning(w.Place, func(self func() *operatortest.Operator) operatortest.Spy {
						return operatortest.CrashAt(n, after, &writes, self)
					})
					w.Create(operatortest.SettingFor("setting", "hz", "50"))
					w.FaultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
					w.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
						test.Spec.Load.Duration = operatortest.Length(
							10 * time.Second)
					}))
					test := w.TestEnds("run", time.Minute)
					f := w.FaultEnds("setting", time.Minute)
					if redis.Hz("") != "10" || f.Status.RevertingSince.Time.Before(test.Status.CompletionTime.Time) {
						t.Errorf("%s; hz %s, reverted from %s on, the load ended at %s", operatortest.Where(f.Status.Conditions),
							redis.Hz(""),
							f.Status.RevertingSince, test.Status.CompletionTime)
					}
					operatortest.HeldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
					if writes.Load() < n {
						t.Errorf("there were only %d writes: no crash", writes.Load())
					}
				})
			})
		}
	}
}

// A setting that is deleted is reverted at once, whatever runs with it.
func TestSettingIsDeleted(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{}.Run(t, func(w *operatortest.World) {
		w.Create(operatortest.SettingFor("setting", "hz", "50"))
		f := w.FaultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
		w.CreateLoad(operatortest.LongRun)
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		w.MustChange(w.Client.Delete(context.Background(), f))
		operatortest.HzIs(t, w.Redis, "10", 5*time.Second)
		w.Until("it is removed", 10*time.Second,
			func() bool { return !w.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}}) },
			func() string { return "" })
	})
}
