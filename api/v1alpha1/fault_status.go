package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Effect says whether the fault was seen to work, proven by Redis and the cluster, never assumed.
// +kubebuilder:validation:Enum=Confirmed;NotObserved;Inconclusive
type Effect string

// The effects.
const (
	// EffectConfirmed is an effect that Redis or the cluster shows.
	EffectConfirmed Effect = "Confirmed"
	// EffectNotObserved is an effect that should show and does not.
	EffectNotObserved Effect = "NotObserved"
	// EffectInconclusive is an effect of which nothing can be seen.
	EffectInconclusive Effect = "Inconclusive"
)

// RedisFaultStatus is what a fault did. Every figure is a number: lengths of time are integers in microseconds, rates and shares are decimals
// whose unit the field says. Text for people stands in display alone.
type RedisFaultStatus struct {
	// conditions say where the fault stands: TargetsSelected, Injected, Reverted, Recovered, Complete, Failed, Suspended, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions speak of; -1 before the operator saw the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// display is the main figures as text, with units and few digits, as the columns of kubectl get show them. Programs read the fields below.
	// +optional
	Display *FaultDisplay `json:"display,omitempty"`

	// startTime is when the fault's targets were chosen and the way back recorded. The spec is frozen from here on.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the fault was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// loadTest is the name of the RedisLoadTest that measures the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LoadTest string `json:"loadTest,omitempty"`

	// loadStartTime is the start of that test's run, from which offsets count: a test that is run anew is another load.
	// +optional
	LoadStartTime *metav1.MicroTime `json:"loadStartTime,omitempty"`

	// target is the Redis that was hit: the load test that names it may be deleted before the fault is undone.
	// +optional
	Target *RedisTarget `json:"target,omitempty"`

	// targets are what is hit, with all that is needed to undo it. Written before anything is broken.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=1000
	Targets []FaultTarget `json:"targets,omitempty"`

	// warnings are what else will act, found before the injection: hooks, probes, operators that own the workload.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// effect is what Redis and the cluster show of the fault.
	// Confirmed: they show it.
	// NotObserved: it should show and does not.
	// Inconclusive: neither can be seen.
	// +optional
	Effect Effect `json:"effect,omitempty"`

	// effectEvidence is what proves it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	EffectEvidence string `json:"effectEvidence,omitempty"`

	// injectedAt is t0: just before the first breaking call was sent.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`

	// injectedOffset is t0 counted from the load's start, on the common clock, in microseconds.
	// +optional
	InjectedOffset *Microseconds `json:"injectedOffset,omitempty"`

	// revertingSince is when undoing began. Where it errs ten times in a row it is given up, not before 40s, and then told how to do it by hand.
	// +optional
	RevertingSince *metav1.MicroTime `json:"revertingSince,omitempty"`

	// revertedAt is when everything was undone. A pod kill has nothing to undo.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`

	// recoveredAt is injectedAt + recoveryTime.
	// +optional
	RecoveredAt *metav1.MicroTime `json:"recoveredAt,omitempty"`

	// settledTime is when everything was undone and recovery had been judged: from here on only lost writes may still become known.
	// +optional
	SettledTime *metav1.MicroTime `json:"settledTime,omitempty"`

	// timeline is what happened, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Timeline []TimelineEvent `json:"timeline,omitempty"`

	// impact is what clients experienced.
	// +optional
	Impact *Impact `json:"impact,omitempty"`

	// objectives, each with what was measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Objectives []ObjectiveResult `json:"objectives,omitempty"`

	// verdict of the complete fault.
	// Pass: every objective is met, and no figure is in doubt.
	// Fail: an objective is missed.
	// Inconclusive: the figures cannot be trusted, or an objective could not be judged.
	// +optional
	Verdict Verdict `json:"verdict,omitempty"`
}

