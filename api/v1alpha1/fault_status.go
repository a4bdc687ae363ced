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

// RedisFaultStatus is the result of a fault. Durations are exact to
// the microsecond (62.041286s, 5.003ms, 74us); rates and shares are decimals with the unit given by
// the field. Only display is rounded.
type RedisFaultStatus struct {
	// conditions are the state of the fault: TargetsSelected, Injected, Reverted, Recovered, Complete,
	// Failed, Suspended, Reconciling, Stalled; of a setting also Held.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the conditions refer to; -1 before the operator has
	// processed the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// display is the main figures as formatted text, for the columns of kubectl get. Programs should
	// read the other fields.
	// +optional
	Display *FaultDisplay `json:"display,omitempty"`

	// startTime is when the targets were selected and their revert records stored. With type External,
	// when the wait for its instant began. The spec cannot change from then on.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`

	// completionTime is when the fault was complete or had failed.
	// +optional
	CompletionTime *metav1.MicroTime `json:"completionTime,omitempty"`

	// loadTest is the name of the RedisLoadTest that measures the fault.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	LoadTest string `json:"loadTest,omitempty"`

	// loadStartTime is the start of that load, from which offsets count. A test that is started again
	// is another load. Of a setting, it is set once the load has started, and the setting ends if the
	// load test is deleted then.
	// +optional
	LoadStartTime *metav1.MicroTime `json:"loadStartTime,omitempty"`

	// besideSince is when the last of the faults in spec.beside began to act. The throughput from then
	// on is the baseline.
	// +optional
	BesideSince *metav1.MicroTime `json:"besideSince,omitempty"`

	// besideUIDs are the UIDs of the faults in spec.beside, in its order: another fault of the same
	// name is not meant.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=64
	BesideUIDs []string `json:"besideUIDs,omitempty"`

	// loadTestUID is the UID of the load test of a setting, as it was last seen: after a deletion, a
	// load test of the same name is another one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	LoadTestUID string `json:"loadTestUID,omitempty"`

	// target is the Redis of the fault: that of its spec, else the one to which the load test led when
	// the fault first saw it. The load test may be deleted before the fault is reverted; and where it
	// is changed before the fault begins, the fault does not follow it (TargetChanged).
	// +optional
	Target *RedisTarget `json:"target,omitempty"`

	// targets are the selected servers, each with its revert record. Stored before the injection. With
	// type External, the pods of the target just before t0.
	// +optional
	// +listType=map
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=1000
	Targets []FaultTarget `json:"targets,omitempty"`

	// nodes that it taints, if these are more than those of its targets.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`

	// workloads are the controllers of the pods that the fault acts on, such as StatefulSet/redis.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Workloads []string `json:"workloads,omitempty"`

	// waiting is what the fault waits for: another one acts on the same servers, workload or node, or
	// a limit of the cluster's policy is reached.
	// From its record to its first injection, only since is left: its place, if it has to wait again.
	// +optional
	Waiting *WaitingFault `json:"waiting,omitempty"`

	// seed is the number from which select.pick Random chose the targets: the same seed and the same
	// matching servers give the same targets.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int32 `json:"seed,omitempty"`

	// warnings are what else may affect the result, found before the injection: hooks, probes,
	// operators that own the workload.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`

	// plan is what is done to the targets, and how that is reverted. Stored together with the targets,
	// before the injection.
	// +optional
	Plan *FaultPlan `json:"plan,omitempty"`

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

	// injectedAt is t0: the time just before the first call of the injection was sent. With type
	// External, the instant at which something else broke Redis.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`

	// injectedOffset is t0 counted from the load's start, on the common clock.
	// +optional
	InjectedOffset *Duration `json:"injectedOffset,omitempty"`

	// markedBy is where t0 of a fault of type External is from.
	// Annotation: the annotation redquake.dev/mark.
	// Load: the begin of the first anomaly or outage of the load.
	// +optional
	MarkedBy MarkSource `json:"markedBy,omitempty"`

	// heldUntil is, of a setting, when it was stored that its load test had ended or that it was
	// aborted. No other fault begins beside it from then on, and it is reverted after what was
	// injected later on the same load.
	// +optional
	HeldUntil *metav1.MicroTime `json:"heldUntil,omitempty"`

	// revertingSince is when the revert began. After 40s of errors the condition Reverted has the
	// reason RevertDelayed and the command to revert the fault manually. The revert goes on for 24h,
	// or, if the object is deleted, for 40s.
	// +optional
	RevertingSince *metav1.MicroTime `json:"revertingSince,omitempty"`

	// revertedAt is when the fault was completely reverted. A pod kill needs no revert.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`

	// breach is the stop condition that ended the fault, or because of which it was not injected.
	// +optional
	Breach *Breach `json:"breach,omitempty"`

	// overstayed is by how much longer than spec.duration, or than the end that was asked for, the
	// fault stayed. Not set up to 2s.
	// +optional
	Overstayed *Duration `json:"overstayed,omitempty"`

	// holding is true from the selection of the targets to their revert. Meanwhile other faults on the
	// same servers, workloads and nodes wait.
	// +optional
	Holding *bool `json:"holding,omitempty"`

	// recoveredAt is injectedAt + recoveryTime.
	// +optional
	RecoveredAt *metav1.MicroTime `json:"recoveredAt,omitempty"`

	// settledTime is when the fault was reverted and recovery evaluated. From then on only figures of
	// lost writes may still be added.
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

	// objectives and the measured value of each.
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
	// dip is the largest drop of the throughput, such as 94%: of all requests, of the reads or of the
	// writes.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Dip string `json:"dip,omitempty"`
	// outage is the longest period without a success, such as 1.01s, or 0.9s-1.6s if it may be off by
	// more than a third.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Outage string `json:"outage,omitempty"`
	// recovery is the time from the injection to sustained recovery, such as 4.12s, or 1.28s-7.58s if
	// it may be off by more than a third.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Recovery string `json:"recovery,omitempty"`
	// lostWrites is the number of acknowledged ledger writes that were lost, such as 7; 3-7 if it is
	// only known to be between the two.
	// +optional
	// +kubebuilder:validation:MaxLength=48
	LostWrites string `json:"lostWrites,omitempty"`
	// whileActive is the changes of throughput and p99 while a fault that lasts was there, such as
	// throughput -12.5%, p99 +340%.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	WhileActive string `json:"whileActive,omitempty"`
}

