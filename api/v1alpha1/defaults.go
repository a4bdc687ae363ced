package v1alpha1

import "time"

// Defaults of optional members that exclude others: as defaults of the CRD they would keep those others from being set.
const (
	// DefaultValueBytes is the size of {value} where values sets neither bytes nor minBytes and maxBytes.
	DefaultValueBytes = 32

	// DefaultSteadyFor is how long the throughput must have been steady where a trigger sets neither steadyFor nor after.
	DefaultSteadyFor = 10 * time.Second
)