// FaultDisplay is the main figures of a fault as text.
type FaultDisplay struct {
	// target is the pod that was hit, and how many others were.
	// +optional
	// +kubebuilder:validation:MaxLength=280
	Target string `json:"target,omitempty"`
	// dip is the deepest fall of the throughput, such as 94%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Dip string `json:"dip,omitempty"`
	// outage is the longest stretch without a success, such as 1.01s.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Outage string `json:"outage,omitempty"`
	// recovery is the time from the injection to sustained recovery, such as 4.12s.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Recovery string `json:"recovery,omitempty"`
}

// FaultTarget is one server that is hit, and the record of it.
type FaultTarget struct {
	// pod's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod,omitempty"`
	// uid of the pod: a replacement of the same name is another target.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
	// node the pod was on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// role that Redis reported.
	// Primary: it takes writes.
	// Replica: it replicates from another.
	// Any: not used here.
	// +optional
	Role RedisRole `json:"role,omitempty"`
	// address that was asked.
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
	// intendedAt is when this record was made, before the breaking call.
	// +optional
	IntendedAt *metav1.MicroTime `json:"intendedAt,omitempty"`
	// injectedAt is just before the breaking call was sent.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`
	// injectionTook is how long the breaking call took, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InjectionTook *Microseconds `json:"injectionTook,omitempty"`
	// activeAt is when the fault was complete on this target: the duration of a lasting one counts from here.
	// +optional
	ActiveAt *metav1.MicroTime `json:"activeAt,omitempty"`
	// progress of an injection or a revert that takes several steps; empty when none is under way.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Progress string `json:"progress,omitempty"`
	// revert is the record of what was there before the fault, from which it is reverted. Stored before the fault, and added to where a revert needs more.
	// +optional
	Revert *RevertRecord `json:"revert,omitempty"`
	// revertedAt is when the fault was reverted, or when there was found to be nothing to revert.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`
	// revertAbandoned says that the operator stopped trying to revert the fault here: lastError says why, manualRevertCommand what to do.
	// +optional
	RevertAbandoned bool `json:"revertAbandoned,omitempty"`
	// manualRevertCommand is the command that reverts the fault on this target. Set when revertAbandoned is.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ManualRevertCommand string `json:"manualRevertCommand,omitempty"`
	// attempts of the breaking call.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts,omitempty"`
	// revertAttempts that failed, in a row.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevertAttempts int32 `json:"revertAttempts,omitempty"`
	// lastError of either.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastError string `json:"lastError,omitempty"`
}

// RevertRecord is what a revert needs, in the words of the kind of fault.
type RevertRecord struct {
	// version of the format; an operator that does not know it leaves the target alone.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Version int32 `json:"version,omitempty"`
	// data is JSON, whose members depend on the type of the fault.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Data string `json:"data,omitempty"`
}

