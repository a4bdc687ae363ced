//go:build integration

package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A load on a real server runs with two settings that were there before it, while the operator restarts. They are no
// faults of the load, and are reverted in the reverse order.
func TestSettingsOfALoadOnRedis(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	o := startOperator(p, spy{})
	p.create(settingFor("first", "hz", "50"))
	p.faultHasReason("first", time.Minute, v1alpha1.ReasonActive)
	p.create(settingFor("second", "maxmemory", "104857600"))
	p.faultHasReason("second", time.Minute, v1alpha1.ReasonActive)
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		withTolerance(test)
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(100)),
			Duration:          length(10 * time.Second),
			UntilFaultsSettle: length(10 * time.Minute),
		}
	}))
	p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	o.stop()
	startOperator(p, spy{})
	if got := redis.setting("hz", "") + " " + redis.setting("maxmemory", ""); got != "50 104857600" {
		t.Errorf("during the load: %s", got)
	}
	test := p.testEnds("run", 2*time.Minute)
	if reason(test.Status.Conditions) != v1alpha1.ReasonSucceeded || len(test.Status.Faults) != 0 ||
		test.Status.Summary == nil || test.Status.Summary.Errors != 0 {
		t.Errorf("load: %s, faults %+v, %+v", where(test.Status.Conditions), test.Status.Faults, test.Status.Summary)
	}
	first, second := p.faultEnds("first", time.Minute), p.faultEnds("second", time.Minute)
	for _, f := range []*v1alpha1.RedisFault{first, second} {
		heldIs(t, f, metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
		if f.Status.RevertingSince.Time.Before(test.Status.CompletionTime.Time) {
			t.Errorf("%s was reverted from %s on, the load ended at %s", f.Name, f.Status.RevertingSince,
				test.Status.CompletionTime)
		}
	}
	if first.Status.RevertingSince.Time.Before(second.Status.RevertedAt.Time) {
		t.Errorf("the first was reverted from %s on, the second at %s", first.Status.RevertingSince, second.Status.RevertedAt)
	}
	if got := redis.setting("hz", "") + " " + redis.setting("maxmemory", ""); got != "10 0" {
		t.Errorf("in the end: %s", got)
	}
}

// A kill on the same load acts beside its setting, which is lost with the process.
func TestSettingIsLostWithTheServer(t *testing.T) {
	t.Parallel()
	for _, kind := range []v1alpha1.FaultType{v1alpha1.FaultPodKill, v1alpha1.FaultProcessCrash} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			redis := startRedis(p)
			startKubelet(p, nil)
			startOperator(p, spy{})
			p.create(settingFor("setting", "hz", "50"))
			p.faultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
			p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load = v1alpha1.LoadShape{
					Rate:              new(int32(100)),
					Duration:          length(8 * time.Second),
					UntilFaultsSettle: length(10 * time.Minute),
				}
			}))
			p.create(newFault("kill", "run", kind, nil))
			kill := p.faultEnds("kill", 2*time.Minute)
			if kill.Status.Effect != v1alpha1.EffectConfirmed || kill.Status.Impact == nil {
				t.Errorf("kill: %s, effect %s", where(kill.Status.Conditions), kill.Status.Effect)
			}
			if test := p.testEnds("run", 2*time.Minute); len(test.Status.Faults) != 1 || test.Status.Faults[0].Name != "kill" {
				t.Errorf("load: %s, faults %+v", where(test.Status.Conditions), test.Status.Faults)
			}
			heldIs(t, p.faultEnds("setting", time.Minute), metav1.ConditionFalse, v1alpha1.ReasonSettingLost,
				v1alpha1.VerdictInconclusive)
			if redis.hz("") != "10" {
				t.Errorf("hz is %s in the end", redis.hz(""))
			}
		})
	}
}

// A failover on the same load acts beside a setting of all servers, which survives it; no server keeps anything of it.
func TestSettingSurvivesAFailover(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	f := startFleet(p, 3, nil)
	startKubelet(p, nil)
	startOperator(p, spy{})
	setting := settingFor("setting", "hz", "50")
	setting.Spec.Select = v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll}
	p.create(setting)
	p.faultHasReason("setting", time.Minute, v1alpha1.ReasonActive)
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = redisPods(f.address(0))
		test.Spec.Load = v1alpha1.LoadShape{
			Rate:              new(int32(50)),
			Duration:          length(8 * time.Second),
			UntilFaultsSettle: length(10 * time.Minute),
		}
	}))
	p.create(newFault("failover", "run", v1alpha1.FaultFailover, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Failover = &v1alpha1.Failover{Method: v1alpha1.FailoverReplication}
	}))
	if failover := p.faultEnds("failover", 3*time.Minute); failover.Status.Effect != v1alpha1.EffectConfirmed {
		t.Errorf("failover: %s, effect %s (%s)", where(failover.Status.Conditions), failover.Status.Effect,
			failover.Status.EffectEvidence)
	}
	for i := range 3 {
		if hz := serverShows(f.address(i))["setting hz"]; hz != "50" {
			t.Errorf("server %d: hz is %s after the failover", i, hz)
		}
	}
	p.testEnds("run", 3*time.Minute)
	heldIs(t, p.faultEnds("setting", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
	for i := range 3 {
		if hz := serverShows(f.address(i))["setting hz"]; hz != "10" {
			t.Errorf("server %d: hz is %s in the end", i, hz)
		}
	}
}

// Whatever ends a setting, nothing of it is left: its load test is deleted, never comes, or the setting is stopped by
// its namespace.
func TestSettingEndsOnRedis(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	startOperator(p, spy{})
	never := settingFor("never", "hz", "50")
	never.Spec.Duration = length(2 * time.Second)
	p.create(never)
	f := p.faultEnds("never", time.Minute)
	heldIs(t, f, metav1.ConditionFalse, v1alpha1.ReasonCutShort, v1alpha1.VerdictInconclusive)
	if redis.hz("") != "10" || reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded {
		t.Errorf("%s; hz is %s", where(f.Status.Conditions), redis.hz(""))
	}

	p.create(settingFor("deleted", "hz", "60"))
	p.faultHasReason("deleted", time.Minute, v1alpha1.ReasonActive)
	p.create(longRun(redis.address()))
	test := p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	p.until("the setting has seen the start", time.Minute,
		func() bool { return p.fault("deleted").Status.LoadStartTime.Equal(test.Status.StartTime) },
		func() string { return where(p.fault("deleted").Status.Conditions) })
	p.mustChange(p.client.Delete(t.Context(), test))
	heldIs(t, p.faultEnds("deleted", time.Minute), metav1.ConditionTrue, v1alpha1.ReasonHeld, v1alpha1.VerdictPass)
	if redis.hz("") != "10" {
		t.Errorf("hz is %s after the load test was deleted", redis.hz(""))
	}
}
