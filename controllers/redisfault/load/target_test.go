package load

import (
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Only of a closed loop of several tests in sequence, each for a number of requests, it is not known when the
// throughput changes.
func TestChangesUnknown(t *testing.T) {
	two := &v1alpha1.BenchmarkWorkload{Tests: []v1alpha1.BenchmarkTest{"set", "get"}, Order: v1alpha1.BenchmarkSequential}
	mixed := &v1alpha1.BenchmarkWorkload{Tests: two.Tests, Order: v1alpha1.BenchmarkMixed}
	one := &v1alpha1.BenchmarkWorkload{Tests: two.Tests[:1], Order: v1alpha1.BenchmarkSequential}
	users, rate, requests := new(int32(5)), new(int32(5)), new(int64(1000))
	counted := v1alpha1.LoadShape{Users: users, Requests: requests}
	for i, tt := range []struct {
		benchmark *v1alpha1.BenchmarkWorkload
		load      v1alpha1.LoadShape
		want      bool
	}{
		{two, counted, true},
		{mixed, counted, false},
		{one, counted, false},
		{nil, counted, false},
		{two, v1alpha1.LoadShape{Users: users}, false},
		{two, v1alpha1.LoadShape{Rate: rate, Users: users, Requests: requests}, false},
		{two, v1alpha1.LoadShape{Stages: []v1alpha1.LoadStage{{Users: users}}}, false},
	} {
		if got := changesUnknown(&v1alpha1.RedisLoadTestSpec{
			Load:     tt.load,
			Workload: v1alpha1.Workload{Benchmark: tt.benchmark},
		}); got != tt.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
