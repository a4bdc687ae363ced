package controllers

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/runs"
)

// statusSchema is the status of a CRD, as the API server holds objects to it.
func statusSchema(t *testing.T, file string) *apiextensions.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile("../config/crd/bases/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	return &schema
}

// fits holds a value to the schema's lengths, bounds and enumerations.
func fits(t *testing.T, path string, schema *apiextensions.JSONSchemaProps, value any) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			p, ok := schema.Properties[key]
			if !ok {
				t.Errorf("%s.%s is not in the CRD", path, key)
				continue
			}
			fits(t, path+"."+key, &p, inner)
		}
		for _, key := range schema.Required {
			if _, ok := v[key]; !ok {
				t.Errorf("%s.%s is required", path, key)
			}
		}
	case []any:
		if schema.MaxItems != nil && int64(len(v)) > *schema.MaxItems {
			t.Errorf("%s has %d items, at most %d fit", path, len(v), *schema.MaxItems)
		}
		for _, inner := range v {
			fits(t, path+"[]", schema.Items.Schema, inner)
		}
	case string:
		if n := int64(len([]rune(v))); schema.MaxLength != nil && n > *schema.MaxLength {
			t.Errorf("%s: %q has %d characters, at most %d fit", path, v, n, *schema.MaxLength)
		}
		if len(schema.Enum) > 0 && !inEnum(schema.Enum, v) {
			t.Errorf("%s: %q is none of the values", path, v)
		}
	case int64:
		if schema.Minimum != nil && float64(v) < *schema.Minimum {
			t.Errorf("%s: %d is below %v", path, v, *schema.Minimum)
		}
	}
}

func inEnum(values []apiextensions.JSON, text string) bool {
	for _, v := range values {
		if string(v.Raw) == `"`+text+`"` {
			return true
		}
	}
	return false
}

func content(t *testing.T, object any) map[string]any {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Figures of every size fit what the CRD takes: none, ordinary, the largest that a week of load can give, and no numbers at all.
func TestFiguresFitTheCRD(t *testing.T) {
	week := 168 * time.Hour
	most := impact.Latency{P50: week, P90: week, P99: week, P999: week, Max: week, Mean: week, Count: 1}
	var every [record.NumClasses]uint64
	for i := range every {
		every[i] = 1 << 60
	}
	doubts := []impact.Doubt{{Reason: impact.NoLoad, Message: strings.Repeat("x", 2000)}, {Reason: impact.NoLoad, Message: "twice"}, {Reason: impact.RecordIncomplete}}
	for name, m := range map[string]impact.Impact{
		"none":      {TimeToImpact: -1, ServerOutage: -1, OutageEnd: -1, RecoveryTime: -1},
		"largest":   {BaselineRate: 1e8 / 3, MinRate: 1e8 / 7, Dip: 1 - 1e-11, TimeToImpact: week - 1, Outage: week - 1, TotalOutage: week - 1, ServerOutage: week - 1, ErrorWindow: week - 1, Recovered: true, RecoveryTime: week - 1, Degraded: 1e8 / 3, LostRequests: 1e14, Errors: 1 << 60, ErrorsByClass: every, Before: most, During: most, After: most, Doubts: doubts},
		"no number": {BaselineRate: math.NaN(), MinRate: math.Inf(1), Dip: math.NaN(), Recovered: true, Degraded: math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			status := impactStatus(&m)
			schema := statusSchema(t, "redquake.dev_redisfaults.yaml").Properties["impact"]
			fits(t, "impact", &schema, content(t, status))
			reasons := map[string]bool{}
			for _, d := range status.Doubts {
				if reasons[d.Reason] {
					t.Errorf("doubt %s stands twice", d.Reason)
				}
				reasons[d.Reason] = true
			}
			if !m.Recovered && (status.RecoveryTime != "" || status.RecoveredThroughput != "") {
				t.Errorf("not recovered, but %+v", status)
			}
		})
	}
	figures := impact.Figures{Requests: 1 << 60, OK: 1 << 59, Fail: 1 << 58, Unknown: 1 << 58, Dropped: 1 << 58, ByClass: every, ErrorRate: 1 - 1e-11, Throughput: 1e8 / 3, Latency: most}
	sum := impact.Summary{Figures: figures, MaxLag: week}
	for range 32 {
		sum.Operations = append(sum.Operations, impact.Operation{Name: strings.Repeat("n", 63), Figures: figures})
	}
	schema := statusSchema(t, "redquake.dev_redisloadtests.yaml").Properties["summary"]
	for _, s := range []*impact.Summary{&sum, {}} {
		fits(t, "summary", &schema, content(t, summaryStatus(s)))
	}
	redis := statusSchema(t, "redquake.dev_redisloadtests.yaml").Properties["redis"]
	fits(t, "redis", &redis, content(t, redisFacts(impact.ServerFacts{Readings: 1, MaxCPU: 1e12, MaxMainThread: 1e12, MaxUsedMemory: math.MaxInt64})))
	if redisFacts(impact.ServerFacts{}) != nil {
		t.Error("facts of a server that was never asked")
	}
}

