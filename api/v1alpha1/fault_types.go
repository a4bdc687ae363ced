package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FaultType is a type of fault.
// +kubebuilder:validation:Enum=PodKill;ProcessCrash;OutOfMemory;Failover;VolumeAttachDelay;IOThreads;Config;ReplicaScale;Resources;PodTemplate;Hang;ClientPause;ClientKill;BackgroundSave;NodeLoss;ZoneLoss;Drain;OperatorOutage;VolumeLoss;DiskFull;NetworkDelay;NetworkLoss;NetworkPartition;DiskDelay;CPUStress;ClockSkew;External
type FaultType string

// The types.
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
	// FaultPodTemplate changes the pod template of the StatefulSet, and replaces its pods one by one.
	FaultPodTemplate FaultType = "PodTemplate"
	// FaultHang keeps the server from replying.
	FaultHang FaultType = "Hang"
	// FaultClientPause suspends clients by CLIENT PAUSE.
	FaultClientPause FaultType = "ClientPause"
	// FaultOutOfMemory fills the server's memory until the kernel ends it.
	FaultOutOfMemory FaultType = "OutOfMemory"
	// FaultClientKill closes the connections of clients.
	FaultClientKill FaultType = "ClientKill"
	// FaultBackgroundSave makes the server fork.
	FaultBackgroundSave FaultType = "BackgroundSave"
	// FaultNodeLoss taints a node and force-deletes the Redis pods on it, or has it switched off.
	FaultNodeLoss FaultType = "NodeLoss"
	// FaultZoneLoss taints all nodes of a zone and force-deletes the Redis pods on them.
	FaultZoneLoss FaultType = "ZoneLoss"
	// FaultDrain evicts the pod, as far as PodDisruptionBudgets allow.
	FaultDrain FaultType = "Drain"
	// FaultVolumeLoss deletes the pod and its claims, with the data.
	FaultVolumeLoss FaultType = "VolumeLoss"
	// FaultDiskFull fills the volume on which the server keeps its data.
	FaultDiskFull FaultType = "DiskFull"
	// FaultOperatorOutage scales the operator of the Redis to 0.
	FaultOperatorOutage FaultType = "OperatorOutage"

	// FaultNetworkDelay delays packets; engine ChaosMesh.
	FaultNetworkDelay FaultType = "NetworkDelay"
	// FaultNetworkLoss drops some packets.
	FaultNetworkLoss FaultType = "NetworkLoss"
	// FaultNetworkPartition drops all packets between the server and its peers.
	FaultNetworkPartition FaultType = "NetworkPartition"
	// FaultDiskDelay delays calls to the volume; engine ChaosMesh.
	FaultDiskDelay FaultType = "DiskDelay"
	// FaultCPUStress consumes CPU in the container; engine ChaosMesh.
	FaultCPUStress FaultType = "CPUStress"
	// FaultClockSkew shifts the server's wall clock; engine ChaosMesh.
	FaultClockSkew FaultType = "ClockSkew"

	// FaultExternal breaks nothing: it marks the instant at which somebody or something else broke
	// Redis.
	FaultExternal FaultType = "External"
)

// FaultTypes are the types.
var FaultTypes = []FaultType{
	FaultPodKill, FaultProcessCrash, FaultFailover, FaultVolumeAttachDelay, FaultIOThreads,
	FaultConfig, FaultReplicaScale, FaultResources, FaultPodTemplate, FaultHang,
	FaultOutOfMemory, FaultClientPause, FaultClientKill, FaultBackgroundSave, FaultNodeLoss, FaultZoneLoss, FaultDrain,
	FaultOperatorOutage, FaultVolumeLoss, FaultDiskFull, FaultNetworkDelay, FaultNetworkLoss,
	FaultNetworkPartition, FaultDiskDelay, FaultCPUStress,
	FaultClockSkew, FaultExternal,
}

