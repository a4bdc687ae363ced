package throughput

import (
	"math"
	"testing"
)

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		values                       []float64
		median, deviation, vary, sen float64
	}{
		{nil, 0, 0, 0, 0},
		{[]float64{7}, 7, 0, 0, 0},
		{[]float64{1, 3}, 2, 1, 0.70710678, 2},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9}, 4.5, 0.5, 0.42761798, 0.79166667}, // mean 5, sample standard deviation 2.1380899
		{[]float64{10, 20, 30, 900, 50}, 30, 20, 1.93303995, 10},
	} {
		if got := Median(c.values); got != c.median {
			t.Errorf("median of %v = %v", c.values, got)
		}
		if got := MedianDeviation(c.values); got != c.deviation {
			t.Errorf("MAD of %v = %v", c.values, got)
		}
		if got := Variation(c.values); math.Abs(got-c.vary) > 1e-7 {
			t.Errorf("variation of %v = %v, want %v", c.values, got, c.vary)
		}
		if got := TheilSen(c.values); math.Abs(got-c.sen) > 1e-7 {
			t.Errorf("slope of %v = %v, want %v", c.values, got, c.sen)
		}
	}
}
