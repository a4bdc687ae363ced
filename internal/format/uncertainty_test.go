package format

import "testing"

func TestUncertainty(t *testing.T) {
	for _, tc := range []struct {
		value, atLeast, atMost float64
		sign                   string
		off                    float64
	}{
		{2, 2, 2, "", 0},
		{2, 1.9796, 2.01, "±", 0.021}, // the greater one, rounded up
		{2.16, 2.13, 2.17, "±", 0.03}, // not 0.031, by what floating-point arithmetic adds
		{2, 1.75, 2, "−", 0.25},
		{0, 0, 0.02, "+", 0.02},
		{1000, 877, 1000, "−", 130},
		{1, 2, 0, "", 0}, // bounds that do not contain it
	} {
		if sign, off := Uncertainty(tc.value, tc.atLeast, tc.atMost); sign != tc.sign || off != tc.off {
			t.Errorf("%v in [%v, %v]: %q %v, want %q %v", tc.value, tc.atLeast, tc.atMost, sign, off, tc.sign, tc.off)
		}
	}
}