// Action is what a fault does: its type, and the settings of that type.
// +kubebuilder:validation:XValidation:rule="!has(self.podKill) || self.type == 'PodKill'",message="podKill belongs to type PodKill: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.processCrash) || self.type == 'ProcessCrash'",message="processCrash belongs to type ProcessCrash: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || self.type == 'Failover'",message="failover belongs to type Failover: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeAttachDelay) || self.type == 'VolumeAttachDelay'",message="volumeAttachDelay belongs to type VolumeAttachDelay: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'IOThreads') == has(self.ioThreads)",message="ioThreads is required with type IOThreads, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Config') == has(self.config)",message="config is required with type Config, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ReplicaScale') == has(self.replicaScale)",message="replicaScale is required with type ReplicaScale, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Resources') == has(self.resources)",message="resources is required with type Resources, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'PodTemplate') == has(self.podTemplate)",message="podTemplate is required with type PodTemplate, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.hang) || self.type == 'Hang'",message="hang belongs to type Hang: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.clientPause) || self.type == 'ClientPause'",message="clientPause belongs to type ClientPause: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.outOfMemory) || self.type == 'OutOfMemory'",message="outOfMemory belongs to type OutOfMemory: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.clientKill) || self.type == 'ClientKill'",message="clientKill belongs to type ClientKill: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.backgroundSave) || self.type == 'BackgroundSave'",message="backgroundSave belongs to type BackgroundSave: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NodeLoss') == has(self.nodeLoss)",message="nodeLoss is required with type NodeLoss, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ZoneLoss') == has(self.zoneLoss)",message="zoneLoss is required with type ZoneLoss, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.drain) || self.type == 'Drain'",message="drain belongs to type Drain: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'OperatorOutage') == has(self.operatorOutage)",message="operatorOutage is required with type OperatorOutage, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.diskFull) || self.type == 'DiskFull'",message="diskFull belongs to type DiskFull: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkDelay') == has(self.networkDelay)",message="networkDelay is required with type NetworkDelay, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkLoss') == has(self.networkLoss)",message="networkLoss is required with type NetworkLoss, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'NetworkPartition') == has(self.networkPartition)",message="networkPartition is required with type NetworkPartition, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="(self.type == 'DiskDelay') == has(self.diskDelay)",message="diskDelay is required with type DiskDelay, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.cpuStress) || self.type == 'CPUStress'",message="cpuStress belongs to type CPUStress: set the member that type names, or none"
// +kubebuilder:validation:XValidation:rule="(self.type == 'ClockSkew') == has(self.clockSkew)",message="clockSkew is required with type ClockSkew, and forbidden otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || self.type == 'External'",message="external belongs to type External: set the member that type names, or none"
type Action struct {
	// type of the fault; the field of the same name contains its settings.
	// PodKill: deletes the pod; its controller replaces it.
	// ProcessCrash: ends the server process; the kubelet restarts its container in the same pod.
	// OutOfMemory: fills the server's memory until the kernel ends it at its container's limit.
	// Failover: promotes a replica in place of the primary.
	// VolumeAttachDelay: deletes the pod and keeps its volume attached to the old node, so that the
	// replacement waits for it.
	// IOThreads: changes the number of I/O threads.
	// Config: changes settings by CONFIG SET.
	// ReplicaScale: adds or removes replicas.
	// Resources: changes the container's CPU and memory in place.
	// PodTemplate: changes the pod template of the StatefulSet, and replaces its pods one by one.
	// Hang: keeps the server from replying to any request.
	// ClientPause: suspends clients by CLIENT PAUSE.
	// ClientKill: closes the connections of clients, once.
	// BackgroundSave: makes the server fork, to save or to rewrite its append-only file.
	// NodeLoss: taints a node and force-deletes the Redis pods on it, or has it switched off.
	// ZoneLoss: taints all nodes of a zone and force-deletes the Redis pods on them.
	// Drain: evicts the pod, as far as PodDisruptionBudgets allow.
	// OperatorOutage: scales the operator of the Redis to 0.
	// VolumeLoss: deletes the pod and its claims; the data on them is lost for good.
	// DiskFull: fills the volume on which the server keeps its data.
	// NetworkPartition: drops all packets between the server and its peers.
	// NetworkLoss: drops some packets.
	// NetworkDelay: delays packets of the server.
	// External: breaks nothing; marks the instant at which somebody or something else broke Redis, and
	// measures it.
	// Engine ChaosMesh has PodKill, NetworkPartition, NetworkLoss, NetworkDelay and these:
	// DiskDelay: delays calls to its volume.
	// CPUStress: consumes CPU in its container.
	// ClockSkew: shifts its wall clock.
	// +required
	Type FaultType `json:"type,omitempty"`

	// podKill deletes the pod.
	// +optional
	PodKill *PodKill `json:"podKill,omitempty"`

	// processCrash ends the server process; its container is restarted in place.
	// +optional
	ProcessCrash *ProcessCrash `json:"processCrash,omitempty"`

	// outOfMemory fills the server's memory until the kernel ends it at its container's limit.
	// +optional
	OutOfMemory *OutOfMemory `json:"outOfMemory,omitempty"`

	// failover moves the primary to a replica.
	// +optional
	Failover *Failover `json:"failover,omitempty"`

	// volumeAttachDelay kills the pod and keeps its volume attached to the old node, so that the
	// replacement on another node has to wait for it.
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

	// podTemplate changes the pod template of the StatefulSet, and replaces its pods one by one.
	// +optional
	PodTemplate *PodTemplate `json:"podTemplate,omitempty"`

	// hang keeps the server from replying.
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

	// nodeLoss simulates the loss of a node: it is tainted and the Redis pods on it are force-deleted.
	// +optional
	NodeLoss *NodeLoss `json:"nodeLoss,omitempty"`

	// zoneLoss simulates the loss of a zone: its nodes are tainted and the Redis pods on them are
	// force-deleted.
	// +optional
	ZoneLoss *ZoneLoss `json:"zoneLoss,omitempty"`

	// drain evicts the pod, as far as PodDisruptionBudgets allow.
	// +optional
	Drain *Drain `json:"drain,omitempty"`

	// operatorOutage scales the operator of the Redis to 0.
	// +optional
	OperatorOutage *OperatorOutage `json:"operatorOutage,omitempty"`

	// diskFull fills the volume on which the server keeps its data.
	// +optional
	DiskFull *DiskFull `json:"diskFull,omitempty"`

	// networkDelay delays packets of the server.
	// +optional
	NetworkDelay *NetworkDelay `json:"networkDelay,omitempty"`

	// networkLoss drops some packets of the server.
	// +optional
	NetworkLoss *NetworkLoss `json:"networkLoss,omitempty"`

	// networkPartition cuts it off from its peers.
	// +optional
	NetworkPartition *NetworkPartition `json:"networkPartition,omitempty"`

	// diskDelay delays calls to its volume; engine ChaosMesh.
	// +optional
	DiskDelay *DiskDelay `json:"diskDelay,omitempty"`

	// cpuStress consumes CPU in its container; engine ChaosMesh.
	// +optional
	CPUStress *CPUStress `json:"cpuStress,omitempty"`

	// clockSkew shifts its wall clock; engine ChaosMesh.
	// +optional
	ClockSkew *ClockSkew `json:"clockSkew,omitempty"`

	// external is how the instant is found at which somebody or something else breaks Redis.
	// +optional
	External *External `json:"external,omitempty"`
}

