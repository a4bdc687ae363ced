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
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/bottleneck"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
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
		"largest":   {BaselineRate: 1e8 / 3, MinRate: 1e8 / 7, Dip: 1 - 1e-11, TimeToImpact: week - 1, Outage: week - 1, TotalOutage: week - 1, ServerOutage: week - 1, ErrorWindow: week - 1, Recovered: true, RecoveryTime: week - 1, RecoveredThroughput: 1e8 / 3, LostRequests: 1e14, Errors: 1 << 60, ErrorsByClass: every, Before: most, During: most, After: most, Doubts: doubts},
		"no number": {BaselineRate: math.NaN(), MinRate: math.Inf(1), Dip: math.NaN(), Recovered: true, RecoveredThroughput: math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			status := impactOf(&result.Fault{Impact: m})
			schema := statusSchema(t, "redquake.dev_redisfaults.yaml").Properties["impact"]
			fits(t, "impact", &schema, content(t, status))
			reasons := map[string]bool{}
			for _, d := range status.Doubts {
				if reasons[d.Reason] {
					t.Errorf("doubt %s stands twice", d.Reason)
				}
				reasons[d.Reason] = true
			}
			if !m.Recovered && (status.RecoveryTime != nil || status.RecoveredThroughput != "") {
				t.Errorf("not recovered, but %+v", status)
			}
		})
	}
	loads := statusSchema(t, "redquake.dev_redisloadtests.yaml")
	for _, r := range []*result.Load{largest(week), {}} {
		for name, value := range map[string]any{"summary": summaryOf(r), "redis": redisOf(&result.Redis{MaxCPU: 1e12, MaxMainThreadCPU: 1e12, MaxMemory: math.MaxInt64})} {
			schema := loads.Properties[name]
			fits(t, name, &schema, content(t, value))
		}
	}
	if redisOf(nil) != nil {
		t.Error("facts of a server that was never asked")
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
	r := &RedisLoadTestReconciler{Clock: clock, Runs: runs.NewRegistry()}
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	setStanding(&test.Status.Conditions, 1, standing{reason: v1alpha1.ReasonRunning})
	s := &loadTestScope{test: test, before: test.DeepCopy(), run: runs.NewRegistry().Add("a", t0, nil)}
	look := func(what string, at time.Duration, want bool) {
		t.Helper()
		clock.SetTime(after(at))
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
	setStanding(&test.Status.Conditions, 1, standing{complete: true, reason: v1alpha1.ReasonSucceeded})
	look("the end", 2*time.Second+time.Millisecond, true)
}

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
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.LoadGenerator), Evidence: "load pod 0 used 95% of its limit"}}
		}, "LoadGeneratorSaturated"},
		{"another bottleneck", v1alpha1.ReasonSucceeded, func(s *loadTestScope) {
			s.result = &result.Load{Bottleneck: &result.Bottleneck{Component: string(bottleneck.Network)}}
		}, ""},
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
	s.test.Status.Summary = &v1alpha1.LoadSummary{Requests: 10, Errors: 1}
	s.test.Status.Display = &v1alpha1.LoadTestDisplay{TPS: "5", P99: "3ms"}
	s.test.Status.Verdict = v1alpha1.VerdictPass
	setCondition(&s.test.Status.Conditions, 1, v1alpha1.ConditionObjectivesMet, metav1.ConditionTrue, "Succeeded", "all 2 objectives are met")
	if got := s.plain("ended by spec.abort"); got != "ended by spec.abort; 10 requests at 5/s, 1 errors, p99 3ms; Pass: all 2 objectives are met" {
		t.Errorf("%q", got)
	}
}

func TestSentenceOfAFault(t *testing.T) {
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{RecoveryDeadline: metav1.Duration{Duration: time.Minute}}}
	s := &faultScope{fault: f}
	says := func(want string) {
		t.Helper()
		if got := s.sentence(); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	says("no figures yet")
	f.Status.Impact, f.Status.Display = &v1alpha1.Impact{LostWrites: new(int64(3))}, &v1alpha1.FaultDisplay{Dip: "50%", Outage: "1s"}
	says("throughput fell by 50%, no success for 1s, 0 errors, 0 requests lost, 3 acknowledged writes lost, not recovered yet")
	f.Status.SettledTime = new(metav1.NowMicro())
	says("not recovered within 1m")
	f.Status.Impact.Recovered, f.Status.Display.Recovery = true, "2s"
	says("recovered after 2s")
}
