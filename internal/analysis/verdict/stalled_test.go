package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// A load generator that did not run makes an objective inconclusive if it may be met without the stalls.
func TestVerdictOfAStalledLoad(t *testing.T) {
	quantiles := func(d time.Duration) *result.Quantiles {
		return &result.Quantiles{P50: result.Seconds(d), P99: result.Seconds(d), P999: result.Seconds(d)}
	}
	for _, tt := range []struct {
		name       string
		objectives *v1alpha1.Objectives
		want       v1alpha1.Verdict
		doubted    bool
	}{
		{
			"p99 within the limit all the same",
			&v1alpha1.Objectives{MaxLatencyP99: d(time.Second)},
			v1alpha1.VerdictPass,
			false,
		},
		{"p99 perhaps", &v1alpha1.Objectives{MaxLatencyP99: d(100 * time.Millisecond)}, v1alpha1.VerdictInconclusive, true},
		{
			"p99 beyond the limit all the same",
			&v1alpha1.Objectives{MaxLatencyP99: d(time.Millisecond)},
			v1alpha1.VerdictFail,
			false,
		},
		{"throughput perhaps", &v1alpha1.Objectives{MinThroughput: new("1000")}, v1alpha1.VerdictInconclusive, true},
		{"throughput too low all the same", &v1alpha1.Objectives{MinThroughput: new("2000")}, v1alpha1.VerdictFail, false},
		{"throughput high enough all the same", &v1alpha1.Objectives{MinThroughput: new("900")}, v1alpha1.VerdictPass, false},
		{"errors perhaps", &v1alpha1.Objectives{MaxErrorRate: new("1%")}, v1alpha1.VerdictInconclusive, true},
		{"errors too many all the same", &v1alpha1.Objectives{MaxErrorRate: new("0.1%")}, v1alpha1.VerdictFail, false},
		{
			"one perhaps, another missed all the same",
			&v1alpha1.Objectives{MaxLatencyP99: d(100 * time.Millisecond), MinThroughput: new("2000")},
			v1alpha1.VerdictFail,
			false,
		},
		{"no objective", nil, v1alpha1.VerdictInconclusive, true},
		{"lost writes only", &v1alpha1.Objectives{MaxLostWrites: new(int64(5))}, v1alpha1.VerdictPass, false},
	} {
		r := load(func(r *result.Load) {
			r.Total.Throughput, r.Total.ErrorRate, r.Total.Latency = 950, 0.05, quantiles(380*time.Millisecond)
			r.Total.Stalled = &result.Stalled{
				Pod: 3, Length: result.Seconds(800 * time.Millisecond), Count: 2, Longest: result.Seconds(400 * time.Millisecond),
				Latency: quantiles(5 * time.Millisecond), Throughput: 1100, ErrorRate: 0.002,
			}
			r.Verification = &result.Verification{Lost: new(uint64(0))}
			r.Bottleneck = &result.Bottleneck{Stalled: true}
		})
		j := Load(tt.objectives, r)
		doubted := len(r.Doubts) == 1 && r.Doubts[0].Reason == impact.GeneratorStalled
		if j.Verdict != tt.want || doubted != tt.doubted {
			t.Errorf("%s: %s: %s, doubts %v; want %s", tt.name, j.Verdict, j.Message, r.Doubts, tt.want)
		}
		if doubted && !strings.HasPrefix(r.Doubts[0].Message,
			"load pod 3 did not run for 800ms of the measured time (2 times, at most 400ms): ") {
			t.Errorf("%s: the message is %q", tt.name, r.Doubts[0].Message)
		}
	}
}

// Short stalls are usual: without an objective they are no doubt.
func TestShortStallsAreNoDoubt(t *testing.T) {
	for _, tt := range []struct {
		p99        time.Duration
		bottleneck bool
	}{{15 * time.Millisecond, true}, {380 * time.Millisecond, false}} {
		r := load(func(r *result.Load) {
			r.Total.Latency = &result.Quantiles{P99: result.Seconds(tt.p99)}
			r.Total.Stalled = &result.Stalled{Length: result.Seconds(tt.p99), Count: 1, Latency: &result.Quantiles{P99: 1}}
			r.Bottleneck = &result.Bottleneck{Stalled: tt.bottleneck}
		})
		if j := Load(nil, r); j.Verdict != v1alpha1.VerdictPass || len(r.Doubts) != 0 {
			t.Errorf("%+v: %s: %s", tt, j.Verdict, j.Message)
		}
	}
}

