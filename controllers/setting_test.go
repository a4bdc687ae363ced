package controllers

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
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/lifecycle"
)

// settingFor is a setting of the load run: one parameter of the server, whose Redis is named by itself.
func settingFor(name, parameter string, value v1alpha1.ParameterValue) *v1alpha1.RedisFault {
	return newFault(name, "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Setting, f.Spec.Trigger = true, v1alpha1.FaultTrigger{}
		f.Spec.Target = &v1alpha1.RedisTarget{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
		}
		f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{parameter: value}}
	})
}

// heldIs checks how a setting ended.
func heldIs(t *testing.T, f *v1alpha1.RedisFault, status metav1.ConditionStatus, why string, judged v1alpha1.Verdict) {
	t.Helper()
	held := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionHeld)
	if held == nil || held.Status != status || held.Reason != why || f.Status.Verdict != judged {
		t.Errorf("%s: %s; held %+v, verdict %s; want %s, %s, %s", f.Name, where(f.Status.Conditions), held, f.Status.Verdict,
			status, why, judged)
	}
	met := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionObjectivesMet)
	if met == nil || held != nil && status != metav1.ConditionTrue &&
		!strings.Contains(met.Message, verdict.Phrase(held.Reason, held.Message)) {
		t.Errorf("%s: the verdict says %+v, the doubt is %+v", f.Name, met, held)
	}
	if s := &f.Status; s.Impact != nil || s.Objectives != nil || s.RevertedAt == nil || s.Holding != nil ||
		s.Display == nil || *s.Display != (v1alpha1.FaultDisplay{Target: s.Display.Target}) {
		t.Errorf("%s: status %+v, display %+v", f.Name, s, s.Display)
	}
}

// A setting is in force before its load exists, the load does not see it, and it is reverted as soon as the load has
// ended.
func TestSettingOfALoad(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"its own target", "the load's target"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				startOperator(w.place, spy{})
				setting := settingFor("setting", "hz", "50")
				if from != "its own target" {
					setting.Spec.Target = nil
				}
				w.create(setting)
				if from == "its own target" {
					f := w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
					if redis.hz("") != "50" || f.Status.LoadStartTime != nil || f.Status.Display == nil ||
						!strings.Contains(where(f.Status.Conditions), "which has not started yet") {
						t.Errorf("%s; hz %s, %+v", where(f.Status.Conditions), redis.hz(""), f.Status.Display)
					}
				} else {
					w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonWaitingForLoad)
				}
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = length(20*time.Second), length(10*time.Minute)
				}))
				if from == "its own target" {
					time.Sleep(15 * time.Second)
				} else {
					w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				}
				test := w.testEnds("run", time.Minute)
				if test.Status.Verdict != v1alpha1.VerdictPass || len(test.Status.Faults) != 0 ||
					test.Status.Display.Faults != "" || test.Status.Progress != 100 {
					t.Errorf("load: %s, verdict %s, faults %v", where(test.Status.Conditions), test.Status.Verdict, test.Status.Faults)
				}
				if took := test.Status.CompletionTime.Sub(test.Status.StartTime.Time); took > 30*time.Second {
					t.Errorf("the load of 20s took %s: it has waited for its setting", took)
				}
				f := w.faultEnds("setting", 20*time.Second)
				if reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.hz("") != "10" {
					t.Errorf("%s; hz %s", where(f.Status.Conditions), redis.hz(""))
				}
				heldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
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
	for name, end := range map[string]func(w *world){
		v1alpha1.ReasonSucceeded: func(*world) {},
		v1alpha1.ReasonAborted: func(w *world) {
			w.mustChange(change(w.place, w.fault("setting"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				startOperator(w.place, spy{})
				setting := settingFor("setting", "hz", "50")
				setting.Spec.Duration = length(2 * time.Minute)
				w.create(setting)
				w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				began := time.Now()
				time.Sleep(time.Minute)
				end(w)
				f := w.faultEnds("setting", 2*time.Minute)
				if reason(f.Status.Conditions) != name || redis.hz("") != "10" {
					t.Errorf("%s; hz %s", where(f.Status.Conditions), redis.hz(""))
				}
				if took := time.Since(began); name == v1alpha1.ReasonSucceeded &&
					(took < 115*time.Second || took > 125*time.Second) {
					t.Errorf("it stayed for %s", took)
				}
				heldIs(t, f, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				startOperator(w.place, spy{})
				w.create(settingFor("setting", "hz", "50"))
				w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				if deleted {
					time.Sleep(4 * time.Minute)
					waits := longRun(redis.address())
					waits.Spec.Suspend = true
					w.create(waits)
					time.Sleep(3 * time.Minute)
					w.mustChange(w.client.Delete(t.Context(), w.loadTest("run")))
				}
				gone := time.Now()
				f := w.faultEnds("setting", 2*lifecycle.LoadGrace)
				if took := time.Since(gone); took < lifecycle.LoadGrace-10*time.Second ||
					took > lifecycle.LoadGrace+10*time.Second {
					t.Errorf("it ended %s after its load was there, %s", took, where(f.Status.Conditions))
				}
				if redis.hz("") != "10" || f.Status.RevertedAt == nil ||
					reason(f.Status.Conditions) != v1alpha1.ReasonLoadTestNotFound {
					t.Errorf("%s; hz %s", where(f.Status.Conditions), redis.hz(""))
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
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.WarmUp, test.Spec.Load.Duration = length(10*time.Second), length(time.Minute)
		}))
		w.testHasReason("run", time.Minute, v1alpha1.ReasonWarmingUp)
		w.create(settingFor("early", "hz", "50"))
		w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		time.Sleep(2 * time.Second)
		w.create(settingFor("late", "maxmemory", "100000000"))
		w.testEnds("run", 2*time.Minute)
		heldIs(t, w.faultEnds("early", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
		heldIs(t, w.faultEnds("late", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLate,
			v1alpha1.VerdictInconclusive)
	})
}

// A setting that is late for its load breaks nothing.
func TestSettingOfALoadThatIsOver(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(newLoadTest("run", redis.address(), nil))
		w.testEnds("run", time.Minute)
		w.create(settingFor("setting", "hz", "50"))
		f := w.faultEnds("setting", 20*time.Second)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonLoadTestEnded || f.Status.StartTime != nil {
			t.Errorf("%s, %+v", where(f.Status.Conditions), f.Status)
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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				o := startOperator(w.place, spy{})
				w.create(settingFor("setting", "hz", "50"))
				w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
				held := longRun(redis.address())
				held.Spec.Suspend = true
				w.create(held)
				w.testHasReason("run", 20*time.Second, v1alpha1.ReasonSuspended)
				w.mustChange(w.client.Delete(t.Context(), held))
				time.Sleep(20 * time.Second)
				w.create(longRun(redis.address()))
				w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
				if f := w.fault("setting"); reason(f.Status.Conditions) != v1alpha1.ReasonActive || redis.hz("") != "50" {
					t.Fatalf("while the load runs: %s, hz %s", where(f.Status.Conditions), redis.hz(""))
				}
				if restart {
					o.stop()
				}
				w.mustChange(w.client.Delete(t.Context(), w.loadTest("run")))
				if restart {
					w.create(longRun(redis.address())) // another one of the same name, before anybody has seen that the first is gone
					startOperator(w.place, spy{})
				}
				f := w.faultEnds("setting", 20*time.Second)
				if reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || redis.hz("") != "10" {
					t.Errorf("%s; hz %s", where(f.Status.Conditions), redis.hz(""))
				}
				heldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
			})
		})
	}
}