// Breach is a stop condition that holds.
type Breach struct {
	// condition is the field, such as spec.stopIf.outage, or spec.stopIf.queries[slo] for the query
	// slo.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Condition string `json:"condition,omitempty"`
	// at is when it was seen. The revert begins then.
	// +required
	At metav1.MicroTime `json:"at,omitzero"`
	// answered is true if the figure is beyond the limit, false if there is no figure: no answer, no
	// data, NaN, or an error.
	// +optional
	Answered bool `json:"answered,omitempty"`
	// message is a sentence with the figure and the limit, or with the reason why there is no figure.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// WaitingFault is a fault's place in the queue for what it acts on. The fault that has waited for
// the longest comes first.
type WaitingFault struct {
	// for is the name of the RedisFault that it waits for, preceded by its namespace if that is
	// another one: other, or shop/other. Absent with limit.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	For string `json:"for,omitempty"`
	// limit is the limit of the cluster's policy that it waits for.
	// Faults: as many faults act as may at once.
	// NamespaceFaults: as many act in its namespace.
	// TaintedNodes: faults have tainted as many nodes as they may at once.
	// +optional
	Limit PolicyLimit `json:"limit,omitempty"`
	// guard is the allowance that would permit both at a time, where the two together would be too
	// wide although they act on different pods.
	// AllCopies: together they would disable all copies of a slot.
	// DataLoss: copies of the data that the other one has hit are not in sync again.
	// MajorityOfSentinels: together they would disable too many sentinels.
	// MajorityOfPrimaries: together they would disable too many primaries of a cluster.
	// TooFewCores: not used here.
	// Eviction: not used here.
	// Expiry: not used here.
	// +optional
	Guard Allowance `json:"guard,omitempty"`
	// since is when it began to wait.
	// +required
	Since metav1.MicroTime `json:"since,omitzero"`
	// pods that it acts on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	Pods []string `json:"pods,omitempty"`
	// workloads that it acts on.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=320
	Workloads []string `json:"workloads,omitempty"`
	// whole is true if it changes the workloads: their size, their template, or the roles in them.
	// +optional
	Whole bool `json:"whole,omitempty"`
	// nodes that it taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	Nodes []string `json:"nodes,omitempty"`
	// deployment that it scales, as NAMESPACE/NAME.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Deployment string `json:"deployment,omitempty"`
}

// PolicyLimit is a limit of the cluster's policy.
// +kubebuilder:validation:Enum=Faults;NamespaceFaults;TaintedNodes
type PolicyLimit string

// The limits.
const (
	// LimitFaults is the number of faults that act at once.
	LimitFaults PolicyLimit = "Faults"
	// LimitNamespaceFaults is the number of faults that act at once in one namespace.
	LimitNamespaceFaults PolicyLimit = "NamespaceFaults"
	// LimitTaintedNodes is the number of nodes that faults have tainted at once.
	LimitTaintedNodes PolicyLimit = "TaintedNodes"
)

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
	// copies are the pods in which other copies of its data were when it was selected, the primary
	// first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Copies []string `json:"copies,omitempty"`
	// losesData is why this primary comes back without its data if the fault ends its process; absent
	// where it keeps them.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	LosesData string `json:"losesData,omitempty"`
	// intendedAt is when this record was created, before the injection.
	// +optional
	IntendedAt *metav1.MicroTime `json:"intendedAt,omitempty"`
	// injectedAt is the time just before the call of the injection was sent.
	// +optional
	InjectedAt *metav1.MicroTime `json:"injectedAt,omitempty"`
	// injectionTook is the duration of the call.
	// +optional
	InjectionTook *Duration `json:"injectionTook,omitempty"`
	// activeAt is when the injection was complete on this target. The duration of the fault counts
	// from then.
	// +optional
	ActiveAt *metav1.MicroTime `json:"activeAt,omitempty"`
	// progress of an injection or a revert that takes several steps; empty if none is in progress.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Progress string `json:"progress,omitempty"`
	// revert is the record of the state before the fault, from which it is reverted. Stored before the
	// injection, and extended if the revert needs more.
	// +optional
	Revert *RevertRecord `json:"revert,omitempty"`
	// revertedAt is when the fault was reverted on this target, or found to need no revert.
	// +optional
	RevertedAt *metav1.MicroTime `json:"revertedAt,omitempty"`
	// revertAbandoned is true if the operator stopped trying to revert the fault on this target. See
	// revertError for the reason and manualRevertCommand.
	// +optional
	RevertAbandoned bool `json:"revertAbandoned,omitempty"`
	// manualRevertCommand is the command that reverts the fault on this target. Set together with
	// revertAbandoned.
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
	// lastError of an attempt to inject the fault, or why the injection is incomplete.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastError string `json:"lastError,omitempty"`
	// notSupported is true if lastError says that the server, its pod or the cluster does not support
	// the fault.
	// +optional
	NotSupported bool `json:"notSupported,omitempty"`
	// revertError is the error of the last attempt to revert the fault, or what the revert waits for;
	// empty once it is reverted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	RevertError string `json:"revertError,omitempty"`
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
	// offset from the injection; negative before it.
	// +optional
	Offset Duration `json:"offset"`
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
