package verdict

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/truth"
)

// load is a run of 1000 requests at 100/s with 1 % errors and 3 lost writes.
func load(change func(*result.Load)) *result.Load {
	seconds := func(d time.Duration) result.Seconds { return result.Seconds(d) }
	r := &result.Load{
		Total: result.Operation{
			Requests: 1000, OK: 990, Failed: 10, ErrorRate: 0.01, Throughput: 100,
			Latency: &result.Quantiles{
				P50:  seconds(time.Millisecond),
				P99:  seconds(10 * time.Millisecond),
				P999: seconds(100 * time.Millisecond),
			},
		},
		Checked: result.Checked{Verification: &result.Verification{Lost: new(uint64(3))}},
	}
	if change != nil {
		change(r)
	}
	return r
}

func d(length time.Duration) *metav1.Duration { return &metav1.Duration{Duration: length} }

// judgedOne returns the result of the only objective.
func judgedOne(t *testing.T, j Judgement, want v1alpha1.Verdict) v1alpha1.ObjectiveResult {
	t.Helper()
	if j.Verdict != want || len(j.Objectives) != 1 {
		t.Fatalf("%s with %d objectives, want %s with one: %s", j.Verdict, len(j.Objectives), want, j.Message)
	}
	return j.Objectives[0]
}

// checkObjective checks that an objective is met at its limit, and missed just beyond it.
func checkObjective(t *testing.T, name string, unit v1alpha1.Unit, limit v1alpha1.Decimal, met, missed Judgement) {
	t.Helper()
	o := judgedOne(t, met, v1alpha1.VerdictPass)
	if o.Name != name || o.Unit != unit || o.Limit != limit || o.Actual != limit || o.Met == nil || !*o.Met ||
		o.Message != "" {
		t.Errorf("at the limit: %+v", o)
	}
	o = judgedOne(t, missed, v1alpha1.VerdictFail)
	if o.Met == nil || *o.Met || missed.Reason != v1alpha1.ReasonObjectivesNotMet ||
		!strings.Contains(missed.Message, name) || !strings.Contains(missed.Message, "limit") {
		t.Errorf("beyond the limit: %+v: %s", o, missed.Message)
	}
}

// checkUnjudged checks the result of an objective without measurements.
func checkUnjudged(t *testing.T, name string, j Judgement) {
	t.Helper()
	if o := judgedOne(t, j, v1alpha1.VerdictInconclusive); o.Met != nil || o.Actual != "" ||
		!strings.Contains(j.Message, name) {
		t.Errorf("without measurements: %+v: %s", o, j.Message)
	}
}

func TestEachObjectiveOfALoad(t *testing.T) {
	noSuccess := func(r *result.Load) { r.Total.Latency = nil }
	outsideNothing := func(r *result.Load) { r.OutsideFaults = &result.Operation{} }
	for _, tc := range []struct {
		name        string
		unit        v1alpha1.Unit
		limit       v1alpha1.Decimal
		met, missed v1alpha1.Objectives
		without     func(*result.Load)
	}{
		{
			"minThroughput",
			v1alpha1.UnitPerSecond,
			"100",
			v1alpha1.Objectives{MinThroughput: new("100")},
			v1alpha1.Objectives{MinThroughput: new("100.1")},
			outsideNothing,
		},
		{
			"maxLatencyP50",
			v1alpha1.UnitSeconds,
			"0.001",
			v1alpha1.Objectives{MaxLatencyP50: d(time.Millisecond)},
			v1alpha1.Objectives{MaxLatencyP50: d(time.Millisecond - 1)},
			noSuccess,
		},
		{
			"maxLatencyP99",
			v1alpha1.UnitSeconds,
			"0.01",
			v1alpha1.Objectives{MaxLatencyP99: d(10 * time.Millisecond)},
			v1alpha1.Objectives{MaxLatencyP99: d(9 * time.Millisecond)},
			noSuccess,
		},
		{
			"maxLatencyP999",
			v1alpha1.UnitSeconds,
			"0.1",
			v1alpha1.Objectives{MaxLatencyP999: d(100 * time.Millisecond)},
			v1alpha1.Objectives{MaxLatencyP999: d(99 * time.Millisecond)},
			noSuccess,
		},
		{
			"maxErrorRate",
			v1alpha1.UnitShare,
			"0.01",
			v1alpha1.Objectives{MaxErrorRate: new("1%")},
			v1alpha1.Objectives{MaxErrorRate: new("0.99%")},
			outsideNothing,
		},
		{
			"maxLostWrites",
			v1alpha1.UnitCount,
			"3",
			v1alpha1.Objectives{MaxLostWrites: new(int64(3))},
			v1alpha1.Objectives{MaxLostWrites: new(int64(2))},
			func(r *result.Load) { r.Verification.Lost = nil },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkObjective(t, tc.name, tc.unit, tc.limit, Load(&tc.met, load(nil)), Load(&tc.missed, load(nil)))
			checkUnjudged(t, tc.name, Load(&tc.met, load(tc.without)))
		})
	}
}

