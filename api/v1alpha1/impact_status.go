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
	// dip is the deepest dip of the throughput: the figure that the column DIP, maxTPSDip, reports,
	// metrics and comparisons show.
	// +optional
	Dip *Dip `json:"dip,omitempty"`
	// dips are those of all requests, and of each kind.
	// +optional
	Dips *Dips `json:"dips,omitempty"`
	// timeToImpact is the time from the injection to the first error or the start of the first gap.
	// +optional
	TimeToImpact *BoundedDuration `json:"timeToImpact,omitempty"`
	// outage is the longest period without a success, of whoever needs Redis: the longest of outages.
	// It is the figure that the column OUTAGE, maxOutage, stopIf, reports, metrics and comparisons
	// show.
	// +optional
	Outage *Outage `json:"outage,omitempty"`
	// outages are those of the load, of its parts, and of the probe.
	// +optional
	Outages *Outages `json:"outages,omitempty"`
	// totalOutage is the sum of all periods without a success of the load until recovery.
	// +optional
	TotalOutage *BoundedDuration `json:"totalOutage,omitempty"`
	// errorWindow is the time from the first to the last error until recovery.
	// +optional
	ErrorWindow Duration `json:"errorWindow"`
	// recoveryTime is the time from the injection to sustained recovery; not set if there was none.
	// +optional
	RecoveryTime *BoundedDuration `json:"recoveryTime,omitempty"`
	// recovered is whether the load recovered within recoveryDeadline.
	// +optional
	Recovered bool `json:"recovered"`
	// recoveredThroughput is the throughput after recovery as a share of the baseline; 1 is the full
	// baseline.
	// +optional
	RecoveredThroughput Decimal `json:"recoveredThroughput,omitempty"`
	// lostRequests is the area of the dip: the number of successes that are missing compared with the
	// baseline.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostRequests int64 `json:"lostRequests"`
	// lostWrites is the number of acknowledged ledger writes that were lost because of this fault: a
	// lower bound of all lost writes. Not set until the load has ended and its ledger was read back,
	// if the test does not verify writes, and if Redis may have evicted some of them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`
	// lostWritesAtLeast is the lower bound of the lost writes, if lostWrites is not known exactly
	// because Redis may have evicted ledger keys.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtLeast *int64 `json:"lostWritesAtLeast,omitempty"`
	// lostWritesAtMost is the upper bound of the lost writes. Set together with lostWritesAtLeast.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWritesAtMost *int64 `json:"lostWritesAtMost,omitempty"`
	// firstLost is the earliest time at which the first of them was acknowledged, from
	// the injection; negative before it.
	// +optional
	FirstLost *Duration `json:"firstLost,omitempty"`
	// lastLost is the latest time at which the last of them was acknowledged, from the
	// injection.
	// +optional
	LastLost *Duration `json:"lastLost,omitempty"`
	// sawErrors is whether a client received an error between firstLost and lastLost; not set if
	// nothing was lost.
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
	// reads are the failures of the requests that only read; not set if the load has none.
	// +optional
	Reads *Failures `json:"reads,omitempty"`
	// writes are the failures of all other requests; not set if the load has none.
	// +optional
	Writes *Failures `json:"writes,omitempty"`
	// operations are the effects on each operation.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Operations []OperationImpact `json:"operations,omitempty"`
	// latencyP99 before, during and after the fault.
	// +optional
	LatencyP99 *LatencyAround `json:"latencyP99,omitempty"`
	// whileActive is the load while a fault that lasts was there: what a setting that is held costs.
	// Not set for other faults.
	// +optional
	WhileActive *WhileActive `json:"whileActive,omitempty"`
	// phases divide the recovery: each ends with the event that it is named after, and their sum is
	// recoveryTime. Unexplained is time that neither cluster nor servers account for. Empty if there
	// was no recovery, or nothing to recover from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []Phase `json:"phases,omitempty"`
	// doubts are reasons why the figures may not be reliable; the verdict is then Inconclusive, unless
	// they cannot change it.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	Doubts []Doubt `json:"doubts,omitempty"`
}

