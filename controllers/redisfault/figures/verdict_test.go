package figures

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/result"
)

func TestVerdictOfAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		change  func(*scope.Fault)
		verdict v1alpha1.Verdict
		message string
	}{
		"recovered": {v1alpha1.ReasonSucceeded, func(*scope.Fault) {}, v1alpha1.VerdictPass, "no objective was set"},
		"not recovered": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) { s.Fault.Status.Impact.Recovered = false },
			v1alpha1.VerdictFail,
			"spec.recoveryDeadline: the throughput did not recover within 40s",
		},
		"not recovered, and the load had ended": {v1alpha1.ReasonSucceeded, func(s *scope.Fault) {
			s.Fault.Status.Impact.Recovered, s.Fault.Status.Impact.Doubts = false, []v1alpha1.Doubt{
				{Reason: "LoadEnded", Message: "the load ended too early"},
			}
		}, v1alpha1.VerdictInconclusive, "the load ended too early"},
		"not confirmed": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) { s.Fault.Status.Effect = v1alpha1.EffectNotObserved },
			v1alpha1.VerdictInconclusive,
			"not confirmed",
		},
		"aborted": {v1alpha1.ReasonAborted, func(*scope.Fault) {}, v1alpha1.VerdictInconclusive, "it was aborted"},
		"never injected": {
			v1alpha1.ReasonAborted,
			func(s *scope.Fault) { s.Fault.Status = v1alpha1.RedisFaultStatus{} },
			v1alpha1.VerdictInconclusive,
			"was not injected",
		},
		"no record": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) { s.Fault.Status.Impact = nil },
			v1alpha1.VerdictInconclusive,
			"could not be read",
		},
		"losses that no objective is about": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) {
				s.Losses, s.Fault.Spec.Objectives = &result.Losses{
					Count: result.Count{AtLeast: 5, AtMost: 9},
				}, &v1alpha1.FaultObjectives{}
			},
			v1alpha1.VerdictPass,
			"no objective was set, and nothing is in doubt; 5 to 9 acknowledged writes were lost, which no objective of it " +
				"judged: see objectives.maxLostWrites",
		},
		"losses of a primary that was cut off": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) {
				s.Fault.Spec.Action.Type, s.Fault.Spec.Objectives = v1alpha1.FaultNetworkPartition, &v1alpha1.FaultObjectives{}
				s.Test = verifying()
				s.Losses = &result.Losses{Count: result.Count{AtLeast: 5, AtMost: 5}}
			},
			v1alpha1.VerdictFail, "maxLostWrites is 5, limit 0",
		},
		"the same, as permitted": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) {
				s.Fault.Spec.Action.Type = v1alpha1.FaultNetworkPartition
				s.Fault.Spec.Objectives = &v1alpha1.FaultObjectives{MaxLostWrites: new(int64(5))}
				s.Test = verifying()
				s.Losses = &result.Losses{Count: result.Count{AtLeast: 5, AtMost: 5}}
			},
			v1alpha1.VerdictPass, "1 of 1 objectives are met",
		},
		"the same, of a load without a ledger": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) {
				s.Fault.Spec.Action.Type = v1alpha1.FaultNetworkPartition
				s.Test = &v1alpha1.RedisLoadTest{}
			},
			v1alpha1.VerdictPass, "no objective was set, and nothing is in doubt",
		},
		"no losses": {
			v1alpha1.ReasonSucceeded,
			func(s *scope.Fault) {
				s.Losses, s.Fault.Spec.Objectives = &result.Losses{}, &v1alpha1.FaultObjectives{}
			},
			v1alpha1.VerdictPass,
			"nothing is in doubt",
		},
		"an objective missed": {v1alpha1.ReasonSucceeded, func(s *scope.Fault) {
			s.Losses = &result.Losses{
				Count: result.Count{AtLeast: 5, AtMost: 5},
			}
		}, v1alpha1.VerdictFail, "maxLostWrites is 5, limit 4"},
	} {
		f := &v1alpha1.RedisFault{}
		f.Spec.RecoveryDeadline.Duration = 40 * time.Second
		f.Status = v1alpha1.RedisFaultStatus{
			InjectedAt: new(metav1.NowMicro()),
			Effect:     v1alpha1.EffectConfirmed,
			Impact:     &v1alpha1.Impact{Recovered: true},
		}
		s := &scope.Fault{Fault: f}
		tc.change(s)
		if s.Losses != nil && f.Spec.Objectives == nil {
			f.Spec.Objectives = &v1alpha1.FaultObjectives{MaxLostWrites: new(int64(4))}
		}
		judge(s, tc.reason)
		c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionObjectivesMet)
		if f.Status.Verdict != tc.verdict || c == nil || !strings.Contains(c.Message, tc.message) {
			t.Errorf("%s: %s, %+v; want %s, %q", name, f.Status.Verdict, c, tc.verdict, tc.message)
		}
	}
}

// verifying is a load test with a ledger.
func verifying() *v1alpha1.RedisLoadTest {
	test := &v1alpha1.RedisLoadTest{}
	test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true}
	return test
}