// Faults on the load act beside its setting, and are measured as without it. A kill loses the setting, which its
// verdict says; the kill itself passes.
func TestFaultBesideASetting(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.setPolicy("version: v1alpha1\nmaxFaults: 1\n")
		w.create(settingFor("setting", "hz", "50"))
		w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
		w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Duration, test.Spec.Load.UntilFaultsSettle = length(30*time.Second), length(10*time.Minute)
		}))
		// of another load, longer in the queue than the faults of this one
		stranger := hzFor("stranger", "70", 20*time.Second)
		stranger.Spec.LoadTestRef, stranger.Spec.Target = nil, settingFor("", "", "").Spec.Target
		w.create(stranger)
		w.faultHasReason("stranger", time.Minute, v1alpha1.ReasonWaitingForFault)
		same := hzFor("same", "60", 20*time.Second)
		w.create(same)
		other := hzFor("other", "60", 10*time.Second)
		other.Spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{"maxmemory": "100000000"}
		w.create(other)
		kill := newFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
			f.Spec.Trigger = v1alpha1.FaultTrigger{SteadyFor: length(10 * time.Second)}
		})
		w.create(kill)
		f := w.faultEnds("same", time.Minute)
		if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c == nil ||
			c.Reason != v1alpha1.ReasonInvalidSpec ||
			!strings.Contains(c.Message, "RedisFault setting, a setting of RedisLoadTest run, changes hz of pod redis-0") {
			t.Errorf("same: %s", where(f.Status.Conditions))
		}
		for _, name := range []string{"other", "kill"} {
			f := w.faultEnds(name, 5*time.Minute)
			if reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || f.Status.Verdict != v1alpha1.VerdictPass ||
				f.Status.Impact == nil {
				t.Errorf("%s: %s, verdict %s, %+v", name, where(f.Status.Conditions), f.Status.Verdict, f.Status.Impact)
			}
		}
		if f := w.fault("setting"); reason(f.Status.Conditions) != v1alpha1.ReasonActive {
			t.Errorf("beside the faults: %s", where(f.Status.Conditions))
		}
		test := w.testEnds("run", 5*time.Minute)
		if len(test.Status.Faults) != 2 {
			t.Errorf("the load has the faults %+v", test.Status.Faults)
		}
		heldIs(t, w.faultEnds("setting", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
			v1alpha1.VerdictInconclusive)
		if f := w.faultHasReason("stranger", 3*time.Minute,
			v1alpha1.ReasonActive); f.Status.InjectedAt.Time.Before(w.fault("setting").Status.RevertedAt.Time) {
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
			inWorld(t, func(w *world) {
				redis := w.startRedis("")
				w.kubelet.Start()
				startOperator(w.place, spy{})
				w.create(settingFor("first", "hz", "50"))
				time.Sleep(time.Second)
				w.create(settingFor("second", "maxmemory", "100000000"))
				w.faultHasReason("second", time.Minute, v1alpha1.ReasonActive)
				w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
					test.Spec.Load.Duration = length(
						time.Minute)
				}))
				a, b := w.fault("first"), w.fault("second")
				if b.Status.InjectedAt.Time.Before(a.Status.Targets[0].ActiveAt.Time) {
					t.Errorf("%s was injected before %s was complete", b.Name, a.Name)
				}
				if abort {
					time.Sleep(20 * time.Second)
					w.mustChange(change(w.place, w.fault(a.Name), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
					f := w.faultHasReason(a.Name, 20*time.Second, v1alpha1.ReasonReverting)
					w.until("it names the other", 10*time.Second, func() bool {
						f = w.fault(a.Name)
						return strings.Contains(where(f.Status.Conditions), "RedisFault "+b.Name+", which was injected later")
					}, func() string { return where(f.Status.Conditions) })
				}
				a, b = w.faultEnds(a.Name, 3*time.Minute), w.faultEnds(b.Name, 3*time.Minute)
				if a.Status.RevertingSince.Time.Before(b.Status.RevertedAt.Time) {
					t.Errorf("%s was reverted from %s on, %s at %s", a.Name, a.Status.RevertingSince, b.Name, b.Status.RevertedAt)
				}
				if got := redis.hz("") + " " + redis.setting("maxmemory", ""); got != "10 0" {
					t.Errorf("in the end: %s", got)
				}
				heldIs(t, b, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
				if abort {
					heldIs(t, a, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
				} else {
					heldIs(t, a, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
				}
			})
		})
	}
}