// OutageScope is what an outage is of.
// +kubebuilder:validation:Enum=Load;Reads;Writes;Shard;Probe
type OutageScope string

// What an outage is of.
const (
	// OutageOfLoad is an outage of all requests.
	OutageOfLoad OutageScope = "Load"
	// OutageOfReads is an outage of the requests that only read; writes had successes.
	OutageOfReads OutageScope = "Reads"
	// OutageOfWrites is an outage of the requests that write; reads had successes.
	OutageOfWrites OutageScope = "Writes"
	// OutageOfShard is an outage of the requests to one shard; those to others had successes.
	OutageOfShard OutageScope = "Shard"
	// OutageOfProbe is an outage of the probe, which opens new connections; the load had successes.
	OutageOfProbe OutageScope = "Probe"
)

// Outage is the longest period without a success.
type Outage struct {
	BoundedDuration `json:",inline"`

	// of is what had no success. It is a part of the load, or the probe, only where their outage was
	// provably longer than that of the load.
	// Load: all requests.
	// Reads: those of operations that only read.
	// Writes: all others.
	// Shard: those to one shard.
	// Probe: those of the probe, which opens new connections.
	// +optional
	Of OutageScope `json:"of,omitempty"`
	// shard is the number of the shard in the load test's status.summary.shards, if the outage is of a
	// Shard.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Shard *int32 `json:"shard,omitempty"`
}

// Outages are the longest periods without a success, with at least one request outstanding, of the
// load and of its parts. A part is not set if the load has none of it.
type Outages struct {
	// load is that of all requests.
	// +optional
	Load *BoundedDuration `json:"load,omitempty"`
	// reads is that of operations that only read.
	// +optional
	Reads *BoundedDuration `json:"reads,omitempty"`
	// writes is that of all other operations.
	// +optional
	Writes *BoundedDuration `json:"writes,omitempty"`
	// shard is the longest of any shard of a cluster: the others hide a shard that is down.
	// +optional
	Shard *ShardOutage `json:"shard,omitempty"`
	// probe is that of the probe, which opens new connections; in a cluster the longest at any shard.
	// +optional
	Probe *BoundedDuration `json:"probe,omitempty"`
}

// ShardOutage is the outage of a shard.
type ShardOutage struct {
	BoundedDuration `json:",inline"`

	// shard is its number in the load test's status.summary.shards.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Shard int32 `json:"shard"`
}

// DipScope is what a dip is of.
// +kubebuilder:validation:Enum=All;Reads;Writes
type DipScope string

// What a dip is of.
const (
	// DipOfAll is a dip of all requests.
	DipOfAll DipScope = "All"
	// DipOfReads is a dip of the requests that only read.
	DipOfReads DipScope = "Reads"
	// DipOfWrites is a dip of the requests that write.
	DipOfWrites DipScope = "Writes"
)

// Dip is by how much the throughput fell.
type Dip struct {
	// value is 1 less the lowest throughput of any 1 s window until recovery, as a share of the
	// baseline, from 0 to 1.
	// +optional
	Value Decimal `json:"value,omitempty"`
	// of is whose throughput. It is that of reads or writes only where their dip was deeper beyond
	// doubt.
	// All: that of all requests.
	// Reads: that of operations that only read.
	// Writes: that of all others.
	// +optional
	Of DipScope `json:"of,omitempty"`
}

// Dips are the dips of the throughput of all requests, and of each kind. One is not set if the load
// has no such requests, if fewer than 100 of them succeeded in the baseline or fewer than 25 a
// second, where random arrivals look like a dip, nor if the turn of an operation of a benchmark
// began or ended meanwhile.
type Dips struct {
	// all is 1 - minTPS/baselineTPS, from 0 to 1.
	// +optional
	All Decimal `json:"all,omitempty"`
	// reads is that of operations that only read.
	// +optional
	Reads Decimal `json:"reads,omitempty"`
	// writes is that of all other operations.
	// +optional
	Writes Decimal `json:"writes,omitempty"`
}

