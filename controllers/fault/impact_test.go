package fault

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// Figures of every size fit the CRD: none, the largest that a week of load can give, and values that are not numbers.
func TestImpactFitsTheCRD(t *testing.T) {
	week := 168 * time.Hour
	most := impact.Latency{P50: week, P90: week, P99: week, P999: week, Max: week, Mean: week, Count: 1}
	var every [record.NumClasses]uint64
	for i := range every {
		every[i] = 1 << 60
	}
	worst := impact.Effect{Name: "set", Outage: impact.Exactly(week), FirstError: week, LastError: week, Errors: 1 << 60, Dip: 1 - 1e-11}
	none := impact.Effect{Name: "get", FirstError: -1, LastError: -1, Dip: math.NaN()}
	doubts := []impact.Doubt{{Reason: impact.NoLoad, Message: strings.Repeat("x", 2000)}, {Reason: impact.NoLoad, Message: "twice"}, {Reason: impact.RecordIncomplete}}
	for name, m := range map[string]impact.Impact{
		"none":      {TimeToImpact: impact.Exactly(-1), ServerOutage: impact.Exactly(-1), OutageEnd: impact.Exactly(-1), RecoveryTime: impact.Exactly(-1)},
		"largest":   {BaselineRate: 1e8 / 3, MinRate: 1e8 / 7, Dip: 1 - 1e-11, TimeToImpact: impact.Exactly(week - 1), Outage: impact.Exactly(week - 1), TotalOutage: week - 1, ServerOutage: impact.Exactly(week - 1), ErrorWindow: week - 1, Recovered: true, RecoveryTime: impact.Exactly(week - 1), RecoveredThroughput: 1e8 / 3, LostRequests: 1e14, Errors: 1 << 60, ErrorsByClass: every, WhileActive: &impact.WhileActive{Length: week, Throughput: 1e8 / 3, Change: 1e8 / 3, Latency: most, LatencyP50Change: 6e11 / 7, LatencyP99Change: -1 + 1e-11, ErrorRate: 1, ErrorRateChange: -1}, Before: most, During: most, After: most, Reads: &worst, Writes: &worst, Operations: []impact.Effect{worst, none}, Doubts: doubts},
		"no number": {Reads: &none, Operations: []impact.Effect{none}, BaselineRate: math.NaN(), MinRate: math.Inf(1), Dip: math.NaN(), Recovered: true, RecoveredThroughput: math.Inf(1), WhileActive: &impact.WhileActive{Change: math.NaN(), LatencyP99Change: math.NaN()}},
	} {
		t.Run(name, func(t *testing.T) {
			status := impactOf(&result.Fault{Impact: m})
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
