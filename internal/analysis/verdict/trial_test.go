package verdict

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/result"
)

// searched is the plan of a search.
var searched = plan.Plan{Pods: 1, Shape: plan.Shape{Rate: 100, Search: &plan.Search{From: 100, To: 1000}}}

func TestTrial(t *testing.T) {
	limit, errors := metav1.Duration{Duration: 5 * time.Millisecond}, "1%"
	objectives := &v1alpha1.Objectives{
		MaxLatencyP99: &limit,
		MaxErrorRate:  &errors,
		MinThroughput: new("1000000"),
		MaxLostWrites: new(int64(0)),
	}
	figures := func(succeeded uint64, p99 time.Duration, errorRate float64) summary.Summary {
		s := summary.Summary{Measured: 10 * time.Second}
		s.Requests, s.OK, s.ErrorRate, s.Throughput = 10_000, succeeded, errorRate, float64(succeeded)/10
		s.Latency = summary.Latency{Count: succeeded, P99: p99}
		return s
	}
	for name, tc := range map[string]struct {
		summary summary.Summary
		why     string // "" = met
	}{
		"meets":                        {figures(10_000, time.Millisecond, 0), ""},
		"a few are still on their way": {figures(9_850, time.Millisecond, 0), ""},
		"slow":                         {figures(10_000, 6*time.Millisecond, 0), "maxLatencyP99 is 6ms"},
		"errors":                       {figures(10_000, time.Millisecond, 0.02), "maxErrorRate is 2%"},
		"errors that are allowed":      {figures(9_750, time.Millisecond, 0.01), ""},
		"does not keep up":             {figures(9_700, time.Millisecond, 0), "only 970 of 1000 requests/s succeeded"},
	} {
		j := Trial(objectives, &searched, 1000, tc.summary, nil)
		if j.Void || j.Met != (tc.why == "") || !strings.Contains(j.Why, tc.why) {
			t.Errorf("%s: %+v; want %q", name, j, tc.why)
		}
	}
}

