package v1alpha1

import "time"

// Duration stands in for the type of a measured duration.
type Duration struct{ time.Duration }

// DurationOf stands in for its constructor.
func DurationOf(d time.Duration) Duration { return Duration{d} }
