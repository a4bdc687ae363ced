package redisfault_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/sim"
)

// slowHz is a load and a fault that sets hz to 50 for 20 s after the first 15.
func slowHz() operatortest.Scenario {
	return operatortest.Scenario{
		Load:     operatortest.LongRun,
		Measured: true,
		Faults:   []*v1alpha1.RedisFault{operatortest.HzFor("slow", "50", 20*time.Second)},
	}
}

// onTime is by how much a fault may outlast its duration.
const onTime = 2 * time.Second

// outages are what an operator can lose while a fault is active, each with its end.
var outages = map[string]func(w *operatortest.World, o *operatortest.Operator) (end func()){
	"the API server stops": func(_ *operatortest.World, o *operatortest.Operator) func() { return o.Cut() },
	"leadership is lost": func(_ *operatortest.World, o *operatortest.Operator) func() {
		o.LoseLeadership()
		return o.Lead
	},
	"another operator leads": func(w *operatortest.World, o *operatortest.Operator) func() {
		o.LoseLeadership()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		return func() {}
	},
}

// A fault ends on time whatever the operator loses after the injection, before it was stored. What was done is in the
// status afterwards.
func TestFaultEndsOnTime(t *testing.T) {
	t.Parallel()
	for name, lose := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slowHz().Run(t, func(w *operatortest.World) {
				redis, o := w.Redis, w.Operator
				injected := operatortest.HzIs(t, redis, "50", time.Minute)
				end := lose(w, o)
				reverted := operatortest.HzIs(t, redis, "10", time.Minute)
				if late := reverted.Sub(injected) - 20*time.Second; late < -100*time.Millisecond || late > onTime {
					t.Errorf("the setting stayed for %s, want 20s", reverted.Sub(injected))
				}
				time.Sleep(30 * time.Second)
				end()
				f := w.FaultEnds("slow", 2*time.Minute)
				if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded || f.Status.InjectedAt == nil ||
					f.Status.RevertedAt == nil {
					t.Fatalf("%s: %+v", operatortest.Where(f.Status.Conditions), f.Status)
				}
				if d := f.Status.InjectedAt.Sub(injected); d < -100*time.Millisecond || d > 100*time.Millisecond {
					t.Errorf("injectedAt is %s after the injection", d)
				}
				if d := f.Status.RevertedAt.Sub(reverted); name != "another operator leads" &&
					(d < -100*time.Millisecond || d > 100*time.Millisecond) {
					t.Errorf("revertedAt is %s after the revert", d)
				}
				if events := strings.Join(operatortest.TimelineOf(f), " "); !strings.Contains(events, "Injected") ||
					!strings.Contains(events, "Reverted") {
					t.Errorf("timeline: %s", events)
				}
			})
		})
	}
}

// A server obeys, its response is lost, and then the operator loses something: what may have been injected is reverted
// when no attempt would be made any more.
func TestPerhapsInjectedFaultEndsOnTime(t *testing.T) {
	t.Parallel()
	for name, lose := range outages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.InWorld(t, func(w *operatortest.World) {
				redis := w.StartRedis("")
				redis.Server.(*sim.Server).LoseResponses()
				w.Kubelet.Start()
				o := operatortest.StartOperator(w.Place, operatortest.Spy{})
				w.Create(operatortest.LongRun(redis.Address()))
				w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
				w.Create(operatortest.HzFor("slow", "50", 20*time.Second))
				injected := operatortest.HzIs(t, redis, "50", time.Minute)
				end := lose(w, o)
				reverted := operatortest.HzIs(t, redis, "10", 2*time.Minute)
				if stayed := reverted.Sub(injected); stayed > lifecycle.InjectPatience+onTime || stayed < 20*time.Second {
					t.Errorf("the setting stayed for %s, want 20s to %s", stayed, lifecycle.InjectPatience)
				}
				end()
				if f := w.FaultEnds("slow", 2*time.Minute); f.Status.RevertedAt == nil {
					t.Errorf("%s: %+v", operatortest.Where(f.Status.Conditions), f.Status)
				}
			})
		})
	}
}

