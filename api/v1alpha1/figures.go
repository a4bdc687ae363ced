package v1alpha1

import (
	"math"
	"strconv"
	"time"
)

// Microseconds is a duration in microseconds.
type Microseconds int64

// MicrosecondsOf rounds a duration to microseconds.
func MicrosecondsOf(d time.Duration) Microseconds {
	return Microseconds(d.Round(time.Microsecond) / time.Microsecond)
}

// Duration converts it to a time.Duration.
func (m Microseconds) Duration() time.Duration {
	return time.Duration(m) * time.Microsecond
}

// Decimal is a decimal number as text, such as 1996.812: custom resources have no portable
// floating-point numbers. The unit is given by each field.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]+)?$`
type Decimal string

// decimalDigits is how many significant digits a Decimal has.
const decimalDigits = 6

// DecimalOf formats a number with six significant digits and at least three decimals. It is empty
// for NaN, infinity, and what is too large for a Decimal.
func DecimalOf(x float64) Decimal {
	if math.IsNaN(x) || math.Abs(x) >= 1e24 {
		return ""
	}
	decimals := 3
	if a := math.Abs(x); a > 0 {
		decimals = min(15, max(decimals, decimalDigits-1-int(math.Floor(math.Log10(a)))))
	}
	scale := math.Pow10(decimals)
	text := strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
	if text == "-0" {
		return "0"
	}
	return Decimal(text)
}

// Number is the decimal's value; false if it is not set.
func (d Decimal) Number() (float64, bool) {
	x, err := strconv.ParseFloat(string(d), 64)
	return x, err == nil
}

// BoundedDuration is a duration and its bounds. All three are in microseconds.
type BoundedDuration struct {
	// value is the best estimate, in microseconds.
	// +required
	// +kubebuilder:validation:Minimum=0
	Value Microseconds `json:"value"`

	// atLeast is the lower bound, in microseconds.
	// +required
	// +kubebuilder:validation:Minimum=0
	AtLeast Microseconds `json:"atLeast"`

	// atMost is the upper bound, in microseconds.
	// +required
	// +kubebuilder:validation:Minimum=0
	AtMost Microseconds `json:"atMost"`
}