// A load generator that was stopped for most of the run measured little, however fast its requests were when it ran.
func TestStoppedForMostOfTheRun(t *testing.T) {
	for _, tt := range []struct {
		throughput, atMost float64
		want               v1alpha1.Verdict
		message            string
	}{
		{300, 1000, v1alpha1.VerdictInconclusive, "the throughput is between 300/s and 1000/s"},
		{600, 1000, v1alpha1.VerdictPass, ""},
		{1000, 1000, v1alpha1.VerdictPass, ""}, // open loop: all that was due was sent, though late
	} {
		r := load(func(r *result.Load) {
			fast := &result.Quantiles{P99: result.Seconds(time.Millisecond)}
			r.Total.Throughput, r.Total.Latency = tt.throughput, fast
			r.Total.Stalled = &result.Stalled{
				Length:     result.Seconds(7 * time.Second),
				Count:      2,
				Longest:    result.Seconds(4 * time.Second),
				Latency:    fast,
				Throughput: tt.atMost,
			}
			r.Bottleneck = &result.Bottleneck{Stalled: true}
		})
		if j := Load(nil, r); j.Verdict != tt.want || (len(r.Doubts) == 1) != (tt.message != "") ||
			len(r.Doubts) == 1 && !strings.Contains(r.Doubts[0].Message, tt.message) {
			t.Errorf("%+v: %s: %s, %v", tt, j.Verdict, j.Message, r.Doubts)
		}
	}
}

// A stalled generator widens the bounds of an outage: it makes the verdict of a fault Inconclusive only where these do
// not decide.
func TestStallsCountWhereTheBoundsOfAFaultDoNotDecide(t *testing.T) {
	outage := durations.Bounded{Value: 2 * time.Second, AtLeast: 1699 * time.Millisecond, AtMost: 2 * time.Second}
	r := result.NewFault(&impact.Impact{
		Outage:       impact.Outage{Bounded: outage, Of: impact.Load},
		Recovered:    true,
		RecoveryTime: outage,
		Dip:          impact.Dip{Value: 0.5, Of: impact.All},
	}, result.FaultInput{})
	doubts := []impact.Doubt{{Reason: impact.GeneratorStalled, Message: "load pod 0 did not run"}}
	seconds := func(s float64) *metav1.Duration {
		return &metav1.Duration{Duration: time.Duration(s * float64(time.Second))}
	}
	for name, tc := range map[string]struct {
		objectives *v1alpha1.FaultObjectives
		want       v1alpha1.Verdict
	}{
		"surely met": {
			&v1alpha1.FaultObjectives{MaxOutage: seconds(10), MaxRecoveryTime: seconds(10)},
			v1alpha1.VerdictPass,
		},
		"surely missed": {&v1alpha1.FaultObjectives{MaxOutage: seconds(1)}, v1alpha1.VerdictFail},
		"within the bounds": {
			&v1alpha1.FaultObjectives{MaxOutage: seconds(1.8)},
			v1alpha1.VerdictInconclusive,
		},
		"one of them within the bounds": {
			&v1alpha1.FaultObjectives{MaxOutage: seconds(10), MaxRecoveryTime: seconds(1.8)},
			v1alpha1.VerdictInconclusive,
		},
		"a dip that the stall may have dug": {
			&v1alpha1.FaultObjectives{MaxOutage: seconds(10), MaxTPSDip: new("10%")},
			v1alpha1.VerdictInconclusive,
		},
		"missed beside a dip": {
			&v1alpha1.FaultObjectives{MaxOutage: seconds(1), MaxTPSDip: new("10%")},
			v1alpha1.VerdictFail,
		},
		"no objectives": {nil, v1alpha1.VerdictInconclusive},
	} {
		if j := Conclude(Fault(tc.objectives, r), doubts, Missed{}, nil); j.Verdict != tc.want {
			t.Errorf("%s: %s: %s", name, j.Verdict, j.Message)
		}
		if len(doubts) != 1 {
			t.Fatalf("%s: the doubts were changed", name)
		}
	}
	lost := append(slices.Clone(doubts), impact.Doubt{Reason: v1alpha1.ReasonPodsLost, Message: "gone"})
	if j := Conclude(Fault(&v1alpha1.FaultObjectives{MaxOutage: seconds(10)}, r), lost, Missed{},
		nil); j.Verdict != v1alpha1.VerdictInconclusive || j.Message != "load pods were lost" {
		t.Errorf("beside another doubt: %s: %s", j.Verdict, j.Message)
	}
}
