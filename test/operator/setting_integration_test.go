//go:build integration

package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/serverstate"
	"github.com/redquake/redquake/internal/testing/stage"
)

// A load on a real server runs with two settings that were there before it, while the operator restarts. They are no
// faults of the load, and are reverted in the reverse order.
func TestSettingsOfALoadOnRedis(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{Faults: []*v1alpha1.RedisFault{operatortest.SettingFor("first", "hz", "50")}}.OnAPIServer(t)
	redis := p.Redis
	p.FaultHasReason("first", time.Minute, v1alpha1.ReasonActive)
	p.Create(operatortest.SettingFor("second", "maxmemory", "104857600"))
	p.FaultHasReason("second", time.Minute, v1alpha1.ReasonActive)
	p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.WithTolerance(test)
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(100)),
			Duration:          operatortest.Length(10 * time.Second),
			UntilFaultsSettle: operatortest.Length(10 * time.Minute),
		}
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	p.Operator.Stop()
	operatortest.StartOperator(p, operatortest.Spy{})
	if got := redis.Setting("hz", "") + " " + redis.Setting("maxmemory", ""); got != "50 104857600" {
		t.Errorf("during the load: %s", got)
	}
	test := p.TestEnds("run", 2*time.Minute)
	if operatortest.Reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || len(test.Status.Faults) != 0 ||
		test.Status.Summary == nil || test.Status.Summary.Errors != 0 {
		t.Errorf("load: %s, faults %+v, %+v", operatortest.Where(test.Status.Conditions), test.Status.Faults,
			test.Status.Summary)
	}
	first, second := p.FaultEnds("first", time.Minute), p.FaultEnds("second", time.Minute)
	for _, f := range []*v1alpha1.RedisFault{first, second} {
		operatortest.HeldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
		if f.Status.RevertingSince.Time.Before(test.Status.CompletionTime.Time) {
			t.Errorf("%s was reverted from %s on, the load ended at %s", f.Name, f.Status.RevertingSince,
				test.Status.CompletionTime)
		}
	}
	if first.Status.RevertingSince.Time.Before(second.Status.RevertedAt.Time) {
		t.Errorf("the first was reverted from %s on, the second at %s", first.Status.RevertingSince, second.Status.RevertedAt)
	}
	if got := redis.Setting("hz", "") + " " + redis.Setting("maxmemory", ""); got != "10 0" {
		t.Errorf("in the end: %s", got)
	}
}

// A kill on the same load acts beside its setting, which is lost with the process.
func TestSettingIsLostWithTheServer(t *testing.T) {
	t.Parallel()
	for _, kind := range []v1alpha1.FaultType{v1alpha1.FaultPodKill, v1alpha1.FaultProcessCrash} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := operatortest.Scenario{
				Faults: []*v1alpha1.RedisFault{operatortest.SettingFor("setting", "hz", "50")},
			}.OnAPIServer(t)
			p.FaultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
			p.Create(operatortest.NewLoadTest("run", p.Redis.Address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load = v1alpha1.LoadShape{
					Rate:              new(int32(100)),
					Duration:          operatortest.Length(8 * time.Second),
					UntilFaultsSettle: operatortest.Length(10 * time.Minute),
				}
			}))
			p.Create(operatortest.NewFault("kill", "run", kind, nil))
			kill := p.FaultEnds("kill", 2*time.Minute)
			if kill.Status.Effect != v1alpha1.EffectConfirmed || kill.Status.Impact == nil {
				t.Errorf("kill: %s, effect %s", operatortest.Where(kill.Status.Conditions), kill.Status.Effect)
			}
			if test := p.TestEnds("run", 2*time.Minute); len(test.Status.Faults) != 1 || test.Status.Faults[0].Name != "kill" {
				t.Errorf("load: %s, faults %+v", operatortest.Where(test.Status.Conditions), test.Status.Faults)
			}
			operatortest.HeldIs(t, p.FaultEnds("setting", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
				v1alpha1.VerdictInconclusive)
			if p.Redis.Hz("") != "10" {
				t.Errorf("hz is %s in the end", p.Redis.Hz(""))
			}
		})
	}
}

// A failover on the same load acts beside a setting of all servers, which survives it; no server keeps anything of it.
func TestSettingSurvivesAFailover(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	f := stage.StartFleet(p, 3, nil)
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	setting := operatortest.SettingFor("setting", "hz", "50")
	setting.Spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	p.Create(setting)
	p.FaultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = stage.RedisPods(f.Address(0))
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(50)),
			Duration:          operatortest.Length(8 * time.Second),
			UntilFaultsSettle: operatortest.Length(10 * time.Minute),
		}
	}))
	p.Create(operatortest.NewFault("failover", "run", v1alpha1.FaultFailover, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverReplication}
	}))
	if failover := p.FaultEnds("failover", 3*time.Minute); failover.Status.Effect != v1alpha1.EffectConfirmed {
		t.Errorf("failover: %s, effect %s (%s)", operatortest.Where(failover.Status.Conditions), failover.Status.Effect,
			failover.Status.EffectEvidence)
	}
	for i := range 3 {
		if hz := serverstate.Of(f.Address(i))["setting hz"]; hz != "50" {
			t.Errorf("server %d: hz is %s after the failover", i, hz)
		}
	}
	p.TestEnds("run", 3*time.Minute)
	operatortest.HeldIs(t, p.FaultEnds("setting", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld,
		v1alpha1.VerdictPass)
	for i := range 3 {
		if hz := serverstate.Of(f.Address(i))["setting hz"]; hz != "10" {
			t.Errorf("server %d: hz is %s in the end", i, hz)
		}
	}
}

// Whatever ends a setting, nothing of it is left: its load test is deleted, never comes, or the setting is stopped by
// its namespace.
func TestSettingEndsOnRedis(t *testing.T) {
	t.Parallel()
	p := operatortest.Scenario{}.OnAPIServer(t)
	redis := p.Redis
	never := operatortest.SettingFor("never", "hz", "50")
	never.Spec.Duration = operatortest.Length(2 * time.Second)
	p.Create(never)
	f := p.FaultEnds("never", time.Minute)
	operatortest.HeldIs(t, f, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
	if redis.Hz("") != "10" || operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
		t.Errorf("%s; hz is %s", operatortest.Where(f.Status.Conditions), redis.Hz(""))
	}

	p.Create(operatortest.SettingFor("deleted", "hz", "60"))
	p.FaultHasReason("deleted", time.Minute, v1alpha1.ReasonActive)
	p.CreateLoad(operatortest.LongRun)
	test := p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	p.Until("the setting has seen the start", time.Minute,
		func() bool { return p.Fault("deleted").Status.LoadStartTime.Equal(test.Status.StartTime) },
		func() string { return operatortest.Where(p.Fault("deleted").Status.Conditions) })
	p.MustChange(p.Client.Delete(t.Context(), test))
	operatortest.HeldIs(t, p.FaultEnds("deleted", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld,
		v1alpha1.VerdictPass)
	if redis.Hz("") != "10" {
		t.Errorf("hz is %s after the load test was deleted", redis.Hz(""))
	}
}
