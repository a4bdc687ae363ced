package verdict

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

// good is a run of 1000 requests at 100/s with 1 % errors, hit by one fault: a dip of 60 %, an outage of 2 s, recovery after 5 s.
func good(change func(*Figures)) Figures {
	f := Figures{
		Summary: impact.Summary{Figures: impact.Figures{
			Requests: 1000, OK: 990, Fail: 10, ErrorRate: 0.01, Throughput: 100,
			Latency: impact.Latency{P50: time.Millisecond, P99: 10 * time.Millisecond, P999: 100 * time.Millisecond, Count: 990},
		}},
		Faults: []Fault{
			{Name: "light", Confirmed: true, Impact: impact.Impact{Recovered: true, Dip: 0.1, Outage: 100 * time.Millisecond, RecoveryTime: time.Second}},
			{Name: "kill", Confirmed: true, Impact: impact.Impact{Recovered: true, Dip: 0.6, Outage: 2 * time.Second, RecoveryTime: 5 * time.Second}},
		},
		Lost: new(int64(3)),
	}
	if change != nil {
		change(&f)
	}
	return f
}

func d(length time.Duration) *metav1.Duration { return &metav1.Duration{Duration: length} }

// Every objective on its own: met at its limit, broken just beyond it, and without anything to be judged by.
func TestEachObjective(t *testing.T) {
	noFault := func(f *Figures) { f.Faults = nil }
	noSuccess := func(f *Figures) { f.Summary.Latency = impact.Latency{} }
	for _, tc := range []struct {
		name, limit, actual string
		met, broken         v1alpha1.Objectives
		without             func(*Figures)
	}{
		{"minThroughput", "100", "100", v1alpha1.Objectives{MinThroughput: new("100")}, v1alpha1.Objectives{MinThroughput: new("100.1")}, nil},
		{"maxLatencyP50", "1ms", "1ms", v1alpha1.Objectives{MaxLatencyP50: d(time.Millisecond)}, v1alpha1.Objectives{MaxLatencyP50: d(time.Millisecond - 1)}, noSuccess},
		{"maxLatencyP99", "10ms", "10ms", v1alpha1.Objectives{MaxLatencyP99: d(10 * time.Millisecond)}, v1alpha1.Objectives{MaxLatencyP99: d(9 * time.Millisecond)}, noSuccess},
		{"maxLatencyP999", "100ms", "100ms", v1alpha1.Objectives{MaxLatencyP999: d(100 * time.Millisecond)}, v1alpha1.Objectives{MaxLatencyP999: d(99 * time.Millisecond)}, noSuccess},
		{"maxErrorRate", "1%", "1%", v1alpha1.Objectives{MaxErrorRate: new("1%")}, v1alpha1.Objectives{MaxErrorRate: new("0.99%")}, nil},
		{"maxTPSDip", "60%", "60%", v1alpha1.Objectives{MaxTPSDip: new("60%")}, v1alpha1.Objectives{MaxTPSDip: new("59.9%")}, noFault},
		{"maxOutage", "2s", "2s", v1alpha1.Objectives{MaxOutage: d(2 * time.Second)}, v1alpha1.Objectives{MaxOutage: d(1999 * time.Millisecond)}, noFault},
		{"maxRecoveryTime", "5s", "5s", v1alpha1.Objectives{MaxRecoveryTime: d(5 * time.Second)}, v1alpha1.Objectives{MaxRecoveryTime: d(4999 * time.Millisecond)}, noFault},
		{"maxLostWrites", "3", "3", v1alpha1.Objectives{MaxLostWrites: new(int64(3))}, v1alpha1.Objectives{MaxLostWrites: new(int64(2))}, func(f *Figures) { f.Lost = nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := Judge(&tc.met, good(nil))
			if j.Verdict != v1alpha1.VerdictPass || len(j.Objectives) != 1 {
				t.Fatalf("at the limit: %s, %d objectives: %s", j.Verdict, len(j.Objectives), j.Message)
			}
			o := j.Objectives[0]
			if o.Name != tc.name || o.Met == nil || !*o.Met || !same(o.Limit, tc.limit) || !same(o.Actual, tc.actual) {
				t.Errorf("got %s limit %q actual %q met %v, want %s limit %q actual %q met", o.Name, o.Limit, o.Actual, o.Met, tc.name, tc.limit, tc.actual)
			}
			j = Judge(&tc.broken, good(nil))
			if j.Verdict != v1alpha1.VerdictFail || j.Reason != v1alpha1.ReasonObjectivesNotMet || j.Objectives[0].Met == nil || *j.Objectives[0].Met {
				t.Errorf("beyond the limit: %s (%s), met %v", j.Verdict, j.Reason, j.Objectives[0].Met)
			}
			if !strings.Contains(j.Message, tc.name) || !strings.Contains(j.Message, j.Objectives[0].Actual) {
				t.Errorf("message %q does not name the objective and what was measured", j.Message)
			}
			if tc.without == nil {
				return
			}
			j = Judge(&tc.met, good(tc.without))
			if j.Verdict != v1alpha1.VerdictInconclusive || j.Objectives[0].Met != nil || j.Objectives[0].Actual != "" {
				t.Errorf("nothing to judge by: %s, met %v, actual %q", j.Verdict, j.Objectives[0].Met, j.Objectives[0].Actual)
			}
			if !strings.Contains(j.Message, tc.name) {
				t.Errorf("message %q does not name the objective", j.Message)
			}
		})
	}
}

