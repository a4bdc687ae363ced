package verdict

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
)

func TestTrial(t *testing.T) {
	limit, errors := metav1.Duration{Duration: 5 * time.Millisecond}, "1%"
	objectives := &v1alpha1.Objectives{MaxLatencyP99: &limit, MaxErrorRate: &errors, MinThroughput: new("1000000"), MaxLostWrites: new(int64(0))}
	figures := func(succeeded uint64, p99 time.Duration, errorRate float64) impact.Summary {
		s := impact.Summary{Measured: 10 * time.Second}
		s.Requests, s.OK, s.ErrorRate, s.Throughput = 10_000, succeeded, errorRate, float64(succeeded)/10
		s.Latency = impact.Latency{Count: succeeded, P99: p99}
		return s
	}
	for name, tc := range map[string]struct {
		summary impact.Summary
		why     string // "" = met
	}{
		"meets":                        {figures(10_000, time.Millisecond, 0), ""},
		"a few are still on their way": {figures(9_850, time.Millisecond, 0), ""},
		"slow":                         {figures(10_000, 6*time.Millisecond, 0), "maxLatencyP99 is 6ms"},
		"errors":                       {figures(10_000, time.Millisecond, 0.02), "maxErrorRate is 2%"},
		"errors that are allowed":      {figures(9_750, time.Millisecond, 0.01), ""},
		"does not keep up":             {figures(9_700, time.Millisecond, 0), "only 970 of 1000 requests/s succeeded"},
	} {
		j := Trial(objectives, 1000, tc.summary)
		if j.Void || j.Met != (tc.why == "") || !strings.Contains(j.Why, tc.why) {
			t.Errorf("%s: %+v; want %q", name, j, tc.why)
		}
	}
}

// A coarsened record may have no complete histogram in a window: then the trial is void.
func TestTrialIsVoidWithoutFigures(t *testing.T) {
	blind := impact.Summary{Measured: time.Second}
	blind.Requests, blind.OK, blind.Throughput = 1000, 1000, 1000
	dead := impact.Summary{Measured: time.Second}
	dead.Requests, dead.Fail, dead.ErrorRate = 1000, 1000, 1
	limit := metav1.Duration{Duration: 5 * time.Millisecond}
	for name, tc := range map[string]struct {
		summary impact.Summary
		void    bool
	}{"no interval": {impact.Summary{}, true}, "no histogram": {blind, true}, "nothing but errors": {dead, false}} {
		if j := Trial(&v1alpha1.Objectives{MaxLatencyP99: &limit}, 1000, tc.summary); j.Void != tc.void || j.Met {
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
