package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultType is a kind of fault.
// +kubebuilder:validation:Enum=PodKill;ProcessCrash;Failover;VolumeAttachDelay;IOThreads;Config;ReplicaScale;Resources;Hang;ClientPause;ClientKill;BackgroundSave;NodeLoss;NetworkDelay;NetworkLoss;NetworkPartition;DiskDelay;CPUStress;ClockSkew
type FaultType string

// The kinds.
const (
	FaultPodKill           FaultType = "PodKill"
	FaultProcessCrash      FaultType = "ProcessCrash"
	FaultFailover          FaultType = "Failover"
	FaultVolumeAttachDelay FaultType = "VolumeAttachDelay"
	FaultIOThreads         FaultType = "IOThreads"
	FaultConfig            FaultType = "Config"
	FaultReplicaScale      FaultType = "ReplicaScale"
	FaultResources         FaultType = "Resources"
	FaultHang              FaultType = "Hang"
	FaultClientPause       FaultType = "ClientPause"
	FaultClientKill        FaultType = "ClientKill"
	FaultBackgroundSave    FaultType = "BackgroundSave"
	FaultNodeLoss          FaultType = "NodeLoss"

	// By Chaos Mesh only.
	FaultNetworkDelay     FaultType = "NetworkDelay"
	FaultNetworkLoss      FaultType = "NetworkLoss"
	FaultNetworkPartition FaultType = "NetworkPartition"
	FaultDiskDelay        FaultType = "DiskDelay"
	FaultCPUStress        FaultType = "CPUStress"
	FaultClockSkew        FaultType = "ClockSkew"
)

// Engine is what injects a fault.
// +kubebuilder:validation:Enum=Native;ChaosMesh
type Engine string

// The engines.
const (
	EngineNative    Engine = "Native"    // Redquake itself
	EngineChaosMesh Engine = "ChaosMesh" // Chaos Mesh, in clusters that have it
)

// Allowance lifts one of the guards that keep a fault from breaking more than it should.
// +kubebuilder:validation:Enum=AllCopies;MajorityOfSentinels;TooFewCores;Eviction
type Allowance string

// The allowances.
const (
	AllowAllCopies           Allowance = "AllCopies"           // every copy of a slot at once, though there are several
	AllowMajorityOfSentinels Allowance = "MajorityOfSentinels" // so many sentinels that those left cannot elect a primary
	AllowTooFewCores         Allowance = "TooFewCores"         // more io-threads than the container's CPU limit has room for
	AllowEviction            Allowance = "Eviction"            // a maxmemory at which the server evicts data, which cannot be brought back
)