// same compares figures: 100 and 100.0 are one.
func same(a, b string) bool { return a == b || strings.Replace(a, ".0", "", 1) == b }

func TestVerdictOfTheWhole(t *testing.T) {
	met, broken := &v1alpha1.Objectives{MinThroughput: new("10")}, &v1alpha1.Objectives{MinThroughput: new("1000")}
	doubt := impact.Doubt{Reason: "LoadPodLost", Message: "1 of 2 load pods were lost"}
	for _, tc := range []struct {
		name       string
		objectives *v1alpha1.Objectives
		figures    Figures
		verdict    v1alpha1.Verdict
		reason     string
		says       []string
	}{
		{"no objectives", nil, good(nil), v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, []string{"no objective"}},
		{"all met", met, good(nil), v1alpha1.VerdictPass, v1alpha1.ReasonSucceeded, []string{"all 1"}},
		{"a doubt beats a broken limit", broken, good(func(f *Figures) { f.Doubts = []impact.Doubt{doubt} }), v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"1 of 2"}},
		{"a doubt without objectives", nil, good(func(f *Figures) { f.Doubts = []impact.Doubt{doubt} }), v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"1 of 2"}},
		{"broken beats unjudgeable", &v1alpha1.Objectives{MinThroughput: new("1000"), MaxOutage: d(time.Second)}, good(func(f *Figures) { f.Faults = nil }), v1alpha1.VerdictFail, v1alpha1.ReasonObjectivesNotMet, []string{"minThroughput"}},
		{"met and unjudgeable", &v1alpha1.Objectives{MinThroughput: new("10"), MaxOutage: d(time.Second)}, good(func(f *Figures) { f.Faults = nil }), v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"maxOutage"}},
		{"no request at all", nil, Figures{}, v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"no request"}},
		{"an effect that nobody confirmed", met, good(func(f *Figures) { f.Faults[1].Confirmed = false }), v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"fault kill"}},
		{"a doubt about a fault's figures", met, good(func(f *Figures) {
			f.Faults[0].Impact.Doubts = []impact.Doubt{{Reason: impact.BaselineTooShort, Message: "only 3s were measured"}}
		}), v1alpha1.VerdictInconclusive, v1alpha1.ReasonInconclusive, []string{"fault light", "only 3s"}},
		{"not recovered breaks any limit of recovery", &v1alpha1.Objectives{MaxRecoveryTime: d(time.Hour)}, good(func(f *Figures) { f.Faults[0].Impact.Recovered = false }), v1alpha1.VerdictFail, v1alpha1.ReasonObjectivesNotMet, []string{"NotRecovered"}},
		{"every broken limit is named", &v1alpha1.Objectives{MinThroughput: new("1000"), MaxErrorRate: new("0%"), MaxLatencyP99: d(time.Hour)}, good(nil), v1alpha1.VerdictFail, v1alpha1.ReasonObjectivesNotMet, []string{"minThroughput", "maxErrorRate", "limit 0%"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := Judge(tc.objectives, tc.figures)
			if j.Verdict != tc.verdict || j.Reason != tc.reason {
				t.Errorf("%s (%s), want %s (%s): %s", j.Verdict, j.Reason, tc.verdict, tc.reason, j.Message)
			}
			for _, text := range tc.says {
				if !strings.Contains(j.Message, text) {
					t.Errorf("message %q does not say %q", j.Message, text)
				}
			}
		})
	}
}

// The judgement must not write into the caller's list of doubts.
func TestJudgeLeavesItsArgumentsAlone(t *testing.T) {
	room := make([]impact.Doubt, 1, 4)
	room[0] = impact.Doubt{Reason: "Aborted", Message: "aborted"}
	Judge(nil, Figures{Doubts: room})
	if behind := room[:2][1]; behind != (impact.Doubt{}) {
		t.Errorf("%+v was written behind the caller's doubts", behind)
	}
}