// Engine is the implementation that injects a fault.
// +kubebuilder:validation:Enum=Native;ChaosMesh
type Engine string

// The engines.
const (
	// EngineNative is Redquake itself.
	EngineNative Engine = "Native"
	// EngineChaosMesh is Chaos Mesh, in clusters where it is installed.
	EngineChaosMesh Engine = "ChaosMesh"
)

// Allowance lifts one of the guards that limit the impact of a fault.
// +kubebuilder:validation:Enum=AllCopies;DataLoss;MajorityOfSentinels;MajorityOfPrimaries;TooFewCores;Eviction;Expiry
type Allowance string

// The allowances.
const (
	// AllowAllCopies permits disabling all copies of a slot at once, although there are several.
	AllowAllCopies Allowance = "AllCopies"
	// AllowDataLoss permits ending a primary that would come back without its data while others
	// replicate from it: they copy its empty data set.
	AllowDataLoss Allowance = "DataLoss"
	// AllowMajorityOfSentinels permits disabling so many sentinels that the others cannot elect a
	// primary.
	AllowMajorityOfSentinels Allowance = "MajorityOfSentinels"
	// AllowMajorityOfPrimaries permits disabling so many primaries of a cluster that the others cannot
	// elect a replica.
	AllowMajorityOfPrimaries Allowance = "MajorityOfPrimaries"
	// AllowTooFewCores permits more I/O threads than the container's CPU limit has cores.
	AllowTooFewCores Allowance = "TooFewCores"
	// AllowEviction permits a maxmemory at which the server evicts data, which cannot be restored.
	AllowEviction Allowance = "Eviction"
	// AllowExpiry permits setting the clock of a server forward that has keys with an expiry: those
	// expire early, and cannot be restored.
	AllowExpiry Allowance = "Expiry"
)

