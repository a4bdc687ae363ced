package v1alpha1

import "time"

// Defaults of optional fields that exclude others: as defaults in the CRD they would prevent setting the others.
const (
	// DefaultValueBytes is the size of {value} if values sets neither bytes nor minBytes and maxBytes.
	DefaultValueBytes = 32

	// DefaultSteadyFor is how long the throughput must have been steady if a trigger sets neither steadyFor nor after.
	DefaultSteadyFor = 10 * time.Second
)
