package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodKill deletes the pods; their owner replaces them.
type PodKill struct {
	// gracePeriodSeconds given to the pod; 0 kills it at once, the pod's own where absent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`

	// keepDown deletes every replacement, too, as soon as it appears, for so long after the injection: a StatefulSet replaces a pod in 1 to 2 s,
	// before any Sentinel or cluster time-out, so that no failover would happen. Between 1s and 1h; not kept down where absent.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h"
	// +kubebuilder:validation:Type=string
	KeepDown *metav1.Duration `json:"keepDown,omitempty"`
}

// CrashMethod is how the server process is ended.
// +kubebuilder:validation:Enum=Shutdown;Segfault
type CrashMethod string

// The methods.
const (
	CrashShutdown CrashMethod = "Shutdown" // SHUTDOWN NOSAVE: ends at once, saves nothing
	CrashSegfault CrashMethod = "Segfault" // DEBUG SEGFAULT: a crash; the server must allow DEBUG
)

// ProcessCrash ends the server process; the kubelet restarts its container in the same pod.
type ProcessCrash struct {
	// method of ending it.
	// +optional
	// +kubebuilder:default=Shutdown
	Method CrashMethod `json:"method,omitempty"`
}

// FailoverMethod is who carries a failover out.
// +kubebuilder:validation:Enum=Auto;Sentinel;Cluster;Replication
type FailoverMethod string

// The methods.
const (
	FailoverAuto        FailoverMethod = "Auto"        // as the target's topology is
	FailoverSentinel    FailoverMethod = "Sentinel"    // SENTINEL FAILOVER
	FailoverCluster     FailoverMethod = "Cluster"     // CLUSTER FAILOVER, sent to a replica of the target's shard
	FailoverReplication FailoverMethod = "Replication" // FAILOVER TO, without sentinels; the other replicas are pointed to the new primary
)

// FailoverMode is how careful it is.
// +kubebuilder:validation:Enum=Plain;Coordinated;Force;Takeover
type FailoverMode string

// The modes.
const (
	FailoverPlain       FailoverMode = "Plain"       // as the method does by itself: through Sentinel it loses acknowledged writes
	FailoverCoordinated FailoverMode = "Coordinated" // Sentinel: writes are paused first, or COORDINATED where the server knows it
	FailoverForce       FailoverMode = "Force"       // Cluster, Replication: FORCE, without the old primary's consent
	FailoverTakeover    FailoverMode = "Takeover"    // Cluster: TAKEOVER, without the other primaries' votes
)