// RedisFaultSpec defines a fault, which is injected once.
// +kubebuilder:validation:XValidation:rule="self.engine == 'ChaosMesh' ? self.action.type in ['PodKill', 'NetworkDelay', 'NetworkLoss', 'NetworkPartition', 'DiskDelay', 'CPUStress', 'ClockSkew'] : !(self.action.type in ['DiskDelay', 'CPUStress', 'ClockSkew'])",message="engine ChaosMesh injects PodKill, NetworkLoss, NetworkPartition, NetworkDelay, DiskDelay, CPUStress, ClockSkew; the last three need it"
// +kubebuilder:validation:XValidation:rule="self.engine == 'ChaosMesh' || !has(self.action.networkDelay) || self.action.networkDelay.direction == 'Out'",message="engine Native delays what the server sends: leave direction out, or use engine ChaosMesh",fieldPath=".action.networkDelay.direction"
// +kubebuilder:validation:XValidation:rule="self.engine != 'ChaosMesh' || !has(self.action.networkDelay) || !has(self.action.networkDelay.peers) || (size(self.action.networkDelay.peers) == 1 || !('Clients' in self.action.networkDelay.peers))",message="engine ChaosMesh has Clients only alone",fieldPath=".action.networkDelay.peers"
// +kubebuilder:validation:XValidation:rule="self.engine != 'ChaosMesh' || !has(self.action.networkLoss) || has(self.action.networkLoss.peers) || (self.action.networkLoss.direction == 'Out' && double(self.action.networkLoss.loss.split('%')[0]) <= 50.0)",message="without peers engine ChaosMesh drops packets of direction Out only, and at most 50%, as the kubelet's probes are among them",fieldPath=".action.networkLoss"
// +kubebuilder:validation:XValidation:rule="self.engine != 'ChaosMesh' || !has(self.action.networkLoss) || !has(self.action.networkLoss.peers) || (!('All' in self.action.networkLoss.peers) && !('Operator' in self.action.networkLoss.peers) && (size(self.action.networkLoss.peers) == 1 || !('Clients' in self.action.networkLoss.peers)))",message="engine ChaosMesh has no All, no Operator, and Clients only alone",fieldPath=".action.networkLoss.peers"
// +kubebuilder:validation:XValidation:rule="self.engine != 'ChaosMesh' || !has(self.action.networkPartition) || (!('All' in self.action.networkPartition.peers) && !('Operator' in self.action.networkPartition.peers) && (size(self.action.networkPartition.peers) == 1 || !('Clients' in self.action.networkPartition.peers)))",message="engine ChaosMesh has no All, no Operator, and Clients only alone",fieldPath=".action.networkPartition.peers"
// +kubebuilder:validation:XValidation:rule="self.engine == 'ChaosMesh' || !has(self.action.networkLoss) || !has(self.action.networkLoss.correlation)",message="packets are drawn independently of each other: leave correlation out, or use engine ChaosMesh",fieldPath=".action.networkLoss.correlation"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || !(self.action.type in ['ProcessCrash', 'OutOfMemory', 'Failover', 'ClientKill', 'BackgroundSave', 'VolumeLoss', 'External'])",message="a fault of type ProcessCrash, OutOfMemory, Failover, ClientKill, BackgroundSave, VolumeLoss or External does not last: leave duration out",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="self.action.type != 'VolumeLoss' || (has(self.allow) && 'DataLoss' in self.allow)",message="VolumeLoss deletes data for good: say so by allow [DataLoss]",fieldPath=".allow"
// +kubebuilder:validation:XValidation:rule="self.action.type != 'ZoneLoss' || !has(self.select.zone)",message="the zone is that of action.zoneLoss: leave zone out",fieldPath=".select.zone"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.action.type != 'Drain' || (has(self.action.drain) && has(self.action.drain.node))",message="without drain.node nothing of a Drain lasts: leave duration out",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="self.action.type != 'External' || (self.select.role == 'Any' && self.select.mode == 'One' && !has(self.select.shard) && !has(self.select.names) && !has(self.select.zone))",message="type External breaks nothing and selects no server: leave select out",fieldPath=".select"
// +kubebuilder:validation:XValidation:rule="self.action.type != 'External' || !has(self.stopIf)",message="type External breaks nothing that could be reverted: leave stopIf out",fieldPath=".stopIf"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.engine != 'ChaosMesh' || self.action.type != 'PodKill'",message="engine ChaosMesh kills a pod once: leave duration out, or use engine Native",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.action.type == 'Hang' || duration(self.duration) >= duration('1s')",message="must be at least 1s, unless type is Hang",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || self.action.type != 'Hang' || duration(self.duration) <= duration('10m')",message="must be at most 10m with type Hang",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!has(self.duration) || !(self.action.type in ['PodKill', 'VolumeAttachDelay', 'DiskFull']) || duration(self.duration) <= duration('1h')",message="must be at most 1h with types PodKill, VolumeAttachDelay and DiskFull",fieldPath=".duration"
// +kubebuilder:validation:XValidation:rule="!self.setting || self.action.type in ['Config', 'IOThreads', 'ReplicaScale', 'Resources', 'PodTemplate', 'NetworkDelay', 'NetworkLoss', 'DiskDelay', 'CPUStress', 'ClockSkew']",message="a setting lasts and leaves Redis serving: set action.type to Config, IOThreads, ReplicaScale, Resources, PodTemplate, NetworkDelay, NetworkLoss, DiskDelay, CPUStress or ClockSkew",fieldPath=".action.type"
// +kubebuilder:validation:XValidation:rule="!self.setting || (!has(self.trigger.steadyFor) && !has(self.trigger.after) && self.trigger.timeout == '5m')",message="a setting is injected at once, before its load: leave trigger out",fieldPath=".trigger"
// +kubebuilder:validation:XValidation:rule="!self.setting || !has(self.objectives)",message="nothing is measured against a setting: leave objectives out, and set those of the load test",fieldPath=".objectives"
// +kubebuilder:validation:XValidation:rule="!self.setting || !has(self.stopIf) || (!has(self.stopIf.outage) && !has(self.stopIf.errorRate) && !has(self.stopIf.lostWrites))",message="nothing is measured against a setting: stopIf can have queries only",fieldPath=".stopIf"
// +kubebuilder:validation:XValidation:rule="!self.setting || self.engine != 'ChaosMesh' || ((!has(self.action.networkDelay) || !has(self.action.networkDelay.peers) || !('Clients' in self.action.networkDelay.peers)) && (!has(self.action.networkLoss) || !has(self.action.networkLoss.peers) || !('Clients' in self.action.networkLoss.peers)))",message="a setting is injected before the load pods exist: set other peers than Clients, or leave peers out",fieldPath=".action"
// +kubebuilder:validation:XValidation:rule="!has(self.beside) || (!self.setting && self.action.type != 'External')",message="a setting, and a fault of type External, act beside others anyway: leave beside out",fieldPath=".beside"
// +kubebuilder:validation:XValidation:rule="!has(self.trigger.afterBeside) || has(self.beside)",message="afterBeside counts from when the faults in beside act: set beside, or after",fieldPath=".trigger.afterBeside"
type RedisFaultSpec struct {
	// loadTestRef is the load that measures the fault. Without it the fault runs a small open-loop
	// probe load.
	// +optional
	LoadTestRef *LoadTestReference `json:"loadTestRef,omitempty"`

	// target is the Redis of the fault. Defaults to the target of the load test.
	// +optional
	Target *RedisTarget `json:"target,omitempty"`

	// probePods is how the pods of the probe load are made, without loadTestRef.
	// +optional
	ProbePods *LoadPodTemplate `json:"probePods,omitempty"`

	// select selects the servers of the target.
	// +optional
	// +kubebuilder:default={}
	Select FaultSelector `json:"select,omitzero"`

	// trigger is when the fault is injected.
	// +optional
	// +kubebuilder:default={}
	Trigger FaultTrigger `json:"trigger,omitzero"`

	// action is what is done to each selected server.
	// +required
	Action Action `json:"action,omitzero"`

	// setting makes the fault a setting of the load test in loadTestRef: the configuration, or the
	// size, of Redis that this load runs with, and against which nothing is measured. It is injected
	// at once, whether the load test exists yet or not, and reverted once the load test is complete,
	// has failed, or is deleted after it had started. Other faults on the same load test act beside
	// it, and the load test does not count it as a fault.
	// Only with types Config, IOThreads, ReplicaScale, Resources, PodTemplate, NetworkDelay,
	// NetworkLoss, DiskDelay, CPUStress and ClockSkew, which must leave Redis serving; without
	// trigger, objectives, and stopIf other than queries.
	// +optional
	// +kubebuilder:default=false
	Setting bool `json:"setting,omitempty"`

	// beside are other faults of this namespace, by name, that this one acts beside: it is injected
	// while they act, although they act on the same servers or change their workload, and is measured
	// against the throughput beside them. It waits until each of them is complete on all its targets,
	// for one that does not exist at most for trigger.timeout, and fails as NotBeside if one is over
	// before. The guards count what all of them keep from serving. Two that change the same of a server
	// or a workload are refused.
	// In an experiment: names of its faults.
	// Not allowed for settings, which other faults act beside anyway, and with type External.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=46
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Beside []string `json:"beside,omitempty"`

	// duration is how long a lasting fault stays, from the instant at which it is complete on all
	// targets to its revert. For a setting, the longest time.
	// Defaults to 30s, for a setting to 24h, except for PodKill: without duration a pod is killed
	// once, with it every replacement is killed as well until duration has passed.
	// Between 1s and 24h; with type Hang between 100ms and 10m, with types PodKill, VolumeAttachDelay
	// and DiskFull between 1s and 1h.
	// Not allowed with ProcessCrash, OutOfMemory, Failover, ClientKill, BackgroundSave, VolumeLoss,
	// External, Drain without node, and PodKill by engine ChaosMesh, which do not last.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="must be between 100ms and 24h"
	// +kubebuilder:validation:Type=string
	Duration *metav1.Duration `json:"duration,omitempty"`

	// dryRun selects the targets, applies every guard and check of a real fault, and stores warnings,
	// plan and revert records in the status. Nothing is injected: the fault then ends as DryRun. It
	// waits for no load, no trigger and no other fault, and no other fault waits for it.
	// +optional
	// +kubebuilder:default=false
	DryRun bool `json:"dryRun,omitempty"`

	// deadline is the maximum age of the object at which the fault ends: targets not injected by then
	// are not injected, others are reverted.
	// Defaults to 24h plus trigger.after or trigger.steadyFor, plus duration if it is set (for a
	// setting, in any case), and plus action.external.waitFor.
	// Between 1s and 336h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('336h')",message="must be between 1s and 336h"
	// +kubebuilder:validation:Type=string
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// recoveryDeadline is the maximum time until recovery, counted from the injection, or from the
	// revert of a lasting fault. After it the fault fails as NotRecovered. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	RecoveryDeadline metav1.Duration `json:"recoveryDeadline,omitzero"`

	// objectives determine the verdict, together with recovery within recoveryDeadline. Without
	// objectives a fault passes if its effect was confirmed, the figures are reliable, and the load
	// recovered.
	// +optional
	Objectives *FaultObjectives `json:"objectives,omitempty"`

	// stopIf are conditions that end the fault before its time: it is reverted at once, and its
	// verdict is Fail. A fault for which one holds before the injection is not injected.
	// +optional
	StopIf *StopConditions `json:"stopIf,omitempty"`

	// allow lifts guards that would reject the fault.
	// AllCopies: permits disabling all copies of a slot at once, although there are several. All
	// targets are then hit at the same time, after one check, by the types PodKill, ProcessCrash,
	// Hang, ClientPause, ClientKill, BackgroundSave and Config.
	// DataLoss: permits ending a primary that would come back without its data while others replicate
	// from it: they copy its empty data set.
	// MajorityOfSentinels: permits disabling so many sentinels that the others cannot elect a primary.
	// MajorityOfPrimaries: permits disabling so many primaries of a cluster that the others cannot
	// elect a replica.
	// TooFewCores: permits more I/O threads than the container's CPU limit has cores.
	// Eviction: permits a maxmemory at which the server evicts data, which cannot be restored.
	// Expiry: permits setting the clock of a server forward that has keys with an expiry: those expire
	// early, and cannot be restored.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Allow []Allowance `json:"allow,omitempty"`

	// engine is the implementation that injects the fault.
	// Native: Redquake itself.
	// ChaosMesh: Chaos Mesh, which must be installed in the cluster.
	// +optional
	// +kubebuilder:default=Native
	Engine Engine `json:"engine,omitempty"`

	// abort ends the fault immediately: targets not yet injected are not injected, others are
	// reverted. It cannot be reset.
	// +optional
	// +kubebuilder:default=false
	// +kubebuilder:validation:XValidation:rule="self || !oldSelf",message="an abort cannot be taken back: create a new object"
	Abort bool `json:"abort,omitempty"`

	// suspend keeps the fault from being injected until it is reset. It does not revert an injected
	// fault; abort does.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is the time after which the finished object is deleted. It is not
	// deleted if this is not set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// RedisFault injects a fault into Redis once, reverts it, and reports its impact on clients.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:shortName=rfault,categories=redquake
// +kubebuilder:selectablefield:JSONPath=`.spec.action.type`
// +kubebuilder:selectablefield:JSONPath=`.status.holding`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.action.type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].reason`,description="State of the fault"
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.display.target`,description="The target pod"
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.status.effect`,description="Whether Redis and the cluster show the effect"
// +kubebuilder:printcolumn:name="Dip",type=string,JSONPath=`.status.display.dip`,description="Largest drop of the throughput, of reads or of writes"
// +kubebuilder:printcolumn:name="Outage",type=string,JSONPath=`.status.display.outage`,description="Longest period without a success"
// +kubebuilder:printcolumn:name="Recovery",type=string,JSONPath=`.status.display.recovery`,description="Time from the injection to sustained recovery"
// +kubebuilder:printcolumn:name="LostWrites",type=string,JSONPath=`.status.display.lostWrites`,description="Acknowledged ledger writes that were lost; empty until the load has ended and its ledger was read back"
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`,description="Pass, Fail or Inconclusive"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="WhileActive",type=string,priority=1,JSONPath=`.status.display.whileActive`,description="Changes of throughput and p99 while a fault that lasts was there"
// +kubebuilder:printcolumn:name="LoadTest",type=string,priority=1,JSONPath=`.status.loadTest`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Complete")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (self.spec.action == oldSelf.spec.action && self.spec.select == oldSelf.spec.select && self.spec.trigger == oldSelf.spec.trigger && has(self.spec.objectives) == has(oldSelf.spec.objectives) && (!has(self.spec.objectives) || self.spec.objectives == oldSelf.spec.objectives) && self.spec.recoveryDeadline == oldSelf.spec.recoveryDeadline && self.spec.engine == oldSelf.spec.engine && self.spec.dryRun == oldSelf.spec.dryRun && self.spec.setting == oldSelf.spec.setting && has(self.spec.loadTestRef) == has(oldSelf.spec.loadTestRef) && (!has(self.spec.loadTestRef) || self.spec.loadTestRef == oldSelf.spec.loadTestRef) && has(self.spec.target) == has(oldSelf.spec.target) && (!has(self.spec.target) || self.spec.target == oldSelf.spec.target) && has(self.spec.probePods) == has(oldSelf.spec.probePods) && (!has(self.spec.probePods) || self.spec.probePods == oldSelf.spec.probePods) && has(self.spec.duration) == has(oldSelf.spec.duration) && (!has(self.spec.duration) || self.spec.duration == oldSelf.spec.duration) && has(self.spec.deadline) == has(oldSelf.spec.deadline) && (!has(self.spec.deadline) || self.spec.deadline == oldSelf.spec.deadline) && has(self.spec.allow) == has(oldSelf.spec.allow) && (!has(self.spec.allow) || self.spec.allow == oldSelf.spec.allow) && has(self.spec.beside) == has(oldSelf.spec.beside) && (!has(self.spec.beside) || self.spec.beside == oldSelf.spec.beside) && has(self.spec.stopIf) == has(oldSelf.spec.stopIf) && (!has(self.spec.stopIf) || self.spec.stopIf == oldSelf.spec.stopIf))",message="the spec cannot change once the fault has started (only abort, suspend and ttlSecondsAfterFinished can): create a new object to run again"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 46 && !self.metadata.name.contains('.')",fieldPath=".metadata",message="the name must be at most 46 characters long and hold no dot: its children's names and labels are made from it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.loadTestRef) || has(self.spec.target)",message="set loadTestRef (the load that measures the fault) or target (a small probe load of its own measures it)",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.stopIf) || !has(self.spec.stopIf.lostWrites) || has(self.spec.loadTestRef)",message="stopIf.lostWrites needs loadTestRef, a load test with verify.acknowledgedWrites: the probe load of a fault has no ledger",fieldPath=".spec.stopIf"
// +kubebuilder:validation:XValidation:rule="!self.spec.setting || has(self.spec.loadTestRef)",message="a setting needs loadTestRef: the load test that runs with it, which may be created later",fieldPath=".spec.setting"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.probePods) || !has(self.spec.loadTestRef)",message="probePods are those of the load that a fault without loadTestRef has: set pods of the load test",fieldPath=".spec.probePods"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.beside) || !(self.metadata.name in self.spec.beside)",message="a fault cannot act beside itself",fieldPath=".spec.beside"
type RedisFault struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired fault.
	// +required
	Spec RedisFaultSpec `json:"spec,omitzero"`

	// status is the observed state and the results.
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
