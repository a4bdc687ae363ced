package intervals

import (
	"math"
	"testing"

	"github.com/redquake/redquake/internal/analysis/compare"
)

// The scale puts equal ratios of both directions at the same distance, and better always to the right.
func TestRatioScale(t *testing.T) {
	t.Parallel()
	s := ratioScale{math.Log(5)}
	up, down := compare.FigureNamed("throughput"), compare.FigureNamed("latencyP99")
	for _, ratio := range []float64{1.001, 1.02, 1.5, 3, 4.9} {
		a, b := s.of(math.Log(ratio), up), s.of(-math.Log(ratio), up)
		if math.Abs(a+b-100) > 1e-9 || a <= 50 || s.of(math.Log(ratio), down) != b {
			t.Errorf("%g: %g and %g", ratio, a, b)
		}
	}
	if at2, at70 := s.of(math.Log(1.02), up), s.of(math.Log(0.3), up); at2-50 < 3 || at70 < 2 || at70 > 15 {
		t.Errorf("2%% more is at %g, 70%% less at %g", at2, at70)
	}
	if s.of(math.Inf(1), up) != 100 || s.of(math.Log(1e-9), up) != 0 {
		t.Error("what is beyond the scale is not at its end")
	}
}
