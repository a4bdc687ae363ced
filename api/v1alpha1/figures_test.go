package v1alpha1_test

import (
	"encoding/json"
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

func TestDurationAsText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                        "0s",
		499:                      "0s",
		500:                      "1us",
		-1500:                    "-2us",
		74 * time.Microsecond:    "74us",
		time.Millisecond:         "1ms",
		5_003_000:                "5.003ms",
		-340 * time.Millisecond:  "-340ms",
		999_999_000:              "999.999ms",
		999_999_500:              "1s",
		62_041_286_000:           "62.041286s",
		-1200 * time.Millisecond: "-1.2s",
		168 * time.Hour:          "604800s",
		math.MaxInt64:            "9223372036.854775s",
	} {
		given := v1alpha1.DurationOf(d)
		text, err := json.Marshal(given)
		if err != nil || string(text) != `"`+want+`"` {
			t.Errorf("%d is %s (%v), want %s", d, text, err, want)
		}
		var back v1alpha1.Duration
		if err := json.Unmarshal(text, &back); err != nil || (back.Duration-d).Abs() > time.Microsecond {
			t.Errorf("%s is %s (%v), want %s", text, back, err, d)
		}
	}
	for _, bad := range []string{"5", `"5"`, `""`, `"5 s"`} {
		if err := json.Unmarshal([]byte(bad), new(v1alpha1.Duration)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	if got := v1alpha1.DurationOf(-1050 * time.Millisecond).InSeconds(); got != "-1.05" {
		t.Errorf("in seconds %s", got)
	}
}