// OperationImpact is the effect of a fault on one operation.
type OperationImpact struct {
	// name of the operation.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// outage is the longest period without a success of these requests, with at least one outstanding.
	// +optional
	Outage *BoundedDuration `json:"outage,omitempty"`
	// dip of their throughput, as a share of their baseline, from 0 to 1; not set where dips would not
	// be.
	// +optional
	Dip Decimal `json:"dip,omitempty"`

	Failures `json:",inline"`
}

// Failures are those of a part of the requests.
type Failures struct {
	// firstError is the time from the injection to the first error in excess of the baseline's, to the
	// interval; not set if there was none.
	// +optional
	FirstError *Duration `json:"firstError,omitempty"`
	// lastError is the time from the injection to the last such error until recovery, to the interval.
	// +optional
	LastError *Duration `json:"lastError,omitempty"`
	// errors is the number of failed, unknown and dropped requests until recovery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
}

// WhileActive is the load from the instant at which a fault was complete on all targets to its
// revert, and its changes against the baseline. A change of throughput or latency is a share of the
// baseline's: -0.25 is a quarter less. It is not set if the baseline has none.
type WhileActive struct {
	// length of the time that the figures cover.
	// +optional
	Length Duration `json:"length"`
	// throughput is the mean of successes per second.
	// +optional
	Throughput Decimal `json:"throughput,omitempty"`
	// change of the throughput, as a share of the baseline's.
	// +optional
	Change Decimal `json:"change,omitempty"`
	// latencyP50 is the median latency; not set without a success.
	// +optional
	LatencyP50 *Duration `json:"latencyP50,omitempty"`
	// latencyP50Change is the change of latencyP50, as a share of the baseline's.
	// +optional
	LatencyP50Change Decimal `json:"latencyP50Change,omitempty"`
	// latencyP99 is the 99th percentile of latency; not set without a success.
	// +optional
	LatencyP99 *Duration `json:"latencyP99,omitempty"`
	// latencyP99Change is the change of latencyP99, as a share of the baseline's.
	// +optional
	LatencyP99Change Decimal `json:"latencyP99Change,omitempty"`
	// latencyP50ChangeBounds are the bounds of latencyP50Change. Not set if the load generators ran
	// for the same share of the time as before.
	// +optional
	LatencyP50ChangeBounds *ChangeBounds `json:"latencyP50ChangeBounds,omitempty"`
	// latencyP99ChangeBounds are the bounds of latencyP99Change. Not set if the load generators ran
	// for the same share of the time as before.
	// +optional
	LatencyP99ChangeBounds *ChangeBounds `json:"latencyP99ChangeBounds,omitempty"`
	// errorRate is failed, unknown and dropped requests as a share of all, from 0 to 1.
	// +optional
	ErrorRate Decimal `json:"errorRate,omitempty"`
	// errorRateChange is errorRate less that of the baseline, from -1 to 1.
	// +optional
	ErrorRateChange Decimal `json:"errorRateChange,omitempty"`
}

// ChangeBounds are the least and the greatest that a change can have been, as shares of the
// baseline's value.
type ChangeBounds struct {
	// atLeast is the least.
	// +optional
	AtLeast Decimal `json:"atLeast,omitempty"`
	// atMost is the greatest. Not set if there is no limit.
	// +optional
	AtMost Decimal `json:"atMost,omitempty"`
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
	// duration of the phase. Kubernetes' timestamps are in whole seconds, which makes phases that
	// begin or end with one uncertain.
	// +optional
	Duration *BoundedDuration `json:"duration,omitempty"`
}

// LatencyAround is one quantile around a fault.
type LatencyAround struct {
	// before the injection: over the baseline.
	// +optional
	Before *Duration `json:"before,omitempty"`
	// during the fault: from the injection to recovery.
	// +optional
	During *Duration `json:"during,omitempty"`
	// after recovery.
	// +optional
	After *Duration `json:"after,omitempty"`
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
