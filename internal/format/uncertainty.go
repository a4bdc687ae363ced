package format

import (
	"math"
	"time"
)

// PlusMinus is the sign of what a value can be off, or a margin has, on both sides.
const PlusMinus = "±"

// Uncertainty is by how much a value can be off, given its bounds: the greater distance to one of
// them, and its sign, which is − or + if it can only be less or only more, and otherwise ±. It is
// rounded up to two significant digits, so that no bound becomes narrower. The sign is empty if the
// value is exact.
func Uncertainty(value, atLeast, atMost float64) (sign string, off float64) {
	less, more := max(0, value-atLeast), max(0, atMost-value)
	switch {
	case less == 0 && more == 0:
		return "", 0
	case more == 0:
		sign = "−"
	case less == 0:
		sign = "+"
	default:
		sign = PlusMinus
	}
	return sign, roundedUp(max(less, more))
}

// roundedUp rounds a positive number up to two significant digits. What floating-point arithmetic
// adds does not count.
func roundedUp(x float64) float64 {
	scale := math.Pow10(1 - int(math.Floor(math.Log10(x))))
	return math.Ceil(x*scale-1e-6) / scale
}

// IsUncertain reports whether a value is better shown as the range of its bounds: it can be off by
// more than a third of itself. 0 is none of them: it says that nothing was seen.
func IsUncertain(value, atLeast, atMost float64) bool {
	return value > 0 && max(value-atLeast, atMost-value) > value/3
}

// Span writes a duration, or, if it is uncertain, the range of its bounds, such as 1.28s-7.58s.
func Span(value, atLeast, atMost time.Duration) string {
	if !IsUncertain(value.Seconds(), atLeast.Seconds(), atMost.Seconds()) {
		return Duration(value)
	}
	return Duration(atLeast) + "-" + Duration(atMost)
}
