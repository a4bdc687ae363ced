// Package format formats figures as human-readable text, with few digits and a suitable unit. The
// text is not parsed again.
package format

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration writes d with three significant digits and one unit below 10 s (31.4us, 0.412ms, 4.12s),
// then to 10 ms, and to a tenth of a second from a minute on (2m14.3s). Units are ASCII and
// time.ParseDuration reads the text back. Microseconds below 100us, so that a Redis latency reads
// as milliseconds, and milliseconds below a second.
func Duration(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 { // has no positive counterpart
			d++
		}
		return "-" + Duration(-d)
	}
	// Rounded first: a value that rounds up into the next unit is written in that one.
	switch d = roundSignificant(d, 3); {
	case d == 0:
		return "0s"
	case d < 100*time.Microsecond:
		return shortest(float64(d)/float64(time.Microsecond)) + "us"
	case d < time.Second:
		return shortest(float64(d)/float64(time.Millisecond)) + "ms"
	case d < time.Minute:
		return shortest(float64(d)/float64(time.Second)) + "s" // not d.Seconds(), which adds two floats
	}
	return long(d)
}

// roundSignificant rounds d to the given number of significant digits below 10 s, then to 10 ms,
// and to a tenth of a second from a minute on.
func roundSignificant(d time.Duration, digits int) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(100 * time.Millisecond)
	// outages are measured to some milliseconds, which fewer digits would hide
	case d >= 10*time.Second:
		return d.Round(10 * time.Millisecond)
	}
	step, limit := time.Duration(1), time.Duration(math.Pow10(digits))
	for d/step >= limit {
		step *= 10
	}
	return d.Round(step)
}

// long writes a minute or more like time.Duration, without trailing zero units.
func long(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Plural writes a number with its noun: 1 run, 2 runs.
func Plural(n int, noun string) string {
	text := strconv.Itoa(n) + " " + noun
	if n != 1 {
		text += "s"
	}
	return text
}

// Share writes x, where 1 is the whole, as a percentage: one decimal (99.2%), and more if needed to
// distinguish a share near 0 or 1 from 0% and 100% (0.012%, 99.96%): 1 error in a million requests
// is not 0%. Empty if x is NaN or infinite.
func Share(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	percent := 100 * x
	decimals := 1
	// The distance to 0 and to 100 keeps two significant digits; 10 decimals distinguish all counts up
	// to 1e12.
	near := min(math.Abs(percent), math.Abs(100-percent))
	if near > 0 {
		decimals = min(10, max(1, 1-int(math.Floor(math.Log10(near)))))
	}
	return fixed(percent, decimals) + "%"
}

// Change writes a relative change with its sign: +12.5%. Empty if x is NaN or infinite.
func Change(x float64) string {
	if text := Share(x); x > 0 && text != "" {
		return "+" + text
	}
	return Share(x)
}

// Rate writes a number per second: one decimal from 10 on (3012.4), three significant digits below
// (0.123). Empty if x is NaN or infinite.
func Rate(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	decimals := 1
	if a := math.Abs(x); a > 0 && a < 10 {
		decimals = min(9, 2-int(math.Floor(math.Log10(a))))
	}
	return fixed(x, decimals)
}

// Bytes writes n as a Kubernetes quantity with the largest binary unit in which it is at least 10
// (1747Mi, 12.3Mi, 4096).
func Bytes(n int64) string {
	units := [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	value, unit := float64(n), 0
	for math.Abs(value) >= 10*1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	decimals := 0
	if unit > 0 && math.Abs(value) < 100 {
		decimals = 1
	}
	return fixed(value, decimals) + units[unit]
}

// Millicores writes a number of CPU cores as a Kubernetes quantity in thousandths (930m, 1253m).
// Empty if x is NaN or infinite.
func Millicores(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return fixed(1000*x, 0) + "m"
}

// fixed writes x with at most the given number of decimals, without trailing zeros.
func fixed(x float64, decimals int) string {
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// shortest writes x with the fewest digits that represent it exactly.
func shortest(x float64) string {
	return strconv.FormatFloat(x, 'f', -1, 64)
}
