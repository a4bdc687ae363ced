package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Numbers in a report are those of package format, typeset: a no-break space before the unit, a
// comma between thousands, a true minus.

const (
	nbsp  = "\u00a0"
	minus = "−"
)

// Duration writes a duration, such as 2.16 s or 2 min 14.3 s.
func Duration(d time.Duration) string {
	if d < 0 {
		return minus + Duration(-d)
	}
	text := format.Duration(d)
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.') {
			end++
		}
		unit := end
		for unit < len(text) && text[unit] >= 'a' {
			unit++
		}
		if b.Len() > 0 {
			b.WriteString(nbsp)
		}
		b.WriteString(text[i:end] + nbsp + unitNames[text[end:unit]])
		i = unit
	}
	return b.String()
}

var unitNames = map[string]string{
	"us": "µs",
	"ms": "ms",
	"s":  "s",
	"m":  "min",
	"h":  "h",
}

// Seconds is Duration of a number of seconds.
func Seconds(s result.Seconds) string {
	return Duration(time.Duration(s))
}

// Since writes a duration with its sign, such as +2.16 s; 0 s without.
func Since(d time.Duration) string {
	if d > 0 {
		return "+" + Duration(d)
	}
	return Duration(d)
}

// Count writes a whole number, such as 4,259.
func Count[N int | int64 | uint64](n N) string {
	return thousands(strconv.FormatInt(int64(n), 10))
}

// Rate writes a number per second, such as 1,968.6/s.
func Rate(x float64) string {
	return number(format.Rate(x)) + "/s"
}

// Share writes a share, such as 94.1 %.
func Share(x float64) string {
	return strings.Replace(number(format.Share(x)), "%", nbsp+"%", 1)
}

// Bytes writes a number of bytes, such as 12.3 MiB.
func Bytes(n int64) string {
	text := format.Bytes(n)
	digits := strings.TrimRight(text, "KMGTPi")
	return number(digits) + nbsp + text[len(digits):] + "B"
}

// Cores writes CPU that is in thousandths of a core, such as 0.19 cores.
func Cores(millicores int64) string {
	decimals := 2
	if millicores < 100 && millicores > -100 {
		decimals = 3
	}
	return number(strconv.FormatFloat(float64(millicores)/1000, 'f', decimals, 64)) + nbsp + "cores"
}

// InUnit writes a number in a unit.
func InUnit(unit result.Unit, x float64) string {
	switch unit {
	case result.UnitSeconds:
		return Duration(time.Duration(math.Round(x * float64(time.Second))))
	case result.UnitShare:
		return Share(x)
	case result.UnitPerSecond:
		return Rate(x)
	case result.UnitCores:
		return Cores(int64(math.Round(1000 * x)))
	case result.UnitBytes:
		return Bytes(int64(x))
	}
	return number(strconv.FormatFloat(x, 'f', -1, 64))
}

// number gives thousands a comma and a negative number a true minus.
func number(text string) string {
	rest, negative := strings.CutPrefix(text, "-")
	if negative {
		return minus + thousands(rest)
	}
	return thousands(text)
}

func thousands(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	for i := end - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Text is the value of a figure: a number, > and the least that it is, or both bounds, also where
// the number is too uncertain; "not measured" without any.
func (f *Figure) Text() string {
	switch {
	case f.Value != nil && !f.uncertain():
		return InUnit(f.Unit, *f.Value)
	case f.AtLeast != nil && f.AtMost != nil:
		return InUnit(f.Unit, *f.AtLeast) + "–" + InUnit(f.Unit, *f.AtMost)
	case f.AtLeast != nil:
		return ">" + nbsp + InUnit(f.Unit, *f.AtLeast)
	}
	return "not measured"
}

// uncertain reports whether the bounds tell more than the value.
func (f *Figure) uncertain() bool {
	return f.Value != nil && f.AtLeast != nil && f.AtMost != nil &&
		format.IsUncertain(*f.Value, *f.AtLeast, *f.AtMost)
}

// Beside is what stands beside the value: the qualifier, or the greater distance to one of the
// bounds.
func (f *Figure) Beside() string {
	if f.Qualifier != "" || f.Value == nil || f.AtLeast == nil || f.AtMost == nil || f.uncertain() {
		return f.Qualifier
	}
	return Off(f.Unit, *f.Value, *f.AtLeast, *f.AtMost)
}

// String is the value of a figure with what stands beside it, such as 2.16 s ± 30 ms, or 3 of
// 5,000.
func (f *Figure) String() string {
	return strings.TrimSpace(f.Text() + " " + f.Beside())
}

// Margin is the width of a range on both sides of a value, such as ±5 %; "" without one.
func Margin(width string) string {
	if width == "" {
		return ""
	}
	return format.PlusMinus + width
}

// Off is by how much a value can be off, such as ± 30 ms; "" = it is exact.
func Off(unit result.Unit, value, atLeast, atMost float64) string {
	sign, off := format.Uncertainty(value, atLeast, atMost)
	if sign == "" {
		return ""
	}
	return sign + nbsp + InUnit(unit, off)
}

// Change writes a relative change with its sign, such as +12.5 %.
func Change(x float64) string {
	if x > 0 {
		return "+" + Share(x)
	}
	return Share(x)
}
