package fault

import (
	"errors"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A read error prevents the record of a fault, but never the revert of a recorded one.
func TestProblemOfARecordedFault(t *testing.T) {
	refusal := errors.New("secrets is forbidden")
	s := &scope{}
	if err := s.noteProblem(refusal); !errors.Is(err, refusal) || s.seen.Problem != nil {
		t.Errorf("before the record: %v, problem %+v", err, s.seen.Problem)
	}
	s.seen.Recorded = true
	if err := s.noteProblem(refusal); err != nil || s.seen.Problem == nil || s.seen.Problem.Message != refusal.Error() {
		t.Errorf("after it: %v, problem %+v", err, s.seen.Problem)
	}
	if err := (&scope{}).noteProblem(nil); err != nil {
		t.Error(err)
	}
}

// Only a closed loop of several tests in sequence has no throughput to compare with.
func TestChangesWithTests(t *testing.T) {
	two := &v1alpha1.BenchmarkWorkload{Tests: []v1alpha1.BenchmarkTest{"set", "get"}, Order: v1alpha1.BenchmarkSequential}
	mixed := &v1alpha1.BenchmarkWorkload{Tests: two.Tests, Order: v1alpha1.BenchmarkMixed}
	one := &v1alpha1.BenchmarkWorkload{Tests: two.Tests[:1], Order: v1alpha1.BenchmarkSequential}
	users, rate := v1alpha1.LoadShape{Users: new(int32(5))}, v1alpha1.LoadShape{Rate: new(int32(5)), Users: new(int32(5))}
	for i, tt := range []struct {
		benchmark *v1alpha1.BenchmarkWorkload
		load      v1alpha1.LoadShape
		want      bool
	}{
		{two, users, true}, {two, rate, false}, {mixed, users, false}, {one, users, false}, {nil, users, false},
		{two, v1alpha1.LoadShape{Stages: []v1alpha1.LoadStage{{Users: new(int32(5))}}}, true},
		{two, v1alpha1.LoadShape{Stages: []v1alpha1.LoadStage{{Rate: new(int32(5))}}}, false},
	} {
		if got := changesWithTests(&v1alpha1.RedisLoadTestSpec{Load: tt.load, Workload: v1alpha1.Workload{Benchmark: tt.benchmark}}); got != tt.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}