// RedisFaultSpec is one fault, injected once.
// +kubebuilder:validation:XValidation:rule="(!has(self.podKill) || self.type == 'PodKill') && (!has(self.processCrash) || self.type == 'ProcessCrash') && (!has(self.failover) || self.type == 'Failover') && (!has(self.volumeAttachDelay) || self.type == 'VolumeAttachDelay') && (!has(self.ioThreads) || self.type == 'IOThreads') && (!has(self.config) || self.type == 'Config') && (!has(self.replicaScale) || self.type == 'ReplicaScale') && (!has(self.resources) || self.type == 'Resources') && (!has(self.hang) || self.type == 'Hang') && (!has(self.clientPause) || self.type == 'ClientPause') && (!has(self.clientKill) || self.type == 'ClientKill') && (!has(self.backgroundSave) || self.type == 'BackgroundSave') && (!has(self.nodeLoss) || self.type == 'NodeLoss') && (!has(self.networkDelay) || self.type == 'NetworkDelay') && (!has(self.networkLoss) || self.type == 'NetworkLoss') && (!has(self.networkPartition) || self.type == 'NetworkPartition') && (!has(self.diskDelay) || self.type == 'DiskDelay') && (!has(self.cpuStress) || self.type == 'CPUStress') && (!has(self.clockSkew) || self.type == 'ClockSkew')",message="a fault breaks one thing: the member that is set must be the one that type names"
// +kubebuilder:validation:XValidation:rule="(self.type != 'IOThreads' || has(self.ioThreads)) && (self.type != 'Config' || has(self.config)) && (self.type != 'ReplicaScale' || has(self.replicaScale)) && (self.type != 'Resources' || has(self.resources)) && (self.type != 'NodeLoss' || has(self.nodeLoss)) && (self.type != 'NetworkDelay' || has(self.networkDelay)) && (self.type != 'NetworkLoss' || has(self.networkLoss)) && (self.type != 'NetworkPartition' || has(self.networkPartition)) && (self.type != 'DiskDelay' || has(self.diskDelay)) && (self.type != 'ClockSkew' || has(self.clockSkew))",message="the types IOThreads, Config, ReplicaScale, Resources, NodeLoss, NetworkDelay, NetworkLoss, NetworkPartition, DiskDelay and ClockSkew need the member of their name: it says what to do"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.type in ['IOThreads', 'Config', 'ReplicaScale', 'Resources', 'ClientPause', 'NodeLoss', 'NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew']",message="duration belongs to faults that stay until they are undone: IOThreads, Config, ReplicaScale, Resources, ClientPause, NodeLoss, NetworkDelay, NetworkLoss, NetworkPartition, DiskDelay, CPUStress, ClockSkew (podKill.keepDown, volumeAttachDelay.delay and hang.duration are the others')"
// +kubebuilder:validation:XValidation:rule="self.engine == 'ChaosMesh' ? self.type in ['PodKill', 'NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew'] : !(self.type in ['NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew'])",message="engine ChaosMesh injects PodKill, NetworkDelay, NetworkLoss, NetworkPartition, DiskDelay, CPUStress, ClockSkew; all but PodKill need it"
// +kubebuilder:validation:XValidation:rule="self.engine != 'ChaosMesh' || !has(self.podKill) || !has(self.podKill.keepDown)",message="podKill.keepDown is of engine Native: Chaos Mesh kills a pod once"
// +kubebuilder:validation:XValidation:rule="has(self.loadTestRef) || has(self.target)",message="set loadTestRef (the load that measures the fault) or target (a small probe load of its own measures it)"
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

	// duration is how long a lasting fault stays before it is undone, counted from the injection: 30s where absent. Between 1s and 24h.
	// It belongs to IOThreads, Config, ReplicaScale, Resources, ClientPause, NodeLoss, and to all that engine ChaosMesh injects but PodKill.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	Duration *metav1.Duration `json:"duration,omitempty"`

	// deadline is when the fault is over at the latest, counted from the object's creation: what was not injected by then will not be, what was
	// is undone. 24h where absent, and trigger.after more. Between 1s and 336h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('336h')",message="must be between 1s and 336h"
	// +kubebuilder:validation:Type=string
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// recoveryDeadline is how long recovery is waited for, from the injection, and from the undoing of a fault that lasts; no recovery by then
	// is NotRecovered. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	RecoveryDeadline metav1.Duration `json:"recoveryDeadline,omitzero"`

	// objectives decide the verdict. Without any, a fault that was confirmed and measured without a doubt passes.
	// +optional
	Objectives *FaultObjectives `json:"objectives,omitempty"`

	// allow lifts guards that would refuse the fault.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Allow []Allowance `json:"allow,omitempty"`

	// engine is what injects the fault. ChaosMesh must be installed in the cluster.
	// +optional
	// +kubebuilder:default=Native
	Engine Engine `json:"engine,omitempty"`

	// type of the fault; the member of the same name holds its settings.
	// +required
	Type FaultType `json:"type,omitempty"`

	// podKill deletes the pod.
	// +optional
	PodKill *PodKill `json:"podKill,omitempty"`

	// processCrash ends the server process; its container is restarted in place.
	// +optional
	ProcessCrash *ProcessCrash `json:"processCrash,omitempty"`

	// failover moves the primary to a replica.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// volumeAttachDelay kills the pod and keeps its volume attached to the old node, so that the replacement on another node has to wait for it.
	// +optional
	VolumeAttachDelay *VolumeAttachDelay `json:"volumeAttachDelay,omitempty"`

	// ioThreads changes the number of I/O threads.
	// +optional
	IOThreads *IOThreads `json:"ioThreads,omitempty"`

	// config changes settings of the server, live.
	// +optional
	Config *Config `json:"config,omitempty"`

	// replicaScale adds or removes replicas.
	// +optional
	ReplicaScale *ReplicaScale `json:"replicaScale,omitempty"`

	// resources changes the container's CPU and memory in place.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// hang makes the server answer nothing for a while.
	// +optional
	Hang *Hang `json:"hang,omitempty"`

	// clientPause suspends clients by CLIENT PAUSE.
	// +optional
	ClientPause *ClientPause `json:"clientPause,omitempty"`

	// clientKill closes the connections of clients.
	// +optional
	ClientKill *ClientKill `json:"clientKill,omitempty"`

	// backgroundSave makes the server fork, to save or to rewrite its append-only file.
	// +optional
	BackgroundSave *BackgroundSave `json:"backgroundSave,omitempty"`

	// nodeLoss takes a node away: it is cordoned and the Redis pods on it are deleted by force.
	// +optional
	NodeLoss *NodeLoss `json:"nodeLoss,omitempty"`

	// networkDelay makes packets of the server late; engine ChaosMesh.
	// +optional
	NetworkDelay *NetworkDelay `json:"networkDelay,omitempty"`

	// networkLoss drops some of its packets; engine ChaosMesh.
	// +optional
	NetworkLoss *NetworkLoss `json:"networkLoss,omitempty"`

	// networkPartition cuts it off from its peers; engine ChaosMesh.
	// +optional
	NetworkPartition *NetworkPartition `json:"networkPartition,omitempty"`

	// diskDelay makes its disk slow; engine ChaosMesh.
	// +optional
	DiskDelay *DiskDelay `json:"diskDelay,omitempty"`

	// cpuStress burns CPU in its container; engine ChaosMesh.
	// +optional
	CPUStress *CPUStress `json:"cpuStress,omitempty"`

	// clockSkew sets its clock off; engine ChaosMesh.
	// +optional
	ClockSkew *ClockSkew `json:"clockSkew,omitempty"`

	// abort ends the fault now: what was not yet injected will not be, what was is undone. It cannot be taken back.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an abort cannot be taken back: create a new object"
	Abort bool `json:"abort,omitempty"`

	// suspend keeps the fault from being injected until it is taken back. It does not undo an injected one: abort does.
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

