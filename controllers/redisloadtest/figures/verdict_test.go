package figures

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/truth"
)

func TestDoubtsOfARun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason string
		change func(*scope.Test)
		want   string
	}{
		{"a good run", v1alpha1.ReasonSucceeded, func(*scope.Test) {}, ""},
		{"aborted", v1alpha1.ReasonAborted, func(*scope.Test) {}, v1alpha1.ReasonAborted},
		{"a lost pod", v1alpha1.ReasonSucceeded, func(s *scope.Test) {
			s.Lost, s.Seen.PodsLost = map[int]string{1: "OOMKilled"}, []string{"index 1: OOMKilled"}
		}, v1alpha1.ReasonPodsLost},
		{"starts at the limit", v1alpha1.ReasonSucceeded, func(s *scope.Test) { s.Session.Skew = state.MaxSkew }, ""},
		{"starts apart", v1alpha1.ReasonSucceeded, func(s *scope.Test) { s.Session.Skew = state.MaxSkew + 1 }, "StartSkew"},
		{"a hole in the record", v1alpha1.ReasonSucceeded, func(s *scope.Test) {
			s.Holes = []merged.Hole{
				{Pod: 1, From: time.Second, To: 2 * time.Second},
			}
		}, "IntervalsMissing"},
	} {
		s := &scope.Test{Seen: lifecycle.LoadTest{LoadPods: lifecycle.LoadPods{PodsWanted: 2}}}
		tc.change(s)
		var reasons []string
		for _, d := range doubts(s, tc.reason) {
			reasons = append(reasons, d.Reason)
			if d.Message == "" {
				t.Errorf("%s: no message", tc.name)
			}
		}
		if got := strings.Join(reasons, " "); got != tc.want {
			t.Errorf("%s: doubts %q, want %q", tc.name, got, tc.want)
		}
	}
}

// An objective that hangs on the time in which a load pod did not run is not missed.
func TestTruthVerdictOfAStalledLoadPod(t *testing.T) {
	p99 := func(d time.Duration) *result.Quantiles { return &result.Quantiles{P99: result.Seconds(d)} }
	for limit, want := range map[time.Duration]v1alpha1.Verdict{
		time.Second:            v1alpha1.VerdictPass,
		100 * time.Millisecond: v1alpha1.VerdictInconclusive,
		time.Millisecond:       v1alpha1.VerdictFail,
	} {
		s := &scope.Test{
			Test: &v1alpha1.RedisLoadTest{
				Spec: v1alpha1.RedisLoadTestSpec{
					Objectives: &v1alpha1.Objectives{MaxLatencyP99: &metav1.Duration{Duration: limit}},
				},
			},
		}
		s.Result = &result.Load{
			Total: result.Operation{Requests: 100, OK: 100, Latency: p99(377 * time.Millisecond), Stalled: &result.Stalled{
				Length:  result.Seconds(800 * time.Millisecond),
				Count:   2,
				Longest: result.Seconds(400 * time.Millisecond),
				Latency: p99(4600 * time.Microsecond),
			}},
		}
		Judge(s, v1alpha1.ReasonSucceeded)
		status := &s.Test.Status
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectivesMet)
		truth.Report(t, "T11", "RedisLoadTest, the p99 is 377 ms, 4.6 ms without stalls, limit "+limit.String(), string(want),
			string(status.Verdict), status.Verdict == want)
		stalled := condition.Message == "the load generator did not always run"
		if o := status.Objectives[0]; o.AtLeast != "0.0046" || o.AtMost != "0.377" || (o.Met == nil) != stalled ||
			stalled != (want == v1alpha1.VerdictInconclusive) ||
			stalled && !strings.HasPrefix(status.Doubts[0].Message, "load pod 0 did not run for 800ms ") {
			t.Errorf("limit %v: %+v, %s", limit, o, condition.Message)
		}
	}
}
