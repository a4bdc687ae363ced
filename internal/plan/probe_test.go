package plan

import "testing"

func TestProbePods(t *testing.T) {
	for _, tt := range []struct {
		rate       float64
		pods, want int
	}{{0, 10, 0}, {100, 1, 1}, {100, 2, 2}, {100, 4, 4}, {100, 1000, 4}, {10, 1000, 1}, {1000, 30, 30}, {1000, 1000, 40}} {
		p := &Plan{Pods: tt.pods, Probe: Probe{Rate: tt.rate}}
		if got := p.ProbePods(); got != tt.want {
			t.Errorf("%v/s over %d pods: %d probe, want %d", tt.rate, tt.pods, got, tt.want)
		}
	}
}
