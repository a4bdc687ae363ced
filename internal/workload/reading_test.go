package workload

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadings(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    Spec
		tallies []uint64
		want    string
	}{
		"rate limiter": {Spec{RateLimiter: &RateLimiter{}}, []uint64{80, 20}, "allowed=80 denied=20 deniedShare=0.2"},
		"cache":        {Spec{CacheAside: &CacheAside{}}, []uint64{90, 10, 50_000, 20_000}, "hits=90 misses=10 hitRatio=0.9 cacheTime=500µs databaseTime=2ms"},
		"cold cache":   {Spec{CacheAside: &CacheAside{}}, []uint64{0, 0, 0, 0}, "hits=0 misses=0"},
		"http":         {Spec{HTTP: &HTTP{}}, []uint64{0, 75, 0, 0, 25, 5, 1000, 200_000, 50_000}, "status2xx=75 status5xx=25 connects=5 connectTime=200µs firstByteTime=2ms bodyTime=500µs"},
		"commands":     {Spec{Commands: []Command{{Name: "a"}}}, nil, ""},
		"another run":  {Spec{RateLimiter: &RateLimiter{}}, []uint64{1}, ""},
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