// RedisRole is a server's role, as Redis tells it.
// +kubebuilder:validation:Enum=Primary;Replica;Any
type RedisRole string

// The roles.
const (
	RolePrimary RedisRole = "Primary"
	RoleReplica RedisRole = "Replica"
	RoleAny     RedisRole = "Any"
)

// SelectMode says how many of the matching servers are hit.
// +kubebuilder:validation:Enum=One;All;Count
type SelectMode string

// The modes.
const (
	SelectOne   SelectMode = "One"   // the first by name
	SelectAll   SelectMode = "All"   // every one
	SelectCount SelectMode = "Count" // as many as count says, the first by name
)

// FaultSelector says which servers are hit. The role is asked of Redis just before the injection.
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Count') == has(self.count)",message="count belongs to mode Count, and mode Count needs it"
type FaultSelector struct {
	// role that a server must have.
	// +optional
	// +kubebuilder:default=Any
	Role RedisRole `json:"role,omitempty"`

	// shard of a cluster that a server must belong to, counted from 0 by the lowest slot.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	Shard *int32 `json:"shard,omitempty"`

	// mode says how many.
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

// RedisFault breaks Redis once, undoes what it did, and says what clients lived through.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rfault,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
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
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (self.spec.recoveryDeadline == oldSelf.spec.recoveryDeadline && self.spec.engine == oldSelf.spec.engine && self.spec.type == oldSelf.spec.type && self.spec.select == oldSelf.spec.select && self.spec.trigger == oldSelf.spec.trigger && has(self.spec.loadTestRef) == has(oldSelf.spec.loadTestRef) && (!has(self.spec.loadTestRef) || self.spec.loadTestRef == oldSelf.spec.loadTestRef) && has(self.spec.target) == has(oldSelf.spec.target) && (!has(self.spec.target) || self.spec.target == oldSelf.spec.target) && has(self.spec.duration) == has(oldSelf.spec.duration) && (!has(self.spec.duration) || self.spec.duration == oldSelf.spec.duration) && has(self.spec.deadline) == has(oldSelf.spec.deadline) && (!has(self.spec.deadline) || self.spec.deadline == oldSelf.spec.deadline) && has(self.spec.allow) == has(oldSelf.spec.allow) && (!has(self.spec.allow) || self.spec.allow == oldSelf.spec.allow) && has(self.spec.podKill) == has(oldSelf.spec.podKill) && (!has(self.spec.podKill) || self.spec.podKill == oldSelf.spec.podKill) && has(self.spec.processCrash) == has(oldSelf.spec.processCrash) && (!has(self.spec.processCrash) || self.spec.processCrash == oldSelf.spec.processCrash) && has(self.spec.failover) == has(oldSelf.spec.failover) && (!has(self.spec.failover) || self.spec.failover == oldSelf.spec.failover) && has(self.spec.volumeAttachDelay) == has(oldSelf.spec.volumeAttachDelay) && (!has(self.spec.volumeAttachDelay) || self.spec.volumeAttachDelay == oldSelf.spec.volumeAttachDelay) && has(self.spec.ioThreads) == has(oldSelf.spec.ioThreads) && (!has(self.spec.ioThreads) || self.spec.ioThreads == oldSelf.spec.ioThreads) && has(self.spec.config) == has(oldSelf.spec.config) && (!has(self.spec.config) || self.spec.config == oldSelf.spec.config) && has(self.spec.replicaScale) == has(oldSelf.spec.replicaScale) && (!has(self.spec.replicaScale) || self.spec.replicaScale == oldSelf.spec.replicaScale) && has(self.spec.resources) == has(oldSelf.spec.resources) && (!has(self.spec.resources) || self.spec.resources == oldSelf.spec.resources) && has(self.spec.hang) == has(oldSelf.spec.hang) && (!has(self.spec.hang) || self.spec.hang == oldSelf.spec.hang) && has(self.spec.clientPause) == has(oldSelf.spec.clientPause) && (!has(self.spec.clientPause) || self.spec.clientPause == oldSelf.spec.clientPause) && has(self.spec.clientKill) == has(oldSelf.spec.clientKill) && (!has(self.spec.clientKill) || self.spec.clientKill == oldSelf.spec.clientKill) && has(self.spec.backgroundSave) == has(oldSelf.spec.backgroundSave) && (!has(self.spec.backgroundSave) || self.spec.backgroundSave == oldSelf.spec.backgroundSave) && has(self.spec.nodeLoss) == has(oldSelf.spec.nodeLoss) && (!has(self.spec.nodeLoss) || self.spec.nodeLoss == oldSelf.spec.nodeLoss) && has(self.spec.networkDelay) == has(oldSelf.spec.networkDelay) && (!has(self.spec.networkDelay) || self.spec.networkDelay == oldSelf.spec.networkDelay) && has(self.spec.networkLoss) == has(oldSelf.spec.networkLoss) && (!has(self.spec.networkLoss) || self.spec.networkLoss == oldSelf.spec.networkLoss) && has(self.spec.networkPartition) == has(oldSelf.spec.networkPartition) && (!has(self.spec.networkPartition) || self.spec.networkPartition == oldSelf.spec.networkPartition) && has(self.spec.diskDelay) == has(oldSelf.spec.diskDelay) && (!has(self.spec.diskDelay) || self.spec.diskDelay == oldSelf.spec.diskDelay) && has(self.spec.cpuStress) == has(oldSelf.spec.cpuStress) && (!has(self.spec.cpuStress) || self.spec.cpuStress == oldSelf.spec.cpuStress) && has(self.spec.clockSkew) == has(oldSelf.spec.clockSkew) && (!has(self.spec.clockSkew) || self.spec.clockSkew == oldSelf.spec.clockSkew))",message="the spec cannot change once the fault has started (only abort, suspend and ttlSecondsAfterFinished can): create a new object to run again"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.objectives) == has(oldSelf.spec.objectives) && (!has(self.spec.objectives) || self.spec.objectives == oldSelf.spec.objectives))",message="spec.objectives cannot change once the fault has started: create a new object to run again"
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