// Failover promotes a replica of the selected primary. What has been promoted stays so: it is not failed back.
// +kubebuilder:validation:XValidation:rule="self.mode != 'Takeover' || self.method in ['Auto', 'Cluster']",message="mode Takeover is Redis Cluster's"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Coordinated' || self.method in ['Auto', 'Sentinel']",message="mode Coordinated is Sentinel's: the failovers of Cluster and Replication coordinate by themselves"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Force' || self.method in ['Auto', 'Cluster', 'Replication']",message="mode Force is Cluster's and Replication's: SENTINEL FAILOVER knows none"
type Failover struct {
	// method says who carries it out.
	// +optional
	// +kubebuilder:default=Auto
	Method FailoverMethod `json:"method,omitempty"`

	// mode says how.
	// +optional
	// +kubebuilder:default=Plain
	Mode FailoverMode `json:"mode,omitempty"`

	// timeout bounds a failover through Replication (its TIMEOUT: writes stop until then at the longest) and the pause of a coordinated one. Between 1s and 1m.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1m')",message="must be between 1s and 1m"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// KeepAway is how the replacement is kept off the node that holds its volume.
// +kubebuilder:validation:Enum=Cordon;None
type KeepAway string

// The ways.
const (
	KeepAwayCordon KeepAway = "Cordon" // the node is unschedulable until the fault is undone
	KeepAwayNone   KeepAway = "None"   // nothing is done: the pod's own scheduling rules keep it away
)

// VolumeAttachDelay kills the pod while a holder pod on its node keeps the volume attached there: the replacement, on another node, meets a genuine
// Multi-Attach error for so long.
type VolumeAttachDelay struct {
	// delay is how long the volume is held, from the kill. Between 1s and 1h.
	// +optional
	// +kubebuilder:default="60s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h"
	// +kubebuilder:validation:Type=string
	Delay metav1.Duration `json:"delay,omitzero"`

	// keepAway says how the replacement is kept off the old node.
	// +optional
	// +kubebuilder:default=Cordon
	KeepAway KeepAway `json:"keepAway,omitempty"`

	// image of the holder pod, which only sleeps; the image of the Redis container where absent, as the node has it already.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// ApplyMethod is how a setting is changed.
// +kubebuilder:validation:Enum=Auto;Live;Roll
type ApplyMethod string

// The methods.
const (
	ApplyAuto ApplyMethod = "Auto" // live where the server allows it, else by rolling
	ApplyLive ApplyMethod = "Live" // CONFIG SET
	ApplyRoll ApplyMethod = "Roll" // by the StatefulSet's pod template; its pods are replaced one by one, replicas first
)

// IOThreads sets the number of I/O threads, the main thread included.
type IOThreads struct {
	// count of threads; 1 switches threaded I/O off.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	Count int32 `json:"count,omitempty"`

	// reads lets the threads read and parse, too (io-threads-do-reads of Redis 6 and 7; later servers always do).
	// +optional
	// +kubebuilder:default=false
	Reads bool `json:"reads,omitempty"`

	// method says how.
	// +optional
	// +kubebuilder:default=Auto
	Method ApplyMethod `json:"method,omitempty"`
}

// Config changes settings of the server by one CONFIG SET, and sets them back.
type Config struct {
	// parameters by name, such as appendfsync: always. Those that would cut Redquake or replicas off (port, bind, requirepass and such) are refused.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 64 && k.matches('^[a-z0-9-]+$'))",message="a parameter's name has lower-case letters, digits and dashes"
	Parameters map[string]ParameterValue `json:"parameters,omitempty"`
}

// ParameterValue is a setting's value, as CONFIG SET takes it.
// +kubebuilder:validation:MaxLength=512
type ParameterValue string

// ReplicaScale adds replicas to the selected server's StatefulSet, or removes some, and takes that back.
type ReplicaScale struct {
	// by is how many are added; negative removes.
	// +required
	// +kubebuilder:validation:Minimum=-16
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:validation:XValidation:rule="self != 0",message="0 would change nothing"
	By int32 `json:"by,omitempty"`

	// syncTimeout is how long the scaling may take until all that were added are in sync, and again how long taking it back may. Between 1s and 1h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be between 1s and 1h"
	// +kubebuilder:validation:Type=string
	SyncTimeout metav1.Duration `json:"syncTimeout,omitzero"`
}

// Resources resizes the Redis container in place: its limits, and each request that equals its limit or would be above it.
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory)",message="set cpu or memory, or both"
type Resources struct {
	// cpu that the container is limited to.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory that the container is limited to.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// HangMethod is how the server is made to hang.
// +kubebuilder:validation:Enum=Auto;DebugSleep;Script;ClientPause
type HangMethod string

// The methods.
const (
	HangAuto        HangMethod = "Auto"        // DebugSleep where the server allows it, else Script, else ClientPause
	HangDebugSleep  HangMethod = "DebugSleep"  // DEBUG SLEEP: the main thread sleeps
	HangScript      HangMethod = "Script"      // a Lua loop: the main thread is busy
	HangClientPause HangMethod = "ClientPause" // CLIENT PAUSE ALL: clients wait, replication and timers go on
)

// Hang makes the server answer nothing for a time; it goes on by itself.
type Hang struct {
	// duration is how long. Between 100ms and 10m.
	// +optional
	// +kubebuilder:default="3s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('10m')",message="must be between 100ms and 10m"
	// +kubebuilder:validation:Type=string
	Duration metav1.Duration `json:"duration,omitzero"`

	// method says how; the status tells which was used.
	// +optional
	// +kubebuilder:default=Auto
	Method HangMethod `json:"method,omitempty"`
}

// PauseMode says which commands wait.
// +kubebuilder:validation:Enum=All;Write
type PauseMode string

// The modes.
const (
	PauseAll   PauseMode = "All"   // every command of every client
	PauseWrite PauseMode = "Write" // commands that write; reads are served
)

// ClientPause suspends clients for spec.duration.
type ClientPause struct {
	// mode says which commands wait.
	// +optional
	// +kubebuilder:default=All
	Mode PauseMode `json:"mode,omitempty"`
}

// ClientType is a class of connections, in Redis's words.
// +kubebuilder:validation:Enum=normal;replica;pubsub
type ClientType string

// The types.
const (
	ClientNormal  ClientType = "normal"
	ClientReplica ClientType = "replica"
	ClientPubSub  ClientType = "pubsub"
)

// ClientKill closes the connections of clients, once.
type ClientKill struct {
	// type of the connections. Those of normal clients include exporters', sentinels' and operators'.
	// +optional
	// +kubebuilder:default=normal
	Type ClientType `json:"type,omitempty"`
}

// SaveKind is what a fork is made for.
// +kubebuilder:validation:Enum=Snapshot;AppendOnlyRewrite
type SaveKind string

// The kinds.
const (
	SaveSnapshot          SaveKind = "Snapshot"          // BGSAVE
	SaveAppendOnlyRewrite SaveKind = "AppendOnlyRewrite" // BGREWRITEAOF
)

// BackgroundSave makes the server fork, which stalls it for as long as its page tables take to copy.
type BackgroundSave struct {
	// kind of save.
	// +optional
	// +kubebuilder:default=Snapshot
	Kind SaveKind `json:"kind,omitempty"`
}

// NodeLoss takes a node away from Redis: it is cordoned, the target's pods on it are deleted by force, and it is uncordoned after spec.duration.
type NodeLoss struct {
	// node to lose. A fault never chooses one by itself.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
}
