package v1alpha1_test

import (
	"math"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestDecimalOf(t *testing.T) {
	for x, want := range map[float64]v1alpha1.Decimal{
		0: "0", math.Copysign(0, -1): "0", 1: "1", 1.00035: "1.00035", 1960.23456: "1960.235",
		123456789.4321: "123456789.432",
		0.0016133333:   "0.00161333", 1e-9 / 3: "0.000000000333333", 1e-30: "0", -0.5: "-0.5", 1 - 1e-11: "1",
		math.Inf(1): "", math.Inf(-1): "", math.MaxFloat64: "", -1e24: "", 9.9e23: "990000000000000000000000",
	} {
		if got := v1alpha1.DecimalOf(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
	if got := v1alpha1.DecimalOf(math.NaN()); got != "" {
		t.Errorf("no number is %q", got)
	}
}

func TestMicroseconds(t *testing.T) {
	for d, want := range map[time.Duration]v1alpha1.Microseconds{
		0:               0,
		499:             0,
		500:             1,
		-1500:           -2,
		time.Second:     1_000_000,
		168 * time.Hour: 604_800_000_000,
	} {
		if got := v1alpha1.MicrosecondsOf(d); got != want {
			t.Errorf("%s is %d us, want %d", d, got, want)
		}
	}
	if got := v1alpha1.Microseconds(1_500_000).Duration(); got != 1500*time.Millisecond {
		t.Errorf("1500000 us are %s, want 1.5s", got)
	}
}
