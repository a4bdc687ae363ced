package overlay

import (
	"math"
	"slices"
	"testing"
	"time"
)

// A curve counts what was answered in each of its steps, and has a hole where the record has nothing.
func TestCurve(t *testing.T) {
	t.Parallel()
	w := Window{Fault: true, Before: time.Second, After: 2 * time.Second, Step: 500 * time.Millisecond}
	counts := slices.Repeat([]float64{100}, 20) // 2 s of 1,000/s
	counts[10] = 0
	c := NewCurve(w, 100*time.Millisecond, counts, time.Second)
	want := []float64{1000, 1000, 800, 1000, math.NaN(), math.NaN()}
	for i := range want {
		if got := c.Rates[i]; math.Abs(got-want[i]) > 1e-9 || math.IsNaN(got) != math.IsNaN(want[i]) {
			t.Errorf("step %d: %g, want %g", i, got, want[i])
		}
	}
	scale := Scale{Window: w, Most: 1200}
	if got := scale.line(c.Rates); got != "M0 167H1667H3333V333H5000V167H6667" {
		t.Errorf("the line is %s", got)
	}
}
