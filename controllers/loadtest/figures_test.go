package loadtest

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/crdtest"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

// Figures of every size fit the CRD: none, and the largest that a week of load can give.
func TestFiguresFitTheCRD(t *testing.T) {
	loads := crdtest.StatusSchema(t, "redquake.dev_redisloadtests.yaml")
	for _, r := range []*result.Load{largest(168 * time.Hour), {}} {
		for name, value := range map[string]any{"summary": summaryOf(r), "redis": redisOf(&result.Redis{MaxCPU: 1e12, MaxMainThreadCPU: 1e12, MaxMemory: math.MaxInt64})} {
			schema := loads.Properties[name]
			crdtest.Fits(t, name, &schema, value)
		}
	}
	if redisOf(nil) != nil {
		t.Error("facts of a server that was never queried")
	}
}

// largest is the figures of the largest load that there can be.
func largest(week time.Duration) *result.Load {
	long := result.Seconds(week)
	o := result.Operation{
		Name: strings.Repeat("n", 63), Requests: 1 << 60, OK: 1 << 59, Failed: 1 << 58, Unknown: 1 << 58, Dropped: 1 << 58, ErrorRate: 1 - 1e-11, Throughput: 1e8 / 3,
		Latency: &result.Quantiles{P50: long, P90: long, P99: long, P999: long, Max: long},
	}
	r := &result.Load{Total: o, MaxLag: long, Workload: []result.Figure{{Name: "a", Share: new(1.0 / 3)}, {Name: "b", Seconds: &long}, {Name: "c", Count: new(uint64(1 << 60))}}}
	for class := range record.NumClasses {
		r.Errors = append(r.Errors, result.ErrorCount{Class: record.Class(class).String(), Count: math.MaxUint64})
	}
	for i := range 32 {
		r.Operations = append(r.Operations, o)
		r.Shards = append(r.Shards, result.Shard{Shard: i, Errors: 1 << 60, Throughput: 1e8 / 3, LongestGap: long})
	}
	return r
}

// Moving figures are written every two seconds for each object, and a change of standing at once.
func TestDue(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(t0)
	r := &Reconciler{Clock: clock, Runs: runs.NewRegistry()}
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	state.SetSummary(&test.Status.Conditions, 1, state.Summary{Reason: v1alpha1.ReasonRunning})
	s := &scope{test: test, before: test.DeepCopy(), run: runs.NewRegistry().Add("a", t0, nil)}
	look := func(what string, at time.Duration, want bool) {
		t.Helper()
		clock.SetTime(t0.Add(at))
		if got := r.due(s); got != want {
			t.Errorf("%s: due %v, want %v", what, got, want)
		}
	}
	look("nothing has changed", 0, false)
	test.Status.Progress = 1
	look("the first figures", 0, true)
	look("figures just after", time.Second, false)
	look("figures a moment too early", 2*time.Second-time.Millisecond, false)
	look("figures in their turn", 2*time.Second, true)
	state.SetSummary(&test.Status.Conditions, 1, state.Summary{Complete: true, Reason: v1alpha1.ReasonSucceeded})
	look("the end", 2*time.Second+time.Millisecond, true)
}

func TestDoubtsOfARun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason string
		change func(*scope)
		want   string
	}{
		{"a good run", v1alpha1.ReasonSucceeded, func(*scope) {}, ""},
		{"aborted", v1alpha1.ReasonAborted, func(*scope) {}, v1alpha1.ReasonAborted},
		{"a lost pod", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.lost, s.seen.PodsLost = map[int]string{1: "OOMKilled"}, []string{"index 1: OOMKilled"}
		}, v1alpha1.ReasonPodsLost},
		{"starts at the limit", v1alpha1.ReasonSucceeded, func(s *scope) { s.session.Skew = state.MaxSkew }, ""},
		{"starts apart", v1alpha1.ReasonSucceeded, func(s *scope) { s.session.Skew = state.MaxSkew + 1 }, "StartSkew"},
		{"a clock that was set", v1alpha1.ReasonSucceeded, func(s *scope) { s.session.ClockShift = -state.MaxSkew - 1 }, "ClockShift"},
		{"a saturated generator", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.LoadGenerator), Evidence: "load pod 0 used 95% of its limit"}}
		}, "LoadGeneratorSaturated"},
		{"another bottleneck", v1alpha1.ReasonSucceeded, func(s *scope) {
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.Network)}}
		}, ""},
		{"a hole in the record", v1alpha1.ReasonSucceeded, func(s *scope) { s.holes = []string{"7 intervals of load-1 are gone"} }, "IntervalsMissing"},
	} {
		s := &scope{seen: lifecycle.LoadTest{PodsWanted: 2}}
		tc.change(s)
		var reasons []string
		for _, d := range s.doubts(tc.reason) {
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

func TestPlainSentences(t *testing.T) {
	s := &scope{test: &v1alpha1.RedisLoadTest{}}
	if got := s.plain("why"); got != "why" {
		t.Errorf("without figures: %q", got)
	}
	s.test.Status.Summary = &v1alpha1.LoadSummary{Requests: 10, Errors: 1}
	s.test.Status.Display = &v1alpha1.LoadTestDisplay{TPS: "5", P99: "3ms"}
	s.test.Status.Verdict = v1alpha1.VerdictPass
	state.SetCondition(&s.test.Status.Conditions, 1, v1alpha1.ConditionObjectivesMet, metav1.ConditionTrue, "Succeeded", "all 2 objectives are met")
	if got := s.plain("ended by spec.abort"); got != "ended by spec.abort; 10 requests at 5/s, 1 errors, p99 3ms; Pass: all 2 objectives are met" {
		t.Errorf("%q", got)
	}
}
