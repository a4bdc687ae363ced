package v1alpha1

import (
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a duration to the microsecond. In an object it is text that a person, time.ParseDuration and CEL's
// duration() read: 74us, 5.003ms, 62.041286s, -1.2s. The largest unit is the second. It is a struct as metav1.Duration
// is one: Kubernetes' conversions do not ask a number for its JSON.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]{1,6})?(us|ms|s)$`
type Duration struct {
	// +required
	time.Duration `json:"-"` // MarshalJSON writes it
}

// DurationOf rounds a duration to microseconds.
func DurationOf(d time.Duration) Duration {
	return Duration{d.Round(time.Microsecond)}
}

// InSeconds is the duration as a decimal number of seconds, exactly.
func (d Duration) InSeconds() Decimal {
	return Decimal(d.in(time.Second))
}

// in is the duration as a decimal number of a unit, to the microsecond.
func (d Duration) in(unit time.Duration) string {
	sign, us, per := "", uint64(d.Microseconds()), uint64(unit/time.Microsecond)
	if d.Microseconds() < 0 {
		sign, us = "-", -us
	}
	digits := strconv.FormatUint(per+us%per, 10)[1:] // with leading zeros
	return sign + strings.TrimSuffix(strconv.FormatUint(us/per, 10)+"."+strings.TrimRight(digits, "0"), ".")
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	text := d.in(time.Second) + "s"
	switch size := d.Abs(); {
	case size < time.Microsecond, size >= time.Second:
	case size >= time.Millisecond:
		text = d.in(time.Millisecond) + "ms"
	default:
		text = d.in(time.Microsecond) + "us"
	}
	return []byte(`"` + text + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var read metav1.Duration
	if err := read.UnmarshalJSON(text); err != nil {
		return err
	}
	*d = DurationOf(read.Duration)
	return nil
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

// BoundedDuration is a duration and its bounds.
type BoundedDuration struct {
	// value is the best estimate.
	// +required
	Value Duration `json:"value"`

	// atLeast is the lower bound.
	// +required
	AtLeast Duration `json:"atLeast"`

	// atMost is the upper bound.
	// +required
	AtMost Duration `json:"atMost"`
}