// A coarsened record may have no complete histogram in a window: then the trial is void.
func TestTrialIsVoidWithoutFigures(t *testing.T) {
	blind := summary.Summary{Measured: time.Second}
	blind.Requests, blind.OK, blind.Throughput = 1000, 1000, 1000
	dead := summary.Summary{Measured: time.Second}
	dead.Requests, dead.Fail, dead.ErrorRate = 1000, 1000, 1
	limit := metav1.Duration{Duration: 5 * time.Millisecond}
	for name, tc := range map[string]struct {
		summary summary.Summary
		void    bool
	}{"no interval": {summary.Summary{}, true}, "no histogram": {blind, true}, "nothing but errors": {dead, false}} {
		if j := Trial(&v1alpha1.Objectives{MaxLatencyP99: &limit}, &searched, 1000, tc.summary, nil); j.Void != tc.void ||
			j.Met {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestSignificant(t *testing.T) {
	limit := &metav1.Duration{Duration: time.Millisecond}
	for _, tc := range []struct {
		objectives *v1alpha1.Objectives
		want       float64
	}{
		{nil, 100},
		{&v1alpha1.Objectives{MaxLatencyP50: limit}, 100},
		{&v1alpha1.Objectives{MaxLatencyP99: limit}, 1000},
		{&v1alpha1.Objectives{MaxLatencyP99: limit, MaxLatencyP999: limit}, 10_000},
		{&v1alpha1.Objectives{MaxLatencyP99: limit, MaxErrorRate: new("0.1%")}, 10_000},
		{&v1alpha1.Objectives{MaxErrorRate: new("0%")}, 100},
		{&v1alpha1.Objectives{MaxErrorRate: new("0.0001%")}, 1e6},
	} {
		if got := Significant(tc.objectives); got < tc.want*0.999 || got > tc.want*1.001 {
			t.Errorf("%+v: %v, want %v", tc.objectives, got, tc.want)
		}
	}
}

// A trial is not judged by what it may have missed only because the load generator did not run, or waited for a CPU: it
// is tried again. What it met, or missed all the same, counts.
func TestTrialOfAStalledGenerator(t *testing.T) {
	limit, errors := metav1.Duration{Duration: 5 * time.Millisecond}, "1%"
	objectives := &v1alpha1.Objectives{MaxLatencyP99: &limit, MaxErrorRate: &errors}
	figures := func(ok, dropped uint64, p99, service time.Duration) summary.Summary {
		s := summary.Summary{Measured: 10 * time.Second}
		s.Requests, s.OK, s.Dropped, s.Throughput = ok+dropped, ok, dropped, float64(ok)/10
		s.ErrorRate = float64(dropped) / float64(s.Requests)
		s.Latency, s.Service = summary.Latency{Count: ok, P99: p99}, summary.Latency{Count: ok, P99: service}
		return s
	}
	stalled := &summary.Stalls{
		Length:  2 * time.Second,
		Count:   50,
		Longest: 40 * time.Millisecond,
		Share:   0.2,
		Lost:    0.2,
		Faster:  1.25,
		Latency: summary.Latency{Count: 10_000, P99: time.Millisecond},
	}
	starved := &summary.Stalls{
		Lost: 0.3, Faster: 1 / 0.7, Latency: summary.Latency{Count: 10_000, P99: time.Millisecond},
		Waiting: summary.Waiting{
			Known:  true,
			Waited: 3 * time.Second,
			Ran:    time.Second,
			Over:   10 * time.Second,
			Share:  0.3,
			Mean:   0.3,
		},
	}
	for _, tt := range []struct {
		name      string
		summary   summary.Summary
		met, void bool
	}{
		{"meets all the same", figures(10_000, 0, 2*time.Millisecond, time.Millisecond), true, false},
		{"slow, perhaps as it was sent late", figures(10_000, 0, 50*time.Millisecond, time.Millisecond), false, true},
		{"slow all the same", figures(10_000, 0, 50*time.Millisecond, 20*time.Millisecond), false, false},
		{"dropped, perhaps as it was not sent", figures(9_700, 300, 2*time.Millisecond, time.Millisecond), false, true},
		{
			"does not keep up, perhaps as it was not sent", figures(8_000, 0, 2*time.Millisecond, time.Millisecond), false,
			true,
		},
		{"does not keep up all the same", figures(5_000, 0, 2*time.Millisecond, time.Millisecond), false, false},
	} {
		for reason, stalls := range map[string]*summary.Stalls{
			"load pod 0 did not run for 2s":      stalled,
			"load pod 0 waited for a CPU for 3s": starved,
		} {
			of := *stalls
			of.Service = tt.summary.Service
			j := Trial(objectives, &searched, 1000, tt.summary, &of)
			if j.Met != tt.met || j.Void != tt.void || tt.void && !strings.Contains(j.Why, reason) {
				t.Errorf("%s, %s: %+v, want met %t, void %t", tt.name, reason, j, tt.met, tt.void)
			}
		}
	}
}

// The throughput of a closed loop whose generator waited for a CPU is in doubt, whatever its objectives are: only a
// latency that is missed in any case stays so.
func TestVerdictOfAStarvedLoad(t *testing.T) {
	for _, tt := range []struct {
		name       string
		share      float64
		latency    result.Latency
		objectives *v1alpha1.Objectives
		want       v1alpha1.Verdict
		doubted    bool
	}{
		{"no objective", 0.75, result.ServiceTime, nil, v1alpha1.VerdictInconclusive, true},
		{"little", 0.05, result.ServiceTime, nil, v1alpha1.VerdictPass, false},
		{"an open loop", 0.75, result.ResponseTime, nil, v1alpha1.VerdictPass, false},
		{
			"throughput perhaps",
			0.75,
			result.ServiceTime,
			&v1alpha1.Objectives{MinThroughput: new("30000")},
			v1alpha1.VerdictInconclusive,
			true,
		},
		{
			"throughput too low, if Redis did not wait, too",
			0.75,
			result.ServiceTime,
			&v1alpha1.Objectives{MinThroughput: new("90000")},
			v1alpha1.VerdictInconclusive,
			true,
		},
		{
			"a latency that is too long all the same",
			0.75,
			result.ServiceTime,
			&v1alpha1.Objectives{MaxLatencyP99: d(time.Millisecond)},
			v1alpha1.VerdictFail,
			false,
		},
		{
			"a latency of a smaller load",
			0.75,
			result.ServiceTime,
			&v1alpha1.Objectives{MaxLatencyP99: d(time.Second)},
			v1alpha1.VerdictInconclusive,
			true,
		},
	} {
		r := load(func(r *result.Load) {
			r.Latency, r.Total.Throughput = tt.latency, 18_210
			r.Total.Stalled = &result.Stalled{
				Latency: r.Total.Latency, Throughput: 18_210 / (1 - tt.share),
				Waited: &result.Waited{Length: result.Seconds(time.Second), Ran: result.Seconds(time.Second), Share: tt.share},
			}
			r.Bottleneck = &result.Bottleneck{}
			if tt.latency == result.ResponseTime { // all that was due was sent, though late
				r.Total.Stalled.Throughput = r.Total.Throughput
			}
		})
		j := Load(tt.objectives, r)
		doubted := len(r.Doubts) == 1 && r.Doubts[0].Reason == impact.GeneratorStarved
		if j.Verdict != tt.want || doubted != tt.doubted {
			t.Errorf("%s: %s: %s, doubts %v; want %s", tt.name, j.Verdict, j.Message, r.Doubts, tt.want)
		}
		if doubted && !strings.HasPrefix(r.Doubts[0].Message,
			"load pod 0 waited for a CPU for 1s, beside 1s in which it ran: up to 75% of its time is lost: the throughput is "+
				"between 18210/s and 72840/s") {
			t.Errorf("%s: the message is %q", tt.name, r.Doubts[0].Message)
		}
	}
}
