package state

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// Truncate cuts a text to the size of a status field, at the end of a character.
func Truncate(text string, bytes int) string {
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

// ClockDoubts returns the doubt that a change of the operator's clock casts on a measurement, if it was more than MaxSkew.
func ClockDoubts(shift time.Duration) []impact.Doubt {
	if shift.Abs() <= MaxSkew {
		return nil
	}
	return []impact.Doubt{{Reason: "ClockShift",
		Message: fmt.Sprintf("the operator's clock moved by %s against the load pods' during the run", format.Duration(shift))}}
}
