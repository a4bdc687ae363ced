package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodKill deletes the pods; their controller replaces them. With spec.duration every replacement is
// deleted as well, as soon as it appears, until the duration has passed: a StatefulSet replaces a
// pod in 1 to 2 s, before a timeout of Sentinel or a cluster, so that no failover would happen.
type PodKill struct {
	// gracePeriodSeconds of the deletion. 0 removes the pod at once; its preStop hooks still run, for
	// up to a second. Defaults to the pod's terminationGracePeriodSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

// CrashMethod is how the server process is ended.
// +kubebuilder:validation:Enum=Shutdown;Segfault
type CrashMethod string

// The methods.
const (
	// CrashShutdown ends the process by SHUTDOWN NOSAVE: immediately, without saving.
	CrashShutdown CrashMethod = "Shutdown"
	// CrashSegfault crashes it by DEBUG SEGFAULT; the server must allow DEBUG.
	CrashSegfault CrashMethod = "Segfault"
)

// ProcessCrash ends the server process; the kubelet restarts its container in the same pod.
type ProcessCrash struct {
	// method by which the process is ended.
	// Shutdown: ends the process by SHUTDOWN NOSAVE: immediately, without saving.
	// Segfault: crashes it by DEBUG SEGFAULT; the server must allow DEBUG.
	// +optional
	// +kubebuilder:default=Shutdown
	Method CrashMethod `json:"method,omitempty"`
}

// OutOfMemory fills the server's memory, by requests that are never complete, until the kernel ends
// it at its container's limit; the kubelet restarts the container in the same pod. The data stay as
// they are, unless the server would evict some, which needs allow [Eviction].
type OutOfMemory struct {
	// timeout is how long filling the memory may take. After it the fault fails as InjectionFailed,
	// and the server drops what it was sent. Between 5s and 10m.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('10m')",message="must be between 5s and 10m"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// FailoverMethod is how a failover is performed.
// +kubebuilder:validation:Enum=Auto;Sentinel;Cluster;Replication
type FailoverMethod string

// The methods.
const (
	// FailoverAuto uses the method of the target's topology.
	FailoverAuto FailoverMethod = "Auto"
	// FailoverSentinel sends SENTINEL FAILOVER.
	FailoverSentinel FailoverMethod = "Sentinel"
	// FailoverCluster sends CLUSTER FAILOVER to a replica of the target's shard.
	FailoverCluster FailoverMethod = "Cluster"
	// FailoverReplication sends FAILOVER TO to a primary without sentinels, and points the other
	// replicas to the new primary.
	FailoverReplication FailoverMethod = "Replication"
)

// FailoverMode is how consistency is treated.
// +kubebuilder:validation:Enum=Plain;Coordinated;Force;Takeover
type FailoverMode string

// The modes.
const (
	// FailoverPlain uses the default of the method: with Sentinel it may lose acknowledged writes.
	FailoverPlain FailoverMode = "Plain"
	// FailoverCoordinated pauses writes first, or uses COORDINATED if the sentinel supports it;
	// Sentinel only.
	FailoverCoordinated FailoverMode = "Coordinated"
	// FailoverForce uses FORCE, without the old primary's consent; Cluster and Replication only.
	FailoverForce FailoverMode = "Force"
	// FailoverTakeover uses TAKEOVER, without the other primaries' votes; Cluster only.
	FailoverTakeover FailoverMode = "Takeover"
)

// Failover promotes a replica of the selected primary. It is not reverted: there is no failback.
// +kubebuilder:validation:XValidation:rule="self.mode != 'Takeover' || self.method in ['Auto', 'Cluster']",message="mode Takeover is Redis Cluster's"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Coordinated' || self.method in ['Auto', 'Sentinel']",message="mode Coordinated is Sentinel's: the failovers of Cluster and Replication coordinate by themselves"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Force' || self.method in ['Auto', 'Cluster', 'Replication']",message="mode Force is Cluster's and Replication's: SENTINEL FAILOVER knows none"
type Failover struct {
	// method is how the failover is performed.
	// Auto: uses the method of the target's topology.
	// Sentinel: sends SENTINEL FAILOVER.
	// Cluster: sends CLUSTER FAILOVER to a replica of the target's shard.
	// Replication: sends FAILOVER TO to a primary without sentinels, and points the other replicas to
	// the new primary.
	// +optional
	// +kubebuilder:default=Auto
	Method FailoverMethod `json:"method,omitempty"`

	// mode is how consistency is treated.
	// Plain: uses the default of the method: with Sentinel it may lose acknowledged writes.
	// Coordinated: pauses writes first, or uses COORDINATED if the sentinel supports it; Sentinel
	// only.
	// Force: uses FORCE, without the old primary's consent; Cluster and Replication only.
	// Takeover: uses TAKEOVER, without the other primaries' votes; Cluster only.
	// +optional
	// +kubebuilder:default=Plain
	Mode FailoverMode `json:"mode,omitempty"`

	// timeout bounds a failover by Replication (its TIMEOUT: writes are stopped until then at most)
	// and the pause of a coordinated one. Between 1s and 1m.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1m')",message="must be between 1s and 1m"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// KeepAway is how the replacement is kept off the node to which its volume is attached.
// +kubebuilder:validation:Enum=Taint;None
type KeepAway string

// The ways.
const (
	// KeepAwayTaint keeps new pods off the node by a taint until the fault is reverted.
	KeepAwayTaint KeepAway = "Taint"
	// KeepAwayNone does nothing: the pod's scheduling rules keep it off the node.
	KeepAwayNone KeepAway = "None"
)

// VolumeAttachDelay kills the pod while a holder pod on its node keeps the volume attached there:
// the replacement, on another node, gets a real Multi-Attach error until spec.duration has passed.
type VolumeAttachDelay struct {
	// keepAway is how the replacement is kept off the old node.
	// Taint: keeps new pods off the node by a taint until the fault is reverted.
	// None: does nothing: the pod's scheduling rules keep it off the node.
	// +optional
	// +kubebuilder:default=Taint
	KeepAway KeepAway `json:"keepAway,omitempty"`

	// image of the holder pod, which only sleeps. Defaults to the image of the Redis container, which
	// is already present on the node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// DiskFull fills the volume on which the server keeps its data, by a file without a name that a
// holder pod on the same node has open: the kernel frees it when the pod ends, however it ends. Only
// a file system of the claim's own is filled, ext4 or xfs; a folder of a larger one is refused.
type DiskFull struct {
	// leave is how much space is left on the volume, at most.
	// +optional
	// +kubebuilder:default="0"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",message="must be a size, such as 16Mi"
	Leave resource.Quantity `json:"leave,omitempty"`
}

// ApplyMethod is how a setting is changed.
// +kubebuilder:validation:Enum=Auto;Live;Roll
type ApplyMethod string

// The methods.
const (
	// ApplyAuto sets it live if the server allows that, otherwise by rolling the pods.
	ApplyAuto ApplyMethod = "Auto"
	// ApplyLive sets it by CONFIG SET.
	ApplyLive ApplyMethod = "Live"
	// ApplyRoll sets it in the StatefulSet's pod template, and replaces its pods one by one, replicas
	// first.
	ApplyRoll ApplyMethod = "Roll"
)

// IOThreads sets the number of I/O threads, the main thread included.
type IOThreads struct {
	// count of threads; 1 switches threaded I/O off.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Count int32 `json:"count,omitempty"`

	// reads makes the threads read and parse as well (io-threads-do-reads of Redis 6 and 7; later
	// servers always do).
	// +optional
	// +kubebuilder:default=false
	Reads bool `json:"reads,omitempty"`

	// method is how the setting is changed.
	// Auto: sets it live if the server allows that, otherwise by rolling the pods.
	// Live: sets it by CONFIG SET.
	// Roll: sets it in the StatefulSet's pod template, and replaces its pods one by one, replicas
	// first.
	// +optional
	// +kubebuilder:default=Auto
	Method ApplyMethod `json:"method,omitempty"`
}

// Config changes settings of the server by one CONFIG SET, and restores them.
type Config struct {
	// parameters by name, such as appendfsync: always. Parameters that would disconnect Redquake or
	// replicas (port, bind, requirepass and similar) are rejected.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 64 && k.matches('^[a-z0-9-]+$'))",message="a parameter's name has lower-case letters, digits and dashes"
	Parameters map[string]ParameterValue `json:"parameters,omitempty"`
}

// ParameterValue is a setting's value, as CONFIG SET takes it.
// +kubebuilder:validation:MaxLength=512
type ParameterValue string

// ReplicaScale adds replicas to the selected server's StatefulSet, or removes some, and reverts
// that.
type ReplicaScale struct {
	// by is the number of replicas to add; a negative number removes replicas.
	// +required
	// +kubebuilder:validation:Minimum=-16
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:validation:XValidation:rule="self != 0",message="0 would change nothing"
	By int32 `json:"by,omitempty"`

	// syncTimeout is how long it may take until all added replicas are in sync, and also how long the
	// revert may take. Between 1s and 1h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h"
	// +kubebuilder:validation:Type=string
	SyncTimeout metav1.Duration `json:"syncTimeout,omitzero"`
}

// Resources resizes the Redis container in place: its limits, and each request that equals its
// limit or would exceed it.
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory)",message="set cpu or memory, or both"
type Resources struct {
	// cpu is the CPU limit of the container.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory is the memory limit of the container.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// HangMethod is how the server is made to hang.
// +kubebuilder:validation:Enum=Auto;DebugSleep;Script;ClientPause
type HangMethod string

// The methods.
const (
	// HangAuto uses DebugSleep if the server allows it, otherwise Script, otherwise ClientPause.
	HangAuto HangMethod = "Auto"
	// HangDebugSleep uses DEBUG SLEEP: the main thread sleeps.
	HangDebugSleep HangMethod = "DebugSleep"
	// HangScript runs a Lua loop: the main thread is busy.
	HangScript HangMethod = "Script"
	// HangClientPause uses CLIENT PAUSE ALL: clients wait, replication and timers continue.
	HangClientPause HangMethod = "ClientPause"
)

// PodTemplate changes the pod template of the selected servers' StatefulSet, and replaces its pods
// one by one, replicas first. The former template is put back in the same way.
type PodTemplate struct {
	// patch of the template, at most 16 KiB.
	// +required
	Patch PodTemplatePatch `json:"patch,omitzero"`
}

// PodTemplatePatch is a strategic merge patch of a pod template, as kubectl patch takes it for
// spec.template of a StatefulSet.
// +kubebuilder:validation:MinProperties=1
type PodTemplatePatch struct {
	// metadata is what changes of the labels and annotations of the pods; null removes one. Labels by
	// which the StatefulSet selects its pods stay.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Metadata *runtime.RawExtension `json:"metadata,omitempty"`

	// spec is what changes of the pods' spec: containers, volumes and others are found by their names,
	// those of other names are added; null removes a field.
	// Fields that the operator does not know are rejected.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// Hang keeps the server from replying for spec.duration; the server continues by itself.
type Hang struct {
	// method is how the server is made to hang; the status shows which one was used.
	// Auto: uses DebugSleep if the server allows it, otherwise Script, otherwise ClientPause.
	// DebugSleep: uses DEBUG SLEEP: the main thread sleeps.
	// Script: runs a Lua loop: the main thread is busy.
	// ClientPause: uses CLIENT PAUSE ALL: clients wait, replication and timers continue.
	// +optional
	// +kubebuilder:default=Auto
	Method HangMethod `json:"method,omitempty"`
}

// PauseMode is which commands are suspended.
// +kubebuilder:validation:Enum=All;Write
type PauseMode string

// The modes.
const (
	// PauseAll suspends every command of every client.
	PauseAll PauseMode = "All"
	// PauseWrite suspends commands that write; reads are served.
	PauseWrite PauseMode = "Write"
)

// ClientPause suspends clients for spec.duration.
type ClientPause struct {
	// mode is which commands are suspended.
	// All: suspends every command of every client.
	// Write: suspends commands that write; reads are served.
	// +optional
	// +kubebuilder:default=All
	Mode PauseMode `json:"mode,omitempty"`
}

// ClientType is a class of connections, as named by Redis.
// +kubebuilder:validation:Enum=normal;replica;pubsub
type ClientType string

// The types.
const (
	// ClientNormal closes the connections of ordinary clients.
	ClientNormal ClientType = "normal"
	// ClientReplica closes those of replicas.
	ClientReplica ClientType = "replica"
	// ClientPubSub closes those of subscribers.
	ClientPubSub ClientType = "pubsub"
)

// ClientKill closes the connections of clients, once.
type ClientKill struct {
	// type of the connections. Normal clients include exporters, sentinels and operators.
	// normal: closes the connections of ordinary clients.
	// replica: closes those of replicas.
	// pubsub: closes those of subscribers.
	// +optional
	// +kubebuilder:default=normal
	Type ClientType `json:"type,omitempty"`
}

// SaveKind is the purpose of a fork.
// +kubebuilder:validation:Enum=Snapshot;AppendOnlyRewrite
type SaveKind string

// The kinds.
const (
	// SaveSnapshot forks for a snapshot: BGSAVE.
	SaveSnapshot SaveKind = "Snapshot"
	// SaveAppendOnlyRewrite forks to rewrite the append-only file: BGREWRITEAOF.
	SaveAppendOnlyRewrite SaveKind = "AppendOnlyRewrite"
)

// BackgroundSave makes the server fork, which stalls it while its page tables are copied.
type BackgroundSave struct {
	// kind of save.
	// Snapshot: forks for a snapshot: BGSAVE.
	// AppendOnlyRewrite: forks to rewrite the append-only file: BGREWRITEAOF.
	// +optional
	// +kubebuilder:default=Snapshot
	Kind SaveKind `json:"kind,omitempty"`
}

// LossMethod is how a node is lost.
// +kubebuilder:validation:Enum=Taint;Power
type LossMethod string

// The methods.
const (
	// LossTaint taints the node and force-deletes the target's pods on it; the machine goes on.
	LossTaint LossMethod = "Taint"
	// LossPower has the machine switched off by the power hook that the administrator has configured.
	LossPower LossMethod = "Power"
)

// NodeLoss is the loss of a node. It is simulated: the node is tainted, the target's pods on it are
// force-deleted, and it is untainted after spec.duration. Or the machine is switched off, and on
// again after spec.duration.
type NodeLoss struct {
	// node that is lost. It must be named: a fault never selects a node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// method by which it is lost.
	// Taint: taints the node and force-deletes the target's pods on it; the machine goes on.
	// Power: has the machine switched off by the power hook that the administrator has configured.
	// +optional
	// +kubebuilder:default=Taint
	Method LossMethod `json:"method,omitempty"`
}

// ZoneLoss simulates the loss of a zone: all its nodes are tainted, the target's pods on them are
// force-deleted, and the nodes are untainted after spec.duration.
type ZoneLoss struct {
	// zone that is lost: the label topology.kubernetes.io/zone of its nodes. It must be named: a fault
	// never selects a zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`
}

// Drain evicts the target's pods by the eviction API, as kubectl drain does, so that
// PodDisruptionBudgets apply: a pod whose eviction they refuse is tried again until they allow it.
// With spec.allow AllCopies all are evicted at once, and only budgets keep a copy; without it one
// after the other.
type Drain struct {
	// node that is drained of the target's pods, and takes no new pods until spec.duration has passed,
	// by a taint of the fault. Without it the selected pods are evicted wherever they are, and may
	// come back to the same node.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// gracePeriodSeconds of the evicted pods. Defaults to the pod's terminationGracePeriodSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
	// timeout is how long an eviction that is refused is tried again. After it the fault fails as
	// InjectionFailed. Between 30s and 1h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('1h')",message="must be between 30s and 1h"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// OperatorOutage scales the Deployment of the operator that looks after the Redis to 0, and back
// after spec.duration. Redis itself is not touched: other faults on it act meanwhile, without waiting.
type OperatorOutage struct {
	OperatorReference `json:",inline"`
}

// OperatorReference is the Deployment of an operator.
type OperatorReference struct {
	// deployment of the operator.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Deployment string `json:"deployment,omitempty"`
	// namespace of the Deployment. Defaults to that of the fault. Whoever names another namespace must
	// be allowed to scale Deployments in all, or to get them, for a fault of the network.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// External breaks nothing. It waits, from the trigger on, until somebody or something else breaks
// Redis, and measures that: from the instant in the annotation redquake.dev/mark of the RedisFault,
// or from the begin of the first anomaly or outage of the load, whichever comes first.
type External struct {
	// waitFor is how long to wait for that instant, from the trigger on. After it the fault fails as
	// NotMarked. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	WaitFor metav1.Duration `json:"waitFor,omitzero"`
}
