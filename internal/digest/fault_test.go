package digest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/analysis/summary"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// Figures of every size fit the CRD: none, the largest that a week of load can give, and values that are not numbers.
func TestImpactFitsTheCRD(t *testing.T) {
	week := 168 * time.Hour
	most := summary.Latency{P50: week, P90: week, P99: week, P999: week, Max: week, Mean: week, Count: 1}
	var every [record.NumClasses]uint64
	for i := range every {
		every[i] = 1 << 60
	}
	worst := impact.Effect{
		Name:     "set",
		Outage:   durations.Exactly(week),
		Dip:      1 - 1e-11,
		Failures: impact.Failures{FirstError: week, LastError: week, Errors: 1 << 60},
	}
	none := impact.Effect{Name: "get", Dip: math.NaN(), Failures: impact.Failures{FirstError: -1, LastError: -1}}
	length := durations.Exactly(week - 1)
	doubts := []impact.Doubt{
		{Reason: impact.NoLoad, Message: strings.Repeat("x", 2000)},
		{Reason: impact.NoLoad, Message: "twice"},
		{Reason: impact.RecordIncomplete},
	}
	for name, m := range map[string]impact.Impact{
		"none": {
			TimeToImpact: durations.Exactly(-1),
			Outage:       impact.Outage{Of: impact.Load},
			Outages: impact.Outages{
				Reads:  durations.Exactly(-1),
				Writes: durations.Exactly(-1),
				Shard:  impact.ShardOutage{Bounded: durations.Exactly(-1)},
				Probe:  durations.Exactly(-1),
			},
			Dip:          impact.Dip{Of: impact.All},
			OutageEnd:    durations.Exactly(-1),
			RecoveryTime: durations.Exactly(-1),
		},
		"largest": {
			BaselineRate: 1e8 / 3,
			MinRate:      1e8 / 7,
			Dip:          impact.Dip{Value: 1 - 1e-11, Of: impact.Writes},
			Dips:         impact.Dips{All: 1 - 1e-11, Reads: 1, Writes: 1 - 1e-11},
			TimeToImpact: length,
			Outage:       impact.Outage{Bounded: length, Of: impact.Shard, Shard: 1 << 30},
			Outages: impact.Outages{
				Load:   length,
				Reads:  length,
				Writes: length,
				Shard:  impact.ShardOutage{Bounded: length, Shard: 1 << 30},
				Probe:  length,
			},
			TotalOutage:         durations.Exactly(week - 1),
			ErrorWindow:         week - 1,
			Recovered:           true,
			RecoveryTime:        durations.Exactly(week - 1),
			RecoveredThroughput: 1e8 / 3,
			LostRequests:        1e14,
			Errors:              1 << 60,
			ErrorsByClass:       every,
			WhileActive: &impact.WhileActive{
				Length: week, Throughput: 1e8 / 3, Change: 1e8 / 3, Latency: most, LatencyP50Change: 6e11 / 7,
				LatencyP99Change: -1 + 1e-11, ErrorRate: 1, ErrorRateChange: -1,
			},
			Before:     most,
			During:     most,
			After:      most,
			Reads:      &worst.Failures,
			Writes:     &worst.Failures,
			Operations: []impact.Effect{worst, none},
			Doubts:     doubts,
		},
		"no number": {
			Reads:               &none.Failures,
			Outage:              impact.Outage{Of: impact.Probe},
			Operations:          []impact.Effect{none},
			BaselineRate:        math.NaN(),
			MinRate:             math.Inf(1),
			Dip:                 impact.Dip{Value: math.NaN(), Of: impact.All},
			Dips:                impact.Dips{All: math.NaN(), Reads: math.NaN(), Writes: math.Inf(1)},
			Recovered:           true,
			RecoveredThroughput: math.Inf(1),
			WhileActive:         &impact.WhileActive{Change: math.NaN(), LatencyP99Change: math.NaN()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := Impact(result.NewFault(&m, result.FaultInput{}))
			schema := apitest.StatusSchema(t, "redquake.dev_redisfaults.yaml").Properties["impact"]
			apitest.Fits(t, "impact", &schema, status)
			reasons := map[string]bool{}
			for _, d := range status.Doubts {
				if reasons[d.Reason] {
					t.Errorf("doubt %s is listed twice", d.Reason)
				}
				reasons[d.Reason] = true
			}
			if !m.Recovered && (status.RecoveryTime != nil || status.RecoveredThroughput != "") {
				t.Errorf("not recovered, but %+v", status)
			}
		})
	}
}

func TestChangesAsText(t *testing.T) {
	for want, w := range map[string]*result.WhileActive{
		"":                             nil,
		"throughput -12.5%, p99 +340%": {ThroughputChange: new(-0.125), LatencyP99Change: new(3.4)},
		"throughput 0%":                {ThroughputChange: new(0.0)},
	} {
		if got := changesOf(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A column has a range where a length may be off by more than a third, and no dip of a load that had nothing to lose.
func TestColumns(t *testing.T) {
	second := time.Second
	for want, m := range map[v1alpha1.FaultDisplay]*impact.Impact{
		{Dip: "90%", Outage: "1s", Recovery: "1.28s-7.58s"}: {
			BaselineRate: 100,
			Dip:          impact.Dip{Value: 0.9, Of: impact.All},
			Outage: impact.Outage{
				Bounded: durations.Bounded{Value: second, AtLeast: second * 9 / 10, AtMost: second},
				Of:      impact.Load,
			},
			Recovered: true,
			RecoveryTime: durations.Bounded{
				Value:   7580 * time.Millisecond,
				AtLeast: 1280 * time.Millisecond,
				AtMost:  7580 * time.Millisecond,
			},
		},
		{Outage: "500ms-1.5s"}: {
			Outage: impact.Outage{
				Bounded: durations.Bounded{Value: second, AtLeast: second / 2, AtMost: second * 3 / 2},
				Of:      impact.Load,
			},
		},
		{Dip: "0%", Outage: "0s"}: {
			BaselineRate: 100,
			Outage:       impact.Outage{Bounded: durations.Bounded{AtMost: 8 * time.Millisecond}, Of: impact.Load},
		},
	} {
		var d v1alpha1.FaultDisplay
		Columns(&d, result.NewFault(m, result.FaultInput{}))
		if d != want {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
}
