package conditions

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

func TestImpactMessage(t *testing.T) {
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{RecoveryDeadline: metav1.Duration{Duration: time.Minute}}}
	s := &scope.Fault{Fault: f}
	contains := func(want string) {
		t.Helper()
		if got := impactMessage(s); !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
	contains("no figures yet")
	f.Status.Impact, f.Status.Display = &v1alpha1.Impact{LostWrites: new(int64(3))},
		&v1alpha1.FaultDisplay{Dip: "50%", Outage: "1s"}
	contains(
		"throughput fell by 50%, no success for 1s, 0 errors, 0 requests lost, 3 acknowledged writes lost, not recovered yet")
	f.Status.SettledTime = new(metav1.NowMicro())
	contains("not recovered within 1m")
	f.Status.Impact.Recovered, f.Status.Display.Recovery = true, "2s"
	contains("recovered after 2s")
	f.Status.Display.WhileActive = "throughput -12.5%, p99 +340%"
	contains("3 acknowledged writes lost, while active throughput -12.5%, p99 +340%, recovered after 2s")
}

// A fault that is over before anything was done has the reason of that where it belongs, and no message about a
// recovery that nobody waited for.
func TestConditionsOfAFaultThatWasNotInjected(t *testing.T) {
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{}}
	set := func(o state.Outcome) map[string]metav1.Condition {
		Set(s, lifecycle.Decision[lifecycle.FaultAction]{
			Action:  lifecycle.FaultFail,
			Reason:  v1alpha1.ReasonLoadTestFailed,
			Message: "the load test has failed",
		}, o)
		all := map[string]metav1.Condition{}
		for _, c := range s.Fault.Status.Conditions {
			all[c.Type] = c
		}
		return all
	}
	all := set(state.Outcome{Ended: true, Failed: true})
	for kind, reason := range map[string]string{
		v1alpha1.ConditionComplete:  v1alpha1.ReasonLoadTestFailed,
		v1alpha1.ConditionFailed:    v1alpha1.ReasonLoadTestFailed,
		v1alpha1.ConditionSuspended: v1alpha1.ReasonNotSuspended,
		v1alpha1.ConditionInjected:  v1alpha1.ReasonNotInjected,
		v1alpha1.ConditionReverted:  v1alpha1.ReasonNotInjected,
		v1alpha1.ConditionRecovered: v1alpha1.ReasonNotInjected,
	} {
		if c := all[kind]; c.Reason != reason || strings.Contains(c.Message, "90%") {
			t.Errorf("%s: %s %s %q, want %s", kind, c.Status, c.Reason, c.Message, reason)
		}
	}
	s.Seen.Recorded = true // what was tried may have had an effect
	if c := set(state.Outcome{
		Ended:  true,
		Failed: true,
	})[v1alpha1.ConditionReverted]; c.Reason == v1alpha1.ReasonNotInjected {
		t.Errorf("%+v", c)
	}
}

// TestConditionsOfStepsTaken: what a fault has done is told by the condition of that step alone, however it went on.
func TestConditionsOfStepsTaken(t *testing.T) {
	now := metav1.NowMicro()
	tried := &scope.Fault{Fault: &v1alpha1.RedisFault{}}
	tried.Traits.Lasts, tried.Seen.Recorded = time.Minute, true
	tried.Fault.Status.Targets = []v1alpha1.FaultTarget{{RevertedAt: &now}}
	Set(tried, lifecycle.Decision[lifecycle.FaultAction]{Reason: v1alpha1.ReasonInjectionFailed},
		state.Outcome{Ended: true, Failed: true})
	if c := meta.FindStatusCondition(tried.Fault.Status.Conditions,
		v1alpha1.ConditionReverted); c.Reason != "Reverted" || strings.Contains(c.Message, "lasts") {
		t.Errorf("an injection that failed: %+v", c)
	}
	for _, lasts := range []time.Duration{0, time.Minute} {
		s := &scope.Fault{Fault: &v1alpha1.RedisFault{}}
		s.Traits.Lasts, s.Seen.Recorded, s.Seen.InjectedAny = lasts, true, true
		s.Fault.Status = v1alpha1.RedisFaultStatus{
			InjectedAt: &now,
			RevertedAt: &now,
			Targets:    []v1alpha1.FaultTarget{{InjectedAt: &now, RevertedAt: &now}},
		}
		Set(s, lifecycle.Decision[lifecycle.FaultAction]{Reason: v1alpha1.ReasonAborted}, state.Outcome{Ended: true})
		want := map[string]string{
			v1alpha1.ConditionInjected:  "Injected",
			v1alpha1.ConditionReverted:  "Reverted",
			v1alpha1.ConditionRecovered: v1alpha1.ReasonAborted,
		}
		if lasts == 0 {
			want[v1alpha1.ConditionReverted] = v1alpha1.ReasonNothingToRevert
		}
		for kind, reason := range want {
			if c := meta.FindStatusCondition(s.Fault.Status.Conditions, kind); c == nil || c.Reason != reason {
				t.Errorf("lasts %s: %s is %+v, want the reason %s", lasts, kind, c, reason)
			}
		}
	}
}
