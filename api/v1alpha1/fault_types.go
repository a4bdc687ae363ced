package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultType is a kind of fault.
// +kubebuilder:validation:Enum=PodKill;ProcessCrash;Failover;VolumeAttachDelay;IOThreads;Config;ReplicaScale;Resources;Hang;ClientPause;ClientKill;BackgroundSave;NodeLoss;NetworkDelay;NetworkLoss;NetworkPartition;DiskDelay;CPUStress;ClockSkew
type FaultType string

// The kinds.
const (
	// FaultPodKill deletes the pod; its controller replaces it.
	FaultPodKill FaultType = "PodKill"
	// FaultProcessCrash ends the server process; the kubelet restarts its container in the same pod.
	FaultProcessCrash FaultType = "ProcessCrash"
	// FaultFailover promotes a replica in place of the primary.
	FaultFailover FaultType = "Failover"
	// FaultVolumeAttachDelay deletes the pod and keeps its volume attached to the old node.
	FaultVolumeAttachDelay FaultType = "VolumeAttachDelay"
	// FaultIOThreads changes the number of I/O threads.
	FaultIOThreads FaultType = "IOThreads"
	// FaultConfig changes settings by CONFIG SET.
	FaultConfig FaultType = "Config"
	// FaultReplicaScale adds or removes replicas.
	FaultReplicaScale FaultType = "ReplicaScale"
	// FaultResources resizes the container in place.
	FaultResources FaultType = "Resources"
	// FaultHang keeps the server from answering.
	FaultHang FaultType = "Hang"
	// FaultClientPause suspends clients by CLIENT PAUSE.
	FaultClientPause FaultType = "ClientPause"
	// FaultClientKill closes the connections of clients.
	FaultClientKill FaultType = "ClientKill"
	// FaultBackgroundSave makes the server fork.
	FaultBackgroundSave FaultType = "BackgroundSave"
	// FaultNodeLoss cordons a node and deletes the Redis pods on it by force.
	FaultNodeLoss FaultType = "NodeLoss"

	// FaultNetworkDelay delays packets; engine ChaosMesh.
	FaultNetworkDelay FaultType = "NetworkDelay"
	// FaultNetworkLoss drops some packets; engine ChaosMesh.
	FaultNetworkLoss FaultType = "NetworkLoss"
	// FaultNetworkPartition drops all packets between the server and its peers; engine ChaosMesh.
	FaultNetworkPartition FaultType = "NetworkPartition"
	// FaultDiskDelay delays calls to the volume; engine ChaosMesh.
	FaultDiskDelay FaultType = "DiskDelay"
	// FaultCPUStress burns CPU in the container; engine ChaosMesh.
	FaultCPUStress FaultType = "CPUStress"
	// FaultClockSkew shifts the server's wall clock; engine ChaosMesh.
	FaultClockSkew FaultType = "ClockSkew"
)

// Engine is what injects a fault.
// +kubebuilder:validation:Enum=Native;ChaosMesh
type Engine string

// The engines.
const (
	// EngineNative is Redquake itself.
	EngineNative Engine = "Native"
	// EngineChaosMesh is Chaos Mesh, in clusters where it is installed.
	EngineChaosMesh Engine = "ChaosMesh"
)

// Allowance lifts one of the guards that keep a fault from breaking more than it should.
// +kubebuilder:validation:Enum=AllCopies;MajorityOfSentinels;TooFewCores;Eviction
type Allowance string

// The allowances.
const (
	// AllowAllCopies permits to silence every copy of a slot at once, though there are several.
	AllowAllCopies Allowance = "AllCopies"
	// AllowMajorityOfSentinels permits to silence so many sentinels that those left cannot elect a primary.
	AllowMajorityOfSentinels Allowance = "MajorityOfSentinels"
	// AllowTooFewCores permits more I/O threads than the container's CPU limit has room for.
	AllowTooFewCores Allowance = "TooFewCores"
	// AllowEviction permits a maxmemory at which the server evicts data, which cannot be brought back.
	AllowEviction Allowance = "Eviction"
)

