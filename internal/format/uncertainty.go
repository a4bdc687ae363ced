package format

import "math"

// Uncertainty is by how much a value can be off, given its bounds: the greater distance to one of them, and its sign, which is − or + if it can only be less or only
// more, and otherwise ±. It is rounded up to two significant digits, so that no bound becomes narrower. The sign is empty if the value is exact.
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
		sign = "±"
	}
	return sign, roundedUp(max(less, more))
}

// roundedUp rounds a positive number up to two significant digits. What floating-point arithmetic adds does not count.
func roundedUp(x float64) float64 {
	scale := math.Pow10(1 - int(math.Floor(math.Log10(x))))
	return math.Ceil(x*scale-1e-6) / scale
}
