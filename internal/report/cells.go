package report

import (
	"strings"
	"time"

	"github.com/redquake/redquake/internal/result"
)

// CountCell is a number of something.
func CountCell(n int64) Cell {
	return Cell{
		Text:  Count(n),
		Value: new(float64(n)),
		Unit:  result.UnitCount,
	}
}

// RateCell is a number per second in a column that says so.
func RateCell(x float64) Cell {
	return Cell{
		Text:  strings.TrimSuffix(Rate(x), "/s"),
		Value: new(x),
		Unit:  result.UnitPerSecond,
	}
}

// DurationCell is a duration.
func DurationCell(d time.Duration) Cell {
	return Cell{
		Text:  Duration(d),
		Value: new(d.Seconds()),
		Unit:  result.UnitSeconds,
	}
}

// SinceCell is a duration since an instant, with its sign.
func SinceCell(d time.Duration) Cell {
	return Cell{
		Text:  Since(d),
		Value: new(d.Seconds()),
		Unit:  result.UnitSeconds,
	}
}
