package v1alpha1

import "time"

// Defaults of optional fields that exclude others: as defaults in the CRD they would prevent setting the others.
const (
	// DefaultValueBytes is the size of {value} if values sets neither bytes nor minBytes and maxBytes.
	DefaultValueBytes = 32

	// DefaultConnections is the number of connections per load pod, unless the workload is http or cacheAside: then there are as many as users need, at
	// most MaxConnections.
	DefaultConnections = 50
	MaxConnections     = 10_000

	// DefaultRequestTimeout is how long a reply of Redis may take, and DefaultRemoteTimeout one of the API or database of http and cacheAside.
	DefaultRequestTimeout = time.Second
	DefaultRemoteTimeout  = 30 * time.Second

	// DefaultSteadyFor is how long the throughput must have been steady if a trigger sets neither steadyFor nor after.
	DefaultSteadyFor = 10 * time.Second
)