// A setting is rehearsed without its load.
func TestSettingIsRehearsed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		startOperator(w.place, spy{})
		f := settingFor("setting", "hz", "50")
		f.Spec.DryRun = true
		w.create(f)
		f = w.faultEnds("setting", 20*time.Second)
		if reason(f.Status.Conditions) != v1alpha1.ReasonDryRun || redis.hz("") != "10" || len(f.Status.Warnings) != 0 {
			t.Errorf("%s, hz %s, warnings %v", where(f.Status.Conditions), redis.hz(""), f.Status.Warnings)
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
				inWorld(t, func(w *world) {
					redis := w.startRedis("")
					w.kubelet.Start()
					var writes atomic.Int32
					keepRunning(w.place, func(self func() *operator) spy { return crashAt(n, after, &writes, self) })
					w.create(settingFor("setting", "hz", "50"))
					w.faultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
					w.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
						test.Spec.Load.Duration = length(
							10 * time.Second)
					}))
					test := w.testEnds("run", time.Minute)
					f := w.faultEnds("setting", time.Minute)
					if redis.hz("") != "10" || f.Status.RevertingSince.Time.Before(test.Status.CompletionTime.Time) {
						t.Errorf("%s; hz %s, reverted from %s on, the load ended at %s", where(f.Status.Conditions), redis.hz(""),
							f.Status.RevertingSince, test.Status.CompletionTime)
					}
					heldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
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
	inWorld(t, func(w *world) {
		redis := w.startRedis("")
		w.kubelet.Start()
		startOperator(w.place, spy{})
		w.create(settingFor("setting", "hz", "50"))
		f := w.faultHasReason("setting", 20*time.Second, v1alpha1.ReasonActive)
		w.create(longRun(redis.address()))
		w.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		w.mustChange(w.client.Delete(context.Background(), f))
		hzIs(t, redis, "10", 5*time.Second)
		w.until("it is removed", 10*time.Second,
			func() bool { return !w.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "setting"}}) },
			func() string { return "" })
	})
}
