package state

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/result"
)

// Truncate cuts a text to the size of a status field, at the end of a character. It may hold text of a server or of a load pod, with whatever characters.
func Truncate(text string, bytes int) string {
	text = redis.Printable(text, len(text))
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes-3], "") + "..."
}

// TTL converts spec.ttlSecondsAfterFinished; nil means that the object is kept.
func TTL(seconds *int32) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
}

// ErrorCounts converts the numbers of errors by class.
func ErrorCounts(counts []result.ErrorCount) []v1alpha1.ErrorCount {
	var out []v1alpha1.ErrorCount
	for _, c := range counts {
		out = append(out, v1alpha1.ErrorCount{Class: c.Class, Count: int64(min(c.Count, math.MaxInt64))})
	}
	return out
}

// MaxSkew is the largest difference between clocks, or between the starts of load pods, that does not cast doubt on a measurement.
const MaxSkew = 50 * time.Millisecond

// ClockDoubts returns the doubts that the clocks of the load pods cast on a measurement.
func ClockDoubts(series *record.Series) []impact.Doubt {
	var doubts []impact.Doubt
	if u := series.ClockUncertainty; u > MaxSkew {
		doubts = append(doubts, impact.Doubt{Reason: "ClockUncertainty",
			Message: fmt.Sprintf("the clocks of the load pods are known to within %s only (limit %s)", format.Duration(u), format.Duration(MaxSkew))})
	}
	if spread := series.ClockSpread; spread > MaxSkew {
		doubts = append(doubts, impact.Doubt{Reason: "ClockDrift", Message: fmt.Sprintf(
			"the clocks of the load pods ran apart by %s (limit %s): rates and dips of seconds are blurred by as much", format.Duration(spread), format.Duration(MaxSkew))})
	}
	return doubts
}

// InjectedAfter returns the time of a fault's injection since the start of the load: as it was read from the clock of the run, or else the difference
// of the two instants on the wall clock.
func InjectedAfter(status *v1alpha1.RedisFaultStatus, start time.Time) time.Duration {
	if status.InjectedOffset != nil {
		return status.InjectedOffset.Duration()
	}
	return status.InjectedAt.Sub(start)
}