// A range of lost writes is within the limit, beyond it, or cannot be judged.
func TestTruthLostWritesBetweenBounds(t *testing.T) {
	bounded := load(func(r *result.Load) {
		r.Verification = &result.Verification{}
		r.Verification.SetLost(result.Count{AtLeast: 3, AtMost: 7})
	})
	fault := &result.Losses{Count: result.Count{AtLeast: 3, AtMost: 7}}
	for _, tc := range []struct {
		limit int64
		want  v1alpha1.Verdict
		text  string
	}{
		{7, v1alpha1.VerdictPass, "1 of 1 objectives are met"},
		{6, v1alpha1.VerdictInconclusive, "maxLostWrites is between 3 and 7, which is not exact enough for the limit 6"},
		{3, v1alpha1.VerdictInconclusive, "limit 3"},
		{2, v1alpha1.VerdictFail, "maxLostWrites is between 3 and 7, limit 2"},
	} {
		for name, j := range map[string]Judgement{
			"load":  Load(&v1alpha1.Objectives{MaxLostWrites: &tc.limit}, bounded),
			"fault": Conclude(InStatus(Losses(&v1alpha1.FaultObjectives{MaxLostWrites: &tc.limit}, fault)), nil, Missed{}, fault),
		} {
			truth.Report(t, "T1", fmt.Sprintf("a %s, 3 to 7 writes lost, limit %d", name, tc.limit), string(tc.want),
				string(j.Verdict)+": "+j.Message,
				j.Verdict == tc.want && strings.Contains(j.Message, tc.text))
		}
	}
}

// The objectives of a load apply outside of its faults, unless they apply to the whole run.
func TestLoadObjectivesExcludeFaults(t *testing.T) {
	hit := load(func(r *result.Load) { r.OutsideFaults = &result.Operation{Requests: 500, OK: 500, Throughput: 120} })
	objectives := &v1alpha1.Objectives{MaxErrorRate: new("0%"), MinThroughput: new("120")}
	if j := Load(objectives, hit); j.Verdict != v1alpha1.VerdictPass {
		t.Errorf("outside of faults: %s: %s", j.Verdict, j.Message)
	}
	objectives.Over = v1alpha1.OverEverything
	if j := Load(objectives, hit); j.Verdict != v1alpha1.VerdictFail || !strings.Contains(j.Message, "maxErrorRate") ||
		!strings.Contains(j.Message, "minThroughput") {
		t.Errorf("over everything: %s: %s", j.Verdict, j.Message)
	}
}

func TestVerdictOfALoad(t *testing.T) {
	met, missed := &v1alpha1.Objectives{MinThroughput: new("10")}, &v1alpha1.Objectives{MinThroughput: new("1000")}
	doubt := impact.Doubt{Reason: v1alpha1.ReasonPodsLost, Message: "1 of 2 load pods were lost"}
	doubted := func(r *result.Load) { r.Doubts = []impact.Doubt{doubt} }
	noRate := func(r *result.Load) {
		r.Search = &result.Search{Done: true, Message: "not even 1 requests/s meet the objectives"}
	}
	noSuccess := func(r *result.Load) { r.Total = result.Operation{Requests: 5, Failed: 5, ErrorRate: 1} }
	noLedger := func(r *result.Load) { r.Verification = nil }
	for _, tc := range []struct {
		name       string
		objectives *v1alpha1.Objectives
		result     *result.Load
		verdict    v1alpha1.Verdict
		reason     string
		wantText   []string
	}{
		{"no objectives", nil, load(nil), v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, []string{"no objective"}},
		{"all met", met, load(nil), v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, []string{"1 of 1 objectives are met"}},
		{
			"a doubt beats a missed limit",
			missed,
			load(doubted),
			v1alpha1.VerdictInconclusive,
			v1alpha1.ReasonInconclusive,
			[]string{"load pods were lost"},
		},
		{
			"a doubt without objectives",
			nil,
			load(doubted),
			v1alpha1.VerdictInconclusive,
			v1alpha1.ReasonInconclusive,
			[]string{"load pods were lost"},
		},
		{
			"missed beats unjudged",
			&v1alpha1.Objectives{MinThroughput: new("1000"), MaxLostWrites: new(int64(0))},
			load(noLedger),
			v1alpha1.VerdictFail,
			v1alpha1.ReasonObjectivesNotMet,
			[]string{"minThroughput"},
		},
		{
			"met and unjudged",
			&v1alpha1.Objectives{MinThroughput: new("10"), MaxLostWrites: new(int64(0))},
			load(noLedger),
			v1alpha1.VerdictInconclusive,
			v1alpha1.ReasonInconclusive,
			[]string{"maxLostWrites"},
		},
		{
			"no request at all",
			nil,
			&result.Load{},
			v1alpha1.VerdictInconclusive,
			v1alpha1.ReasonInconclusive,
			[]string{"no request"},
		},
		{
			"no success",
			nil,
			load(noSuccess),
			v1alpha1.VerdictFail,
			v1alpha1.ReasonObjectivesNotMet,
			[]string{"no request succeeded"},
		},
		{
			"every missed limit is named",
			&v1alpha1.Objectives{MinThroughput: new("1000"), MaxErrorRate: new("0%"), MaxLatencyP99: d(time.Hour)},
			load(nil),
			v1alpha1.VerdictFail,
			v1alpha1.ReasonObjectivesNotMet,
			[]string{"minThroughput", "maxErrorRate", "limit 0%"},
		},
		{
			"a search that no rate satisfied",
			&v1alpha1.Objectives{MaxLatencyP99: d(time.Hour)},
			load(noRate),
			v1alpha1.VerdictFail,
			v1alpha1.ReasonObjectivesNotMet,
			[]string{"not even 1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := Load(tc.objectives, tc.result)
			if j.Verdict != tc.verdict || j.Reason != tc.reason {
				t.Errorf("%s (%s), want %s (%s): %s", j.Verdict, j.Reason, tc.verdict, tc.reason, j.Message)
			}
			if r := tc.result; r.Verdict != string(j.Verdict) || r.Why != j.Message || len(r.Objectives) != len(j.Objectives) {
				t.Errorf("the result has %s (%s) with %d objectives", r.Verdict, r.Why, len(r.Objectives))
			}
			for _, text := range tc.wantText {
				if !strings.Contains(j.Message, text) {
					t.Errorf("got message %q, want one that contains %q", j.Message, text)
				}
			}
		})
	}
}

