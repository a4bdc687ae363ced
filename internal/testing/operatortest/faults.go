package operatortest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/policy"
)

// HzFault changes a setting for ten minutes, so that a missing revert is visible.
func HzFault(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	return NewFault("break", "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Config = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"},
		}
		f.Spec.Duration, f.Spec.Trigger.After = Length(10*time.Minute), Length(0)
		if change != nil {
			change(f)
		}
	})
}

// TimelineOf are the events of a fault's timeline, in its order.
func TimelineOf(f *v1alpha1.RedisFault) []string {
	var names []string
	for _, e := range f.Status.Timeline {
		names = append(names, e.Event)
	}
	return names
}

// CheckExactImpact compares the measured impact with the time during which no server answered: 200
// requests/s and a probe of 100/s measure it to within the time between two of them.
func CheckExactImpact(t *testing.T, f *v1alpha1.RedisFault, down time.Duration) {
	t.Helper()
	st := &f.Status
	if st.Effect != v1alpha1.EffectConfirmed || st.InjectedAt == nil || st.Impact == nil {
		t.Fatalf("effect %s (%s), injected %v, impact %+v", st.Effect, st.EffectEvidence, st.InjectedAt,
			st.Impact)
	}
	i := st.Impact
	if i.Outage == nil || i.Outages == nil || i.Outages.Probe == nil || i.RecoveryTime == nil {
		t.Fatalf("impact %+v", i)
	}
	t.Logf("down for %s: outage %+v, probe's %+v, recovery %+v, dip %s, %d errors; %v", down,
		*i.Outage, *i.Outages.Probe,
		*i.RecoveryTime, i.Dip.Value, i.Errors, TimelineOf(f))
	for name, figure := range map[string]*v1alpha1.BoundedDuration{
		"outage":         &i.Outage.BoundedDuration,
		"probe's outage": i.Outages.Probe,
	} {
		d := figure.Value.Duration - down
		if d < 0 || d > 20*time.Millisecond {
			t.Errorf("%s is %+v, the server was down for %s", name, figure, down)
		}
	}
	// Throughput is what it was in the first interval after the outage.
	d := i.RecoveryTime.Value.Duration - down
	if !i.Recovered || d < 0 || d > 100*time.Millisecond {
		t.Errorf("recovered %v after %+v, the server was down for %s", i.Recovered, i.RecoveryTime, down)
	}
	if !slices.IsSortedFunc(st.Timeline, func(a, b v1alpha1.TimelineEvent) int {
		return a.At.Compare(b.At.Time)
	}) {
		t.Errorf("the timeline is not in order: %v", TimelineOf(f))
	}
}

// PlainFault is NewFault without allowances, as people write it.
func PlainFault(
	name, test string, kind v1alpha1.FaultType, change func(*v1alpha1.RedisFault),
) *v1alpha1.RedisFault {
	f := NewFault(name, test, kind, change)
	f.Spec.Allow = nil
	return f
}

// HzFor changes a setting of Redis for some time.
func HzFor(name string, value v1alpha1.ParameterValue, lasts time.Duration) *v1alpha1.RedisFault {
	return PlainFault(name, "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Action.Config = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{"hz": value},
		}
		f.Spec.Duration, f.Spec.Trigger.After, f.Spec.RecoveryDeadline = Length(lasts),
			Length(15*time.Second),
			*Length(2 * time.Minute)
	})
}

// LongRun is a load for some minutes.
func LongRun(address string) *v1alpha1.RedisLoadTest {
	return Lasting(10 * time.Minute)(address)
}

// HzIs waits until the setting has a value, and returns when.
func HzIs(t *testing.T, redis *RedisSet, want string, within time.Duration) time.Time {
	t.Helper()
	for began := time.Now(); redis.Hz("") != want; time.Sleep(time.Millisecond) {
		if time.Since(began) > within {
			t.Fatalf("after %s hz is %s, want %s", within, redis.Hz(""), want)
		}
	}
	return time.Now()
}

// SetPolicy creates or changes the policy of the place's operators.
func (p *Place) SetPolicy(text string) {
	p.T.Helper()
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Home(), Name: policy.ConfigMap},
	}
	err := p.Client.Get(context.Background(), client.ObjectKeyFromObject(stored), stored)
	stored.Data = map[string]string{policy.Key: text}
	if err != nil {
		p.Create(stored)
		return
	}
	p.MustChange(p.Client.Update(context.Background(), stored))
}

// MostAtOnce is how many of the faults were there at once, from their injection to their revert.
func MostAtOnce(t *testing.T, faults []*v1alpha1.RedisFault) int {
	t.Helper()
	most := 0
	for _, f := range faults {
		if f.Status.InjectedAt == nil || f.Status.RevertedAt == nil {
			t.Fatalf("%s: %s", f.Name, Where(f.Status.Conditions))
		}
		n := 0
		for _, other := range faults {
			if !other.Status.InjectedAt.After(f.Status.InjectedAt.Time) &&
				other.Status.RevertedAt.After(f.Status.InjectedAt.Time) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// SettingFor is a setting of the load run: one parameter of the server, whose Redis is named by
// itself.
func SettingFor(name, parameter string, value v1alpha1.ParameterValue) *v1alpha1.RedisFault {
	return NewFault(name, "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Setting, f.Spec.Trigger = true, v1alpha1.FaultTrigger{}
		f.Spec.Target = &v1alpha1.RedisTarget{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
		}
		f.Spec.Action.Config = &v1alpha1.Config{
			Parameters: map[string]v1alpha1.ParameterValue{parameter: value},
		}
	})
}

// HeldIs checks how a setting ended.
func HeldIs(
	t *testing.T, f *v1alpha1.RedisFault, status metav1.ConditionStatus, why string,
	judged v1alpha1.Verdict,
) {
	t.Helper()
	held := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionHeld)
	if held == nil || held.Status != status || held.Reason != why || f.Status.Verdict != judged {
		t.Errorf("%s: %s; held %+v, verdict %s; want %s, %s, %s", f.Name, Where(f.Status.Conditions),
			held, f.Status.Verdict,
			status, why, judged)
	}
	met := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionObjectivesMet)
	if met == nil || held != nil && status != metav1.ConditionTrue &&
		!strings.Contains(met.Message, verdict.Phrase(held.Reason, held.Message)) {
		t.Errorf("%s: the verdict says %+v, the doubt is %+v", f.Name, met, held)
	}
	s := &f.Status
	if s.Impact != nil || s.Objectives != nil || s.RevertedAt == nil ||
		s.Holding != nil ||
		s.Display == nil || *s.Display != (v1alpha1.FaultDisplay{Target: s.Display.Target}) {
		t.Errorf("%s: status %+v, display %+v", f.Name, s, s.Display)
	}
}