// RedisFaultSpec is one fault, injected once.
// +kubebuilder:validation:XValidation:rule="has(self.loadTestRef) || has(self.target)",message="set loadTestRef (the load that measures the fault) or target (a small probe load of its own measures it)"
// +kubebuilder:validation:XValidation:rule="self.engine == 'ChaosMesh' ? self.action.type in ['PodKill', 'NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew'] : !(self.action.type in ['NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew'])",message="engine ChaosMesh injects PodKill, NetworkDelay, NetworkLoss, NetworkPartition, DiskDelay, CPUStress, ClockSkew; all but PodKill need it"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || !(self.action.type in ['ProcessCrash', 'Failover', 'ClientKill', 'BackgroundSave'])",message="a fault of type ProcessCrash, Failover, ClientKill or BackgroundSave does not last: leave duration out",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.engine != 'ChaosMesh' || self.action.type != 'PodKill'",message="engine ChaosMesh kills a pod once: leave duration out, or use engine Native",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.action.type == 'Hang' || duration(self.duration) >= duration('1s')",message="must be at least 1s, unless type is Hang",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.action.type != 'Hang' || duration(self.duration) <= duration('10m')",message="must be at most 10m with type Hang",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || !(self.action.type in ['PodKill', 'VolumeAttachDelay']) || duration(self.duration) <= duration('1h')",message="must be at most 1h with types PodKill and VolumeAttachDelay",fieldPath=".duration"
type RedisFaultSpec struct {
	// loadTestRef is the load that measures the fault. Without it a small open-loop probe load of the fault's own does.
	// +optional
	LoadTestRef *LoadTestReference `json:"loadTestRef,omitempty"`

	// target is the Redis to break; the load test's where absent.
	// +optional
	Target *RedisTarget `json:"target,omitempty"`

	// select says which of the target's servers are hit.
	// +optional
	// +kubebuilder:default={}
	Select FaultSelector `json:"select,omitzero"`

	// trigger says when.
	// +optional
	// +kubebuilder:default={}
	Trigger FaultTrigger `json:"trigger,omitzero"`

	// action is what is done to each target. See the members of action for what each type takes.
	// +required
	Action Action `json:"action,omitzero"`

	// duration is how long a fault that lasts stays, from the instant at which it is complete on all targets to its revert.
	// 30s where absent, but for PodKill: a pod is killed once where duration is absent, and where it is set every replacement is killed, too, until it is over.
	// Between 1s and 24h; with type Hang between 100ms and 10m, with types PodKill and VolumeAttachDelay between 1s and 1h.
	// Not with ProcessCrash, Failover, ClientKill, BackgroundSave, nor with PodKill by engine ChaosMesh: these do not last.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	// +kubebuilder:validation:Type=string
	Duration *metav1.Duration `json:"duration,omitempty"`

	// deadline is when the fault is over at the latest, counted from the object's creation: what was not injected by then will not be, what was
	// is reverted. 24h where absent, and trigger.after more. Between 1s and 336h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('336h')",message="must be between 1s and 336h"
	// +kubebuilder:validation:Type=string
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// recoveryDeadline is how long recovery is waited for, from the injection, and from the revert of a fault that lasts; no recovery by then
	// is NotRecovered. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	RecoveryDeadline metav1.Duration `json:"recoveryDeadline,omitzero"`

	// objectives decide the verdict, beside recovery within recoveryDeadline. Without any, a fault that was confirmed, measured without a doubt and
	// recovered from passes.
	// +optional
	Objectives *FaultObjectives `json:"objectives,omitempty"`

	// allow lifts guards that would refuse the fault.
	// AllCopies: silence every copy of a slot, though there are several.
	// MajorityOfSentinels: silence so many sentinels that those left cannot elect a primary.
	// TooFewCores: more I/O threads than the container's CPU limit has room for.
	// Eviction: a maxmemory at which the server evicts data, which cannot be brought back.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Allow []Allowance `json:"allow,omitempty"`

	// engine is what injects the fault.
	// Native: Redquake itself.
	// ChaosMesh: Chaos Mesh, which must be installed in the cluster.
	// +optional
	// +kubebuilder:default=Native
	Engine Engine `json:"engine,omitempty"`

	// abort ends the fault now: what was not yet injected will not be, what was is reverted. It cannot be taken back.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an abort cannot be taken back: create a new object"
	Abort bool `json:"abort,omitempty"`

	// suspend keeps the fault from being injected until it is taken back. It does not revert an injected one: abort does.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished deletes the object so many seconds after it finished; kept for ever where absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// LoadTestReference names a RedisLoadTest of the object's own namespace.
type LoadTestReference struct {
	// name of the RedisLoadTest. It need not exist yet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// RedisRole is a server's role, as Redis reports it.
// +kubebuilder:validation:Enum=Primary;Replica;Any
type RedisRole string

// The roles.
const (
	// RolePrimary is a server that takes writes.
	RolePrimary RedisRole = "Primary"
	// RoleReplica is a server that replicates from another.
	RoleReplica RedisRole = "Replica"
	// RoleAny is either.
	RoleAny RedisRole = "Any"
)

// SelectMode says how many of the matching servers are hit.
// +kubebuilder:validation:Enum=One;All;Count
type SelectMode string

// The modes.
const (
	// SelectOne takes the first by name.
	SelectOne SelectMode = "One"
	// SelectAll takes every one.
	SelectAll SelectMode = "All"
	// SelectCount takes as many as count says, the first by name.
	SelectCount SelectMode = "Count"
)

// FaultSelector says which servers are hit. The role is asked of Redis just before the injection.
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Count') == has(self.count)",message="count belongs to mode Count, and mode Count needs it"
type FaultSelector struct {
	// role that a server must have.
	// Primary: it takes writes.
	// Replica: it replicates from another.
	// Any: either.
	// +optional
	// +kubebuilder:default=Any
	Role RedisRole `json:"role,omitempty"`

	// shard of a cluster that a server must belong to, counted from 0 by the lowest slot.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	Shard *int32 `json:"shard,omitempty"`

	// mode says how many of the matching servers are hit.
	// One: the first by name.
	// All: every one.
	// Count: as many as count says, the first by name.
	// +optional
	// +kubebuilder:default=One
	Mode SelectMode `json:"mode,omitempty"`

	// count of servers, with mode Count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`
}

// FaultTrigger says when a fault is injected. With neither member: as soon as the throughput has been steady for 10s.
// +kubebuilder:validation:XValidation:rule="!(has(self.steadyFor) && has(self.after))",message="set steadyFor or after"
type FaultTrigger struct {
	// steadyFor waits until the throughput has been steady for so long, after warm-up. Between 2s and 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('2s') && duration(self) <= duration('1h')",message="must be between 2s and 1h"
	// +kubebuilder:validation:Type=string
	SteadyFor *metav1.Duration `json:"steadyFor,omitempty"`

	// after waits for so long after the start of the load, and at least until its warm-up is over, whether it is steady or not. At most 168h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be between 0s and 168h"
	// +kubebuilder:validation:Type=string
	After *metav1.Duration `json:"after,omitempty"`

	// timeout is how long steadiness is waited for, from the end of the load's warm-up; then the fault fails as NotSteady. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// RedisFault breaks Redis once, reverts what it did, and says what clients lived through.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rfault,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.spec.action.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.action.type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`,description="Where the fault stands"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.display.target`,description="The pod that is hit"
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.status.effect`,description="Whether Redis itself shows the effect"
// +kubebuilder:printcolumn:name="Dip",type=string,JSONPath=`.status.display.dip`,description="Fall of the throughput"
// +kubebuilder:printcolumn:name="Outage",type=string,JSONPath=`.status.display.outage`,description="Longest stretch without a success"
// +kubebuilder:printcolumn:name="Recovery",type=string,JSONPath=`.status.display.recovery`,description="Injection to sustained recovery"
// +kubebuilder:printcolumn:name="LostWrites",type=integer,JSONPath=`.status.impact.lostWrites`,description="Acknowledged ledger writes that were lost; empty until the load has ended and was read back"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`,description="Pass, Fail or Inconclusive"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="LoadTest",type=string,priority=1,JSONPath=`.status.loadTest`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (self.spec.action == oldSelf.spec.action && self.spec.select == oldSelf.spec.select && self.spec.trigger == oldSelf.spec.trigger && has(self.spec.objectives) == has(oldSelf.spec.objectives) && (!has(self.spec.objectives) || self.spec.objectives == oldSelf.spec.objectives) && self.spec.recoveryDeadline == oldSelf.spec.recoveryDeadline && self.spec.engine == oldSelf.spec.engine && has(self.spec.loadTestRef) == has(oldSelf.spec.loadTestRef) && (!has(self.spec.loadTestRef) || self.spec.loadTestRef == oldSelf.spec.loadTestRef) && has(self.spec.target) == has(oldSelf.spec.target) && (!has(self.spec.target) || self.spec.target == oldSelf.spec.target) && has(self.spec.duration) == has(oldSelf.spec.duration) && (!has(self.spec.duration) || self.spec.duration == oldSelf.spec.duration) && has(self.spec.deadline) == has(oldSelf.spec.deadline) && (!has(self.spec.deadline) || self.spec.deadline == oldSelf.spec.deadline) && has(self.spec.allow) == has(oldSelf.spec.allow) && (!has(self.spec.allow) || self.spec.allow == oldSelf.spec.allow))",message="the spec cannot change once the fault has started (only abort, suspend and ttlSecondsAfterFinished can): create a new object to run again"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 46 && !self.metadata.name.contains('.')",message="the name must be at most 46 characters long and hold no dot: its children's names and labels are made from it"
type RedisFault struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is what to break.
	// +required
	Spec RedisFaultSpec `json:"spec,omitzero"`

	// status is what happened.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status RedisFaultStatus `json:"status,omitzero"`
}

// RedisFaultList is a list of RedisFaults.
// +kubebuilder:object:root=true
type RedisFaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedisFault `json:"items"`
}