// The judgement must not change the caller's list of doubts.
func TestLoadLeavesItsArgumentsAlone(t *testing.T) {
	room := make([]impact.Doubt, 1, 4)
	room[0] = impact.Doubt{Reason: "Aborted", Message: "aborted"}
	Load(nil, &result.Load{Doubts: room})
	if behind := room[:2][1]; behind != (impact.Doubt{}) {
		t.Errorf("the caller's list of doubts was extended by %+v", behind)
	}
}

// An outage that nobody saw keeps a limit only if the load would have seen a longer one.
func TestOutageThatCannotBeSeen(t *testing.T) {
	r := result.NewFault(&impact.Impact{
		Outage:    impact.Outage{Bounded: durations.Bounded{AtMost: 80 * time.Millisecond}, Of: impact.Load},
		Recovered: true,
	}, result.FaultInput{})
	for limit, want := range map[time.Duration]v1alpha1.Verdict{
		50 * time.Millisecond: v1alpha1.VerdictInconclusive,
		80 * time.Millisecond: v1alpha1.VerdictPass,
	} {
		j := Conclude(Fault(&v1alpha1.FaultObjectives{MaxOutage: d(limit)}, r), nil, Missed{}, nil)
		if j.Verdict != want || want == v1alpha1.VerdictInconclusive &&
			!strings.Contains(j.Message, "raise the rate of the load") {
			t.Errorf("%s: %s: %s", limit, j.Verdict, j.Message)
		}
	}
}

// A Pass says of losses that no objective of it is about.
func TestPassBesideLosses(t *testing.T) {
	known := func(least, most uint64) *result.Verification {
		v := &result.Verification{}
		v.SetLost(result.Count{AtLeast: least, AtMost: most})
		return v
	}
	for name, tc := range map[string]struct {
		verification *result.Verification
		objectives   *v1alpha1.Objectives
		says         string // "" = nothing of losses
	}{
		"nothing was verified": {},
		"nothing was lost":     {verification: known(0, 0)},
		"lost": {
			verification: known(130, 130),
			says:         "; 130 acknowledged writes were lost, which no objective of it judged",
		},
		"some":    {verification: known(2, 9), says: "; 2 to 9 acknowledged writes were lost"},
		"perhaps": {verification: known(0, 9), says: "; up to 9 acknowledged writes may have been lost"},
		"an objective judges it": {
			verification: known(130, 130),
			objectives:   &v1alpha1.Objectives{MaxLostWrites: new(int64(200))},
		},
		"another objective is met": {
			verification: known(130, 130),
			objectives:   &v1alpha1.Objectives{MaxErrorRate: new("0.5")},
			says:         "1 of 1 objectives are met; 130 acknowledged writes were lost",
		},
	} {
		r := &result.Load{Total: result.Operation{Requests: 100, OK: 100}, Checked: result.Checked{Verification: tc.verification}}
		if j := Load(tc.objectives, r); j.Verdict != v1alpha1.VerdictPass ||
			strings.Contains(j.Message, "acknowledged") != (tc.says != "") || !strings.Contains(j.Message, tc.says) ||
			r.Why != j.Message {
			t.Errorf("%s: %s: %s", name, j.Verdict, j.Message)
		}
	}
}