// Moving figures are written every two seconds for each object, and a change of standing at once.
func TestDue(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(t0)
	sessions := runs.NewRegistry()
	r := &RedisLoadTestReconciler{Clock: clock, Runs: runs.NewRegistry()}
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	setStanding(&test.Status.Conditions, 1, standing{reason: v1alpha1.ReasonRunning})
	s := &loadTestScope{test: test, before: test.DeepCopy(), run: newRun()}
	look := func(what string, at time.Duration, want bool) {
		t.Helper()
		clock.SetTime(after(at))
		if got := r.due(s); got != want {
			t.Errorf("%s: due %v, want %v", what, got, want)
		}
	}
	look("nothing has changed", 0, false)
	test.Status.Progress = "1%"
	look("the first figures", 0, true)
	look("figures just after", time.Second, false)
	look("figures a moment too early", statusEvery-time.Millisecond, false)
	look("figures in their turn", statusEvery, true)
	setStanding(&test.Status.Conditions, 1, standing{complete: true, reason: v1alpha1.ReasonSucceeded})
	look("the end", statusEvery+time.Millisecond, true)
	if !sessions.due(s.run, "another", clock.Now()) || sessions.due(s.run, "another", clock.Now()) || !sessions.due(nil, "another", clock.Now()) {
		t.Error("each object has turns of its own; without a run there is nothing to wait for")
	}
}

func newRun() *run { return &run{statusAt: map[types.UID]time.Time{}} }

func TestDoubtsOfARun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reason string
		change func(*loadTestScope)
		want   string
	}{
		{"a good run", v1alpha1.ReasonSucceeded, func(*loadTestScope) {}, ""},
		{"aborted", v1alpha1.ReasonAborted, func(*loadTestScope) {}, v1alpha1.ReasonAborted},
		{"a lost pod", v1alpha1.ReasonSucceeded, func(s *loadTestScope) {
			s.lost, s.seen.PodsLost = map[int]string{1: "OOMKilled"}, []string{"index 1: OOMKilled"}
		}, v1alpha1.ReasonPodsLost},
		{"starts at the limit", v1alpha1.ReasonSucceeded, func(s *loadTestScope) { s.session.Skew = maxSkew }, ""},
		{"starts apart", v1alpha1.ReasonSucceeded, func(s *loadTestScope) { s.session.Skew = maxSkew + 1 }, "StartSkew"},
		{"a clock that was set", v1alpha1.ReasonSucceeded, func(s *loadTestScope) { s.session.ClockShift = -maxSkew - 1 }, "ClockShift"},
		{"a saturated generator", v1alpha1.ReasonSucceeded, func(s *loadTestScope) {
			s.bottleneck = bottleneck.Finding{Component: bottleneck.LoadGenerator, Evidence: "load pod 0 used 95% of its limit"}
		}, "LoadGeneratorSaturated"},
		{"another bottleneck", v1alpha1.ReasonSucceeded, func(s *loadTestScope) { s.bottleneck.Component = bottleneck.Network }, ""},
		{"a hole in the record", v1alpha1.ReasonSucceeded, func(s *loadTestScope) { s.holes = []string{"7 intervals of load-1 are gone"} }, "IntervalsMissing"},
	} {
		s := &loadTestScope{seen: lifecycle.LoadTest{PodsWanted: 2}}
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
	s := &loadTestScope{test: &v1alpha1.RedisLoadTest{}}
	if got := s.plain("why"); got != "why" {
		t.Errorf("without figures: %q", got)
	}
	s.test.Status.Summary = &v1alpha1.LoadSummary{Requests: 10, Throughput: "5", Errors: 1, Latency: &v1alpha1.LatencySummary{P99: "3ms"}}
	s.test.Status.Verdict = v1alpha1.VerdictPass
	setCondition(&s.test.Status.Conditions, 1, v1alpha1.ConditionObjectivesMet, metav1.ConditionTrue, "Succeeded", "all 2 objectives are met")
	if got := s.plain("ended by spec.abort"); got != "ended by spec.abort; 10 requests at 5/s, 1 errors, p99 3ms; Pass: all 2 objectives are met" {
		t.Errorf("%q", got)
	}
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{RecoveryDeadline: metav1.Duration{Duration: time.Minute}}}
	if got := plain(f); got != "no figures yet" {
		t.Errorf("%q", got)
	}
	f.Status.Impact = &v1alpha1.Impact{TPSDip: "50%", Outage: "1s"}
	if got := plain(f); !strings.Contains(got, "not recovered yet") {
		t.Errorf("%q", got)
	}
	f.Status.CompletionTime = new(metav1.NowMicro())
	if got := plain(f); !strings.Contains(got, "not recovered within 1m") {
		t.Errorf("%q", got)
	}
	f.Status.Impact.Recovered, f.Status.Impact.RecoveryTime = true, "2s"
	if got := plain(f); !strings.Contains(got, "recovered after 2s") {
		t.Errorf("%q", got)
	}
}