// The status cannot be written: the fault ends on time nevertheless.
func TestFaultEndsOnTimeWithoutStatus(t *testing.T) {
	t.Parallel()
	operatortest.InWorld(t, func(w *operatortest.World) {
		redis := w.StartRedis("")
		w.Kubelet.Start()
		operatortest.StartOperator(w.Place, operatortest.Spy{Before: func(write operatortest.Write) error {
			if _, fault := write.Object.(*v1alpha1.RedisFault); fault && write.Verb == "patch-status" && redis.Hz("") == "50" {
				return fmt.Errorf("etcdserver: no space")
			}
			return nil
		}})
		w.Create(operatortest.LongRun(redis.Address()))
		w.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
		w.Create(operatortest.HzFor("slow", "50", 20*time.Second))
		injected := operatortest.HzIs(t, redis, "50", time.Minute)
		reverted := operatortest.HzIs(t, redis, "10", 2*time.Minute)
		if late := reverted.Sub(injected) - 20*time.Second; late > onTime {
			t.Errorf("the setting stayed for %s, want 20s", reverted.Sub(injected))
		}
		if f := w.FaultEnds("slow", time.Minute); f.Status.InjectedAt == nil ||
			f.Status.InjectedAt.Sub(injected).Abs() > 100*time.Millisecond {
			t.Errorf("injected at %s, in the status %v", injected, f.Status.InjectedAt)
		}
	})
}

// No operator is there at the end: the next one reverts first, and the status tells how much too long the fault stayed.
func TestOverstayedFault(t *testing.T) {
	t.Parallel()
	slowHz().Run(t, func(w *operatortest.World) {
		redis, o := w.Redis, w.Operator
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		o.Stop()
		time.Sleep(50 * time.Second)
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		operatortest.HzIs(t, redis, "10", onTime)
		f := w.FaultEnds("slow", 2*time.Minute)
		if d := f.Status.Overstayed; d == nil || d.Duration < 29*time.Second || d.Duration > 33*time.Second {
			t.Errorf("overstayed %v, want about 30s", d)
		}
		if !hasDoubt(f, "Overstayed") || f.Status.Verdict != v1alpha1.VerdictInconclusive {
			t.Errorf("verdict %s, doubts %+v", f.Status.Verdict, f.Status.Impact.Doubts)
		}
		if warnings := strings.Join(warningsOf(w.Place, "slow"), "; "); !strings.Contains(warnings, "Overstayed") {
			t.Errorf("warnings: %s", warnings)
		}
	})
}

// Redis cannot be reached for a minute and a half when a fault is to be reverted: the revert goes on, and says so.
func TestRevertGoesOn(t *testing.T) {
	t.Parallel()
	slowHz().Run(t, func(w *operatortest.World) {
		redis := w.Redis
		w.FaultHasReason("slow", time.Minute, v1alpha1.ReasonActive)
		redis.Silence()
		time.Sleep(110 * time.Second)
		f := w.FaultHasReason("slow", time.Second, v1alpha1.ReasonReverting)
		if warnings := strings.Join(warningsOf(w.Place, "slow"), "; "); !strings.Contains(warnings, "RevertDelayed") ||
			!strings.Contains(warnings, "CONFIG SET hz 10") {
			t.Errorf("%s; warnings: %s", operatortest.Where(f.Status.Conditions), warnings)
		}
		redis.Resume()
		operatortest.HzIs(t, redis, "10", 15*time.Second)
		f = w.FaultEnds("slow", 2*time.Minute)
		if operatortest.Reason(f.Status.Conditions) == v1alpha1.ReasonRevertFailed || f.Status.Targets[0].RevertAbandoned ||
			f.Status.Overstayed == nil {
			t.Errorf("%s, %+v", operatortest.Where(f.Status.Conditions), f.Status.Targets[0])
		}
	})
}

func hasDoubt(f *v1alpha1.RedisFault, reason string) bool {
	if f.Status.Impact == nil {
		return false
	}
	for _, d := range f.Status.Impact.Doubts {
		if d.Reason == reason {
			return true
		}
	}
	return false
}

// An operator that starts restores first. As long as it tries to, it does nothing for a load test either.
func TestStartRestoresBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	slowHz().Run(t, func(w *operatortest.World) {
		redis, o := w.Redis, w.Operator
		operatortest.HzIs(t, redis, "50", time.Minute)
		o.End()
		time.Sleep(time.Minute) // the fault is overdue
		redis.Silence()
		w.Create(operatortest.NewLoadTest("later", redis.Address(), nil))
		began := time.Now()
		operatortest.StartOperator(w.Place, operatortest.Spy{})
		later := func() *v1alpha1.RedisLoadTest { return w.LoadTest("later") }
		w.Until("the load test is looked at", time.Minute, func() bool { return len(later().Status.Conditions) > 0 },
			func() string { return "" })
		if took := time.Since(began); took < time.Second { // the first attempt waits for a server that is silent
			t.Errorf("the load test was looked at after %s, while the fault was not restored", took)
		}
		redis.Resume()
		operatortest.HzIs(t, redis, "10", time.Minute)
	})
}
