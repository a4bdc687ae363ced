package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Effect is whether Redis and the cluster show an effect of the fault.
// +kubebuilder:validation:Enum=Confirmed;NotObserved;Inconclusive
type Effect string

// The effects.
const (
	// EffectConfirmed means that Redis or the cluster shows the effect.
	EffectConfirmed Effect = "Confirmed"
	// EffectNotObserved means that the effect should be visible and is not.
	EffectNotObserved Effect = "NotObserved"
	// EffectInconclusive means that the effect cannot be observed.
	EffectInconclusive Effect = "Inconclusive"
)

// RedisFaultStatus is the result of a fault. Every figure is a number: durations are integers in microseconds, rates and shares are decimals
// with the unit given by the field. Only display contains formatted text.
type RedisFaultStatus struct {
	// conditions are the state of the fault: TargetsSelected, Injected, Reverted, Recovered, Complete, Failed, Suspended, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions refer to; -1 before the operator has processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// display is the main figures as formatted text, for the columns of kubectl get. Programs should read the other fields.
	// +optional
	Display *FaultDisplay `json:"display,omitempty"`

	// startTime is when the targets were selected and their revert records stored. The spec cannot change from then on.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the fault was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// loadTest is the name of the RedisLoadTest that measures the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LoadTest string `json:"loadTest,omitempty"`

	// loadStartTime is the start of that load, from which offsets count. A test that is started again is another load.
	// +optional
	LoadStartTime *metav1.MicroTime `json:"loadStartTime,omitempty"`

	// target is the Redis of the fault. It is stored because the load test that names it may be deleted before the fault is reverted.
	// +optional
	Target *RedisTarget `json:"target,omitempty"`

	// targets are the selected servers, each with its revert record. Stored before the injection.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=1000
	Targets []FaultTarget `json:"targets,omitempty"`

	// warnings are what else may affect the result, found before the injection: hooks, probes, operators that own the workload.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// effect is whether Redis and the cluster show an effect of the fault.
	// Confirmed: they show it.
	// NotObserved: it should be visible and is not.
	// Inconclusive: it cannot be observed.
	// +optional
	Effect Effect `json:"effect,omitempty"`

	// effectEvidence is the evidence for effect.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	EffectEvidence string `json:"effectEvidence,omitempty"`

	// injectedAt is t0: the time just before the first call of the injection was sent.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`

	// injectedOffset is t0 counted from the load's start, on the common clock, in microseconds.
	// +optional
	InjectedOffset *Microseconds `json:"injectedOffset,omitempty"`

	// revertingSince is when the revert began. After ten consecutive errors, and at least 40s, it is abandoned, and targets[].manualRevertCommand is set.
	// +optional
	RevertingSince *metav1.MicroTime `json:"revertingSince,omitempty"`

	// revertedAt is when the fault was completely reverted. A pod kill needs no revert.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`

	// recoveredAt is injectedAt + recoveryTime.
	// +optional
	RecoveredAt *metav1.MicroTime `json:"recoveredAt,omitempty"`

	// settledTime is when the fault was reverted and recovery evaluated. From then on only figures of lost writes may still be added.
	// +optional
	SettledTime *metav1.MicroTime `json:"settledTime,omitempty"`

	// timeline is the list of events, in chronological order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Timeline []TimelineEvent `json:"timeline,omitempty"`

	// impact is the effect on the clients.
	// +optional
	Impact *Impact `json:"impact,omitempty"`

	// objectives, each with the measured value.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Objectives []ObjectiveResult `json:"objectives,omitempty"`

	// verdict of the complete fault.
	// Pass: every objective is met, and the figures are reliable.
	// Fail: an objective is missed.
	// Inconclusive: the figures are not reliable, or an objective could not be evaluated.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
}

// FaultDisplay is the main figures of a fault as formatted text.
type FaultDisplay struct {
	// target is the first target pod, and the number of others.
	// +optional
	// +kubebuilder:validation:MaxLength=280
	Target string `json:"target,omitempty"`
	// dip is the largest drop of the throughput, such as 94%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Dip string `json:"dip,omitempty"`
	// outage is the longest period without a success, such as 1.01s.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Outage string `json:"outage,omitempty"`
	// recovery is the time from the injection to sustained recovery, such as 4.12s.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Recovery string `json:"recovery,omitempty"`
	// whileActive is the changes of throughput and p99 while a fault that lasts was there, such as throughput -12.5%, p99 +340%.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	WhileActive string `json:"whileActive,omitempty"`
}

