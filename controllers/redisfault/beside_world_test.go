package redisfault_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// besideFault sets a parameter of the server, beside others.
func besideFault(name, parameter, value string, lasts time.Duration, beside ...string) *v1alpha1.RedisFault {
	f := operatortest.HzFor(name, "", lasts)
	if len(beside) > 0 {
		f.Spec.Trigger.After = nil
	}
	f.Spec.Action.Config.Parameters = map[string]v1alpha1.ParameterValue{parameter: v1alpha1.ParameterValue(value)}
	f.Spec.Beside = beside
	return f
}

// failedFor is why a fault has failed; "" = it has not.
func failedFor(f *v1alpha1.RedisFault) string {
	if c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
		return c.Reason
	}
	return ""
}

// Two faults act on the same server at once, as one names the other: nested and crossed. Each says so, the second one's
// baseline begins when the first one acts, and both are reverted.
func TestFaultsBesideEachOther(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]time.Duration{"nested": 10 * time.Second, "crossed": 60 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				// whichever object comes first
				w.Create(besideFault("second", "timeout", "90", lasts, "first"))
				f := w.FaultHasReason("second", time.Minute, v1alpha1.ReasonWaitingForFault)
				if !strings.Contains(operatortest.Where(f.Status.Conditions), "spec.beside: there is no RedisFault first") {
					t.Errorf("second: %s", operatortest.Where(f.Status.Conditions))
				}
				w.Create(besideFault("first", "hz", "50", 40*time.Second))
				second := w.FaultHasReason("second", 2*time.Minute, v1alpha1.ReasonActive)
				first := w.Fault("first")
				if operatortest.Reason(first.Status.Conditions) != v1alpha1.ReasonActive ||
					w.Redis.Hz("") != "50" || w.Redis.Setting("timeout", "") != "90" {
					t.Errorf("first: %s; hz %s", operatortest.Where(first.Status.Conditions), w.Redis.Hz(""))
				}
				acts := first.Status.Targets[0].ActiveAt
				if !second.Status.BesideSince.Equal(acts) || second.Status.InjectedAt.Sub(acts.Time) < v1alpha1.DefaultSteadyFor {
					t.Errorf("second: injected at %s, beside since %s; first: acts since %s", second.Status.InjectedAt,
						second.Status.BesideSince, acts)
				}
				first, second = w.FaultEnds("first", 5*time.Minute), w.FaultEnds("second", 5*time.Minute)
				for _, f := range []*v1alpha1.RedisFault{first, second} {
					other := map[string]string{"first": "RedisFault second", "second": "RedisFault first"}[f.Name]
					if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonSucceeded ||
						f.Status.Verdict != v1alpha1.VerdictPass ||
						!slices.ContainsFunc(f.Status.Timeline, func(e v1alpha1.TimelineEvent) bool {
							return e.Event == "InjectedBeside" && e.Object == other
						}) {
						t.Errorf("%s: %s, verdict %s: %+v", f.Name, operatortest.Where(f.Status.Conditions), f.Status.Verdict,
							f.Status.Timeline)
					}
				}
				if crossed := second.Status.RevertedAt.After(first.Status.RevertedAt.Time); crossed != (name == "crossed") {
					t.Errorf("reverted: first %s, second %s", first.Status.RevertedAt, second.Status.RevertedAt)
				}
				if w.Redis.Hz("") != "10" || w.Redis.Setting("timeout", "") != "0" {
					t.Errorf("left: hz %s, timeout %s", w.Redis.Hz(""), w.Redis.Setting("timeout", ""))
				}
			})
		})
	}
}

// What both would change is refused, as are faults that name each other, one that is over, and one that never comes:
// each says why, and nothing is broken.
func TestNothingToActBeside(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other        *v1alpha1.RedisFault // nil = there is none
		reason, says string
	}{
		"the same is changed": {
			besideFault("first", "timeout", "70", 5*time.Minute), v1alpha1.ReasonInvalidSpec,
			"spec.beside: RedisFault first changes timeout, too, and both act on pod redis-0",
		},
		"they name each other": {
			besideFault("first", "hz", "50", time.Minute, "second"), v1alpha1.ReasonNotBeside,
			"RedisFault first is to act beside this one, too",
		},
		"it is over before": {
			besideFault("first", "hz", "50", 5*time.Second), v1alpha1.ReasonNotBeside, "RedisFault first is over",
		},
		"it never comes": {nil, v1alpha1.ReasonNotBeside, "there is no RedisFault first; waited 30s for that to pass"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
				if tc.other != nil {
					w.Create(tc.other)
				}
				f := besideFault("second", "timeout", "90", 10*time.Second, "first")
				f.Spec.Trigger.Timeout = *operatortest.Length(30 * time.Second)
				w.Create(f)
				f = w.FaultEnds("second", 3*time.Minute)
				if failedFor(f) != tc.reason ||
					!strings.Contains(operatortest.Where(f.Status.Conditions), tc.says) || f.Status.InjectedAt != nil {
					t.Errorf("%s", operatortest.Where(f.Status.Conditions))
				}
			})
		})
	}
}

// A fault follows those that it names after a time of its own, although nothing is steady beside them.
func TestTimeAfterThoseBeside(t *testing.T) {
	t.Parallel()
	operatortest.Scenario{Load: operatortest.LongRun}.Run(t, func(w *operatortest.World) {
		w.Create(besideFault("first", "hz", "50", time.Minute))
		f := besideFault("second", "timeout", "90", 10*time.Second, "first")
		f.Spec.Trigger.AfterBeside = operatortest.Length(3 * time.Second)
		w.Create(f)
		second := w.FaultHasReason("second", 2*time.Minute, v1alpha1.ReasonActive)
		if after := second.Status.InjectedAt.Sub(w.Fault("first").Status.Targets[0].ActiveAt.Time); after < 3*time.Second ||
			after > 4*time.Second {
			t.Errorf("injected %s after the first one acts, want 3s", after)
		}
	})
}
