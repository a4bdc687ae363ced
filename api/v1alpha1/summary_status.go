package v1alpha1

// LoadSummary is the figures over the measured time, without ramp-up and warm-up.
type LoadSummary struct {
	// requests that had an outcome, or were dropped.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Requests int64 `json:"requests"`

	// errors is the number of failed, unknown and dropped requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// failed is the number of requests that certainly had no effect: an error reply, or no connection.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failed int64 `json:"failed"`

	// unknown is the number of requests that may have had an effect: sent, then timed out or the
	// connection broke.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unknown int64 `json:"unknown"`

	// dropped is the number of requests that were not sent because client.requestTimeout had passed
	// (open loop).
	// +optional
	// +kubebuilder:validation:Minimum=0
	Dropped int64 `json:"dropped"`

	// errorRate is errors as a share of requests, from 0 to 1.
	// +optional
	ErrorRate Decimal `json:"errorRate,omitempty"`

	// errorsByClass counts failed and unknown requests by class of error.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=32
	ErrorsByClass []ErrorCount `json:"errorsByClass,omitempty"`

	// throughput is the mean of successes per second, without drained.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`

	// drained is the number of requests that succeeded after the planned end of the load: they count
	// in requests and latency, and are no throughput.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Drained int64 `json:"drained"`

	// redirected is how often a node of a cluster answered MOVED or ASK, and the request was sent again
	// to another one. Not counted with the driver of a library.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Redirected int64 `json:"redirected,omitempty"`

	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`

	// maxLag is the longest time by which a request was sent after its intended arrival (open loop).
	// +optional
	MaxLag *Duration `json:"maxLag,omitempty"`

	// outage is the longest recorded period without a success, of the load, a part of it or the probe;
	// not set if there was none.
	// +optional
	Outage *Outage `json:"outage,omitempty"`

	// lostWrites is the number of acknowledged ledger writes that were not found after the load: a
	// lower bound of all lost writes. Not set if nothing was verified, or if only its bounds are
	// known: see verification.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`

	// operations are the figures of each operation of the workload.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Operations []OperationSummary `json:"operations,omitempty"`

	// shards are the figures of each shard if there are several; at most the first 64.
	// +optional
	// +listType=map
	// +listMapKey=shard
	// +kubebuilder:validation:MaxItems=64
	Shards []ShardSummary `json:"shards,omitempty"`

	// workload are figures specific to the workload: requests allowed and denied, hits and misses,
	// status classes, and figures derived from them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Workload []WorkloadFigure `json:"workload,omitempty"`
}

// ShardSummary is the figures of one shard of a cluster.
type ShardSummary struct {
	// shard is its number, from 0, in the order of the slots that the shards served when the load
	// began.
	// +required
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`

	// throughput is the mean of successes per second.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`

	// errors are failed and unknown requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`

	// longestGap is the longest logged period without a success.
	// +optional
	LongestGap *Duration `json:"longestGap,omitempty"`
}

// WorkloadFigure is a figure specific to the workload.
type WorkloadFigure struct {
	// name of the figure, such as hitRatio.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// value in the unit.
	// +required
	Value Decimal `json:"value,omitempty"`

	// unit of the value.
	// Count: a number, of requests for example.
	// Share: from 0 to 1.
	// Seconds: a duration.
	// PerSecond: a rate.
	// +required
	Unit Unit `json:"unit,omitempty"`
}

// ErrorCount is the number of errors of one class.
type ErrorCount struct {
	// class of the error.
	// +required
	// +kubebuilder:validation:MaxLength=32
	Class string `json:"class,omitempty"`
	// count of requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count int64 `json:"count"`
}

// OperationSummary is the figures of one operation.
type OperationSummary struct {
	// name of the operation.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// requests that had an outcome, or were dropped.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Requests int64 `json:"requests"`
	// errors is the number of failed, unknown and dropped requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// misses is the number of successes of a read that were answered by null: what was to be read does
	// not exist.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Misses int64 `json:"misses,omitempty"`
	// throughput is the mean of successes per second: over the measured time, or, for a test of a
	// benchmark in sequence, over its part of that.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`
	// latency of successes.
	// +optional
	Latency *LatencySummary `json:"latency,omitempty"`
}
