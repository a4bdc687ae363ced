package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/plan"
)

func TestReadings(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    plan.Workload
		tallies []uint64
		want    string
	}{
		"rate limiter": {
			plan.Workload{RateLimiter: &plan.RateLimiter{}},
			[]uint64{80, 20},
			"allowed=80 denied=20 deniedShare=0.2",
		},
		"cache": {
			plan.Workload{CacheAside: &plan.CacheAside{}},
			[]uint64{90, 10, 50_000, 20_000},
			"hits=90 misses=10 hitRatio=0.9 cacheTime=500µs databaseTime=2ms",
		},
		"no cache": {
			plan.Workload{CacheAside: &plan.CacheAside{Mode: plan.DatabaseOnly}},
			[]uint64{0, 10, 0, 20_000},
			"databaseTime=2ms",
		},
		"cold cache": {plan.Workload{CacheAside: &plan.CacheAside{}}, []uint64{0, 0, 0, 0}, "hits=0 misses=0"},
		"http": {
			plan.Workload{HTTP: &plan.HTTP{}},
			[]uint64{0, 75, 0, 0, 25, 5, 1000, 200_000, 50_000},
			"status2xx=75 status5xx=25 connects=5 connectTime=200µs firstByteTime=2ms bodyTime=500µs",
		},
		"commands":    {plan.Workload{Commands: []plan.Command{{Name: "a"}}}, nil, ""},
		"another run": {plan.Workload{RateLimiter: &plan.RateLimiter{}}, []uint64{1}, ""},
	} {
		var parts []string
		for _, r := range tc.spec.Readings(tc.tallies) {
			switch {
			case r.Count != nil:
				parts = append(parts, fmt.Sprintf("%s=%d", r.Name, *r.Count))
			case r.Share != nil:
				parts = append(parts, fmt.Sprintf("%s=%v", r.Name, *r.Share))
			case r.Mean != nil:
				parts = append(parts, fmt.Sprintf("%s=%v", r.Name, *r.Mean))
			}
		}
		if got := strings.Join(parts, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
