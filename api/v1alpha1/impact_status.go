package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Impact is the effect of a fault on the clients. docs/measuring.md defines every figure.
type Impact struct {
	// baselineTPS is the median of the 1 s success rates before the injection, per second.
	// +optional
	BaselineTPS Decimal `json:"baselineTPS,omitempty"`
	// minTPS is the lowest success rate in any 1 s window until recovery, per second.
	// +optional
	MinTPS Decimal `json:"minTPS,omitempty"`
	// tpsDip is 1 - minTPS/baselineTPS, from 0 to 1: of all requests. The column DIP and maxTPSDip use that of reads or writes where it is deeper.
	// +optional
	TPSDip Decimal `json:"tpsDip,omitempty"`
	// timeToImpact is the time from the injection to the first error or the start of the first gap.
	// +optional
	TimeToImpact *BoundedDuration `json:"timeToImpact,omitempty"`
	// outage is the longest period without a success: of the load, of its reads or of its writes, whichever was worst.
	// +optional
	Outage *Outage `json:"outage,omitempty"`
	// totalOutage is the sum of all periods without a success until recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalOutage Microseconds `json:"totalOutage"`
	// shardOutage is the longest period without a success at one shard of a cluster: the aggregate hides a shard that is down. Not set if there is one
	// shard, or if no request waited in vain at any.
	// +optional
	ShardOutage *BoundedDuration `json:"shardOutage,omitempty"`
	// shard is the number of that shard in the load test's status.summary.shards.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Shard *int32 `json:"shard,omitempty"`
	// serverOutage is the outage measured by the probe, which dials new connections.
	// +optional
	ServerOutage *BoundedDuration `json:"serverOutage,omitempty"`
	// errorWindow is the time from the first to the last error until recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ErrorWindow Microseconds `json:"errorWindow"`
	// recoveryTime is the time from the injection to sustained recovery; not set if there was none.
	// +optional
	RecoveryTime *BoundedDuration `json:"recoveryTime,omitempty"`
	// recovered is whether the load recovered within recoveryDeadline.
	// +optional
	Recovered bool `json:"recovered"`
	// recoveredThroughput is the throughput after recovery as a share of the baseline; 1 is the full baseline.
	// +optional
	RecoveredThroughput Decimal `json:"recoveredThroughput,omitempty"`
	// lostRequests is the area of the dip: the number of successes that are missing compared with the baseline.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostRequests int64 `json:"lostRequests"`
	// lostWrites is the number of acknowledged ledger writes that were lost because of this fault: a lower bound of all lost writes. Not set until the
	// load has ended and its ledger was read back, if the test does not verify writes, and if Redis may have evicted some of them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`
	// lostWritesAtLeast is the lower bound of the lost writes, if lostWrites is not known exactly because Redis may have evicted ledger keys.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtLeast *int64 `json:"lostWritesAtLeast,omitempty"`
	// lostWritesAtMost is the upper bound of the lost writes. Set together with lostWritesAtLeast.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtMost *int64 `json:"lostWritesAtMost,omitempty"`
	// firstLost is the earliest time at which the first of them was acknowledged, in microseconds from the injection; negative before it.
	// +optional
	FirstLost *Microseconds `json:"firstLost,omitempty"`
	// lastLost is the latest time at which the last of them was acknowledged, in microseconds from the injection.
	// +optional
	LastLost *Microseconds `json:"lastLost,omitempty"`
	// sawErrors is whether a client received an error between firstLost and lastLost; not set if nothing was lost.
	// +optional
	SawErrors *bool `json:"sawErrors,omitempty"`
	// errors is the number of failed, unknown and dropped requests until recovery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// errorsByClass counts failed and unknown requests by class of error.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=32
	ErrorsByClass []ErrorCount `json:"errorsByClass,omitempty"`
	// reads is the effect on the requests that only read; not set if the load has none.
	// +optional
	Reads *RequestsImpact `json:"reads,omitempty"`
	// writes is the effect on all other requests; not set if the load has none.
	// +optional
	Writes *RequestsImpact `json:"writes,omitempty"`
	// operations are the effects on each operation.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Operations []OperationImpact `json:"operations,omitempty"`
	// latencyP99 before, during and after the fault.
	// +optional
	LatencyP99 *LatencyAround `json:"latencyP99,omitempty"`
	// whileActive is the load while a fault that lasts was there: what a setting that is held costs. Not set for other faults.
	// +optional
	WhileActive *WhileActive `json:"whileActive,omitempty"`
	// phases divide the recovery: each ends with the event that it is named after, and their sum is recoveryTime. Unexplained is time that neither
	// cluster nor servers account for. Empty if there was no recovery, or nothing to recover from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []Phase `json:"phases,omitempty"`
	// doubts are reasons why the figures may not be reliable; the verdict is then Inconclusive.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	Doubts []Doubt `json:"doubts,omitempty"`
}