// TimelineEvent is one thing that happened.
type TimelineEvent struct {
	// at is when, on the operator's clock.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// offset from the injection, in microseconds; negative before it.
	// +optional
	Offset Microseconds `json:"offset"`
	// event in one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event,omitempty"`
	// object it happened to.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Object string `json:"object,omitempty"`
	// message with what else is known.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Impact is what clients experienced because of a fault. docs/measuring.md defines every figure.
type Impact struct {
	// baselineTPS is the median of the 1 s success rates before the injection, per second.
	// +optional
	BaselineTPS Decimal `json:"baselineTPS,omitempty"`
	// minTPS is the lowest success rate over any 1 s window until recovery, per second.
	// +optional
	MinTPS Decimal `json:"minTPS,omitempty"`
	// tpsDip is 1 - minTPS/baselineTPS, from 0 to 1.
	// +optional
	TPSDip Decimal `json:"tpsDip,omitempty"`
	// timeToImpact is from the injection to the first error or the start of the first gap.
	// +optional
	TimeToImpact *BoundedDuration `json:"timeToImpact,omitempty"`
	// outage is the longest stretch without a success, as the load lived it.
	// +optional
	Outage *BoundedDuration `json:"outage,omitempty"`
	// totalOutage is the sum of all stretches without a success until recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TotalOutage Microseconds `json:"totalOutage"`
	// shardOutage is the longest stretch without a success at one shard of a cluster: the aggregate hides a shard that is down. Empty where there is one shard.
	// +optional
	ShardOutage *BoundedDuration `json:"shardOutage,omitempty"`
	// shard is the one that had it, by its number in the load test's status.summary.shards.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Shard *int32 `json:"shard,omitempty"`
	// serverOutage is the outage as the probe saw it, which dials afresh.
	// +optional
	ServerOutage *BoundedDuration `json:"serverOutage,omitempty"`
	// errorWindow is from the first to the last error until recovery, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ErrorWindow Microseconds `json:"errorWindow"`
	// recoveryTime is from the injection to sustained recovery; empty if there was none.
	// +optional
	RecoveryTime *BoundedDuration `json:"recoveryTime,omitempty"`
	// recovered says whether there was one by the deadline.
	// +optional
	Recovered bool `json:"recovered"`
	// recoveredThroughput is the throughput after recovery as a share of the baseline: 1 is all of it.
	// +optional
	RecoveredThroughput Decimal `json:"recoveredThroughput,omitempty"`
	// lostRequests is the area of the dip: the successes that the baseline would have had.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostRequests int64 `json:"lostRequests"`
	// lostWrites are the acknowledged ledger writes lost because of this fault: a lower bound. Absent until the load has ended and was
	// read back, and where its test does not verify.
	// +optional
	// +kubebuilder:validation:Minimum=0
	LostWrites *int64 `json:"lostWrites,omitempty"`
	// firstLost is when the first of them was acknowledged, at the earliest, in microseconds from the injection; negative before it.
	// +optional
	FirstLost *Microseconds `json:"firstLost,omitempty"`
	// lastLost is when the last of them was acknowledged, at the latest, in microseconds from the injection.
	// +optional
	LastLost *Microseconds `json:"lastLost,omitempty"`
	// sawErrors says whether any client saw an error between the two; absent where nothing was lost.
	// +optional
	SawErrors *bool `json:"sawErrors,omitempty"`
	// errors until recovery: failed, unknown and dropped requests.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Errors int64 `json:"errors"`
	// errorsByClass counts failed and unknown requests by what the client saw.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=32
	ErrorsByClass []ErrorCount `json:"errorsByClass,omitempty"`
	// latencyP99 before, during and after.
	// +optional
	LatencyP99 *LatencyAround `json:"latencyP99,omitempty"`
	// phases take the recovery apart: each ends with what it is named after, and they add up to recoveryTime. Unexplained is what neither
	// cluster nor servers account for. Empty where there was no recovery, or nothing to recover from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Phases []Phase `json:"phases,omitempty"`
	// doubts are reasons not to trust the figures; the verdict is then Inconclusive.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	Doubts []Doubt `json:"doubts,omitempty"`
}

// PhaseSource is who showed the end of a phase.
// +kubebuilder:validation:Enum=Kubernetes;Redis;Client
type PhaseSource string

// The sources.
const (
	// PhaseKubernetes is the API server: pods, events, volumes.
	PhaseKubernetes PhaseSource = "Kubernetes"
	// PhaseRedis is a Redis server or a sentinel.
	PhaseRedis PhaseSource = "Redis"
	// PhaseClient is the load's own record.
	PhaseClient PhaseSource = "Client"
)

// Phase is a stretch of a recovery.
type Phase struct {
	// name of what ended it.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// source that showed its end.
	// Kubernetes: the API server.
	// Redis: a Redis server or a sentinel.
	// Client: the load's own record.
	// +optional
	Source PhaseSource `json:"source,omitempty"`
	// at is when it ended, on the common clock.
	// +optional
	At metav1.MicroTime `json:"at,omitzero"`
	// duration of it, in microseconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Duration Microseconds `json:"duration"`
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

// Doubt is a reason not to trust figures.
type Doubt struct {
	// reason in one word.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// message with the figures.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