// FaultTarget is one target server and its state.
type FaultTarget struct {
	// pod is the name of the target pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// uid of the pod: a replacement of the same name is another target.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
	// node of the pod before the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// role that Redis reported.
	// Primary: it accepts writes.
	// Replica: it replicates from another server.
	// Any: not used here.
	// +optional
	Role RedisRole `json:"role,omitempty"`
	// address of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Address string `json:"address,omitempty"`
	// runID of the server process before the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RunID string `json:"runID,omitempty"`
	// restartCount of the server's container before the fault.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RestartCount int32 `json:"restartCount,omitempty"`
	// container that runs the server.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`
	// intendedAt is when this record was created, before the injection.
	// +optional
	IntendedAt *metav1.MicroTime `json:"intendedAt,omitempty"`
	// injectedAt is the time just before the call of the injection was sent.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`
	// injectionTook is the duration of the call, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InjectionTook *Microseconds `json:"injectionTook,omitempty"`
	// activeAt is when the injection was complete on this target. The duration of the fault counts from then.
	// +optional
	ActiveAt *metav1.MicroTime `json:"activeAt,omitempty"`
	// progress of an injection or a revert that takes several steps; empty if none is in progress.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Progress string `json:"progress,omitempty"`
	// revert is the record of the state before the fault, from which it is reverted. Stored before the injection, and extended if the revert needs more.
	// +optional
	Revert *RevertRecord `json:"revert,omitempty"`
	// revertedAt is when the fault was reverted on this target, or found to need no revert.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`
	// revertAbandoned is true if the operator stopped trying to revert the fault on this target. See lastError for the reason and manualRevertCommand.
	// +optional
	RevertAbandoned bool `json:"revertAbandoned,omitempty"`
	// manualRevertCommand is the command that reverts the fault on this target. Set together with revertAbandoned.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ManualRevertCommand string `json:"manualRevertCommand,omitempty"`
	// attempts is the number of injection attempts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`
	// revertAttempts is the number of consecutive failed revert attempts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevertAttempts int32 `json:"revertAttempts,omitempty"`
	// lastError of an injection or revert attempt.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastError string `json:"lastError,omitempty"`
}

// RevertRecord is the data that a revert needs, in a format specific to the type of the fault.
type RevertRecord struct {
	// version of the format; an operator that does not support it does not touch the target.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Version int32 `json:"version,omitempty"`
	// data is JSON; its fields depend on the type of the fault.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Data string `json:"data,omitempty"`
}

// TimelineEvent is one event.
type TimelineEvent struct {
	// at is the time of the event, on the operator's clock.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// offset from the injection, in microseconds; negative before it.
	// +optional
	Offset Microseconds `json:"offset"`
	// event is the name of the event, one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event,omitempty"`
	// object of the event.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Object string `json:"object,omitempty"`
	// message with further details.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Impact is the effect of a fault on the clients. docs/measuring.md defines every figure.
type Impact struct {
	// baselineTPS is the median of the 1 s success rates before the injection, per second.
	// +optional
	BaselineTPS Decimal `json:"baselineTPS,omitempty"`
	// minTPS is the lowest success rate in any 1 s window until recovery, per second.
	// +optional
	MinTPS Decimal `json:"minTPS,omitempty"`
	// tpsDip is 1 - minTPS/baselineTPS, from 0 to 1.
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
	// operations are the effects on each operation; empty if the load has one.
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
	// outage is the longest period without a success of this operation in which a request waited in vain.
	// +optional
	Outage *BoundedDuration `json:"outage,omitempty"`
	// firstError is the time from the injection to the operation's first error, to the interval; not set if there was none.
	// +optional
	FirstError *Microseconds `json:"firstError,omitempty"`
	// lastError is the time from the injection to the operation's last error until recovery, to the interval.
	// +optional
	LastError *Microseconds `json:"lastError,omitempty"`
	// errors is the number of failed, unknown and dropped requests until recovery.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// tpsDip is the depth of the dip of this operation's throughput, as a share of its baseline, from 0 to 1.
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