// RequestKind tells requests that only read from the others.
// +kubebuilder:validation:Enum=Reads;Writes
type RequestKind string

// The kinds of requests.
const (
	// Reads are the requests of operations that only read.
	Reads RequestKind = "Reads"
	// Writes are all other requests.
	Writes RequestKind = "Writes"
)

// Outage is the longest period without a success.
type Outage struct {
	BoundedDuration `json:",inline"`

	// of names the requests that had no success, if the others had. Not set if no request had.
	// Reads: those of operations that only read.
	// Writes: all others.
	// +optional
	Of RequestKind `json:"of,omitempty"`
}

// OperationImpact is the effect of a fault on one operation.
type OperationImpact struct {
	// name of the operation.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	RequestsImpact `json:",inline"`
}

// RequestsImpact is the effect of a fault on a part of the requests.
type RequestsImpact struct {
	// outage is the longest period without a success of these requests in which one waited in vain.
	// +optional
	Outage *BoundedDuration `json:"outage,omitempty"`
	// firstError is the time from the injection to the first error in excess of the baseline's, to the interval, in microseconds; not set if there was none.
	// +optional
	FirstError *Microseconds `json:"firstError,omitempty"`
	// lastError is the time from the injection to the last such error until recovery, to the interval, in microseconds.
	// +optional
	LastError *Microseconds `json:"lastError,omitempty"`
	// errors is the number of failed, unknown and dropped requests until recovery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// tpsDip is the depth of the dip of their throughput, as a share of their baseline, from 0 to 1. Not set if fewer than 100 succeeded in the baseline or
	// fewer than 25 a second, where random arrivals look like a dip; nor if the turn of an operation of a benchmark began or ended meanwhile.
	// +optional
	TPSDip Decimal `json:"tpsDip,omitempty"`
}

// WhileActive is the load from the instant at which a fault was complete on all targets to its revert, and its changes against the baseline. A change
// of throughput or latency is a share of the baseline's: -0.25 is a quarter less. It is not set if the baseline has none.
type WhileActive struct {
	// length of the time that the figures cover, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Length Microseconds `json:"length"`
	// throughput is the mean of successes per second.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`
	// change of the throughput, as a share of the baseline's.
	// +optional
	Change Decimal `json:"change,omitempty"`
	// latencyP50 is the median latency, in microseconds; not set without a success.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LatencyP50 *Microseconds `json:"latencyP50,omitempty"`
	// latencyP50Change is the change of latencyP50, as a share of the baseline's.
	// +optional
	LatencyP50Change Decimal `json:"latencyP50Change,omitempty"`
	// latencyP99 is the 99th percentile of latency, in microseconds; not set without a success.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LatencyP99 *Microseconds `json:"latencyP99,omitempty"`
	// latencyP99Change is the change of latencyP99, as a share of the baseline's.
	// +optional
	LatencyP99Change Decimal `json:"latencyP99Change,omitempty"`
	// errorRate is failed, unknown and dropped requests as a share of all, from 0 to 1.
	// +optional
	ErrorRate Decimal `json:"errorRate,omitempty"`
	// errorRateChange is errorRate less that of the baseline, from -1 to 1.
	// +optional
	ErrorRateChange Decimal `json:"errorRateChange,omitempty"`
}

// PhaseSource is the source of the event that ended a phase.
// +kubebuilder:validation:Enum=Kubernetes;Redis;Client
type PhaseSource string

// The sources.
const (
	// PhaseKubernetes is the API server: pods, events, volumes.
	PhaseKubernetes PhaseSource = "Kubernetes"
	// PhaseRedis is a Redis server or a sentinel.
	PhaseRedis PhaseSource = "Redis"
	// PhaseClient is the record of the load.
	PhaseClient PhaseSource = "Client"
)

// Phase is a part of a recovery.
type Phase struct {
	// name of the event that ended the phase.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// source of that event.
	// Kubernetes: the API server.
	// Redis: a Redis server or a sentinel.
	// Client: the record of the load.
	// +optional
	Source PhaseSource `json:"source,omitempty"`
	// at is when the phase ended, on the common clock.
	// +optional
	At metav1.MicroTime `json:"at,omitzero"`
	// duration of the phase. Kubernetes' timestamps are in whole seconds, which makes phases that begin or end with one uncertain.
	// +optional
	Duration *BoundedDuration `json:"duration,omitempty"`
}

// LatencyAround is one quantile around a fault.
type LatencyAround struct {
	// before the injection: over the baseline, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Before *Microseconds `json:"before,omitempty"`
	// during: from the injection to recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	During *Microseconds `json:"during,omitempty"`
	// after recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	After *Microseconds `json:"after,omitempty"`
}

// Doubt is a reason why figures may not be reliable.
type Doubt struct {
	// reason is one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message with the figures.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
