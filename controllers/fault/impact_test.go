package fault

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/crdtest"
)

// Figures of every size fit what the CRD takes: none, ordinary, the largest that a week of load can give, and no numbers at all.
func TestImpactFitsTheCRD(t *testing.T) {
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
			schema := crdtest.StatusSchema(t, "redquake.dev_redisfaults.yaml").Properties["impact"]
			crdtest.Fits(t, "impact", &schema, status)
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
}

func TestSentenceOfAFault(t *testing.T) {
	f := &v1alpha1.RedisFault{Spec: v1alpha1.RedisFaultSpec{RecoveryDeadline: metav1.Duration{Duration: time.Minute}}}
	s := &scope{fault: f}
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
