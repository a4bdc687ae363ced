package state

import (
	"fmt"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/record/merged"
)

// TTL converts spec.ttlSecondsAfterFinished; nil means that the object is kept.
func TTL(seconds *int32) *time.Duration {
	if seconds == nil {
		return nil
	}
	return new(time.Duration(*seconds) * time.Second)
}

// MaxSkew is the largest difference between clocks, or between the starts of load pods, that does
// not cast doubt on a measurement.
const MaxSkew = 50 * time.Millisecond

// ClockDoubts returns the doubts that the clocks of the load pods cast on a measurement.
func ClockDoubts(series *merged.Series) []impact.Doubt {
	var doubts []impact.Doubt
	if u := series.ClockUncertainty; u > MaxSkew {
		doubts = append(doubts, impact.Doubt{
			Reason: "ClockUncertainty",
			Message: fmt.Sprintf("the clocks of the load pods are known to within %s only (limit %s)",
				format.Duration(u), format.Duration(MaxSkew)),
		})
	}
	if spread := series.ClockSpread; spread > MaxSkew {
		doubts = append(doubts, impact.Doubt{Reason: "ClockDrift", Message: fmt.Sprintf(
			"the clocks of the load pods ran apart by %s (limit %s): rates and dips of seconds are "+
				"blurred by as much", format.Duration(spread), format.Duration(MaxSkew))})
	}
	return doubts
}

// InjectedAfter returns the time of a fault's injection since the start of the load: as it was read
// from the clock of the run, or else the difference of the two instants on the wall clock.
func InjectedAfter(status *v1alpha1.RedisFaultStatus, start time.Time) time.Duration {
	if status.InjectedOffset != nil {
		return status.InjectedOffset.Duration
	}
	return status.InjectedAt.Sub(start)
}
