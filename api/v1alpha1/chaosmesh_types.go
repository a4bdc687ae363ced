package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkPeers are the pods at the other end of a network fault. They are selected together with
// the targets and do not change afterwards.
// +kubebuilder:validation:Enum=Clients;Servers;Primary;Replicas;Sentinels
type NetworkPeers string

// The peers.
const (
	// PeersClients are the load pods of the test that measures the fault.
	PeersClients NetworkPeers = "Clients"
	// PeersServers are all other Redis servers of the target.
	PeersServers NetworkPeers = "Servers"
	// PeersPrimary is the primary of the target server's shard.
	PeersPrimary NetworkPeers = "Primary"
	// PeersReplicas are the other replicas of the target server's shard.
	PeersReplicas NetworkPeers = "Replicas"
	// PeersSentinels are the sentinels that are connected to the target server.
	PeersSentinels NetworkPeers = "Sentinels"
)

// NetworkDirection is the direction of the affected packets, from the perspective of the target
// server.
// +kubebuilder:validation:Enum=To;From;Both
type NetworkDirection string

// The directions.
const (
	// DirectionTo is packets that the server sends to its peers.
	DirectionTo NetworkDirection = "To"
	// DirectionFrom is packets that its peers send to it.
	DirectionFrom NetworkDirection = "From"
	// DirectionBoth is both.
	DirectionBoth NetworkDirection = "Both"
)

// Percentage is text such as 25% or 0.5%.
// +kubebuilder:validation:MaxLength=6
// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2}(\.[0-9]{1,2})?)%$`
type Percentage string

// NetworkDelay delays packets, by Chaos Mesh.
// +kubebuilder:validation:XValidation:rule="has(self.peers) || self.direction == 'To'",message="directions From and Both need peers"
// +kubebuilder:validation:XValidation:rule="!has(self.jitter) || duration(self.jitter) <= duration(self.latency)",message="jitter must not exceed latency"
type NetworkDelay struct {
	// latency that is added. Between 1ms and 10s. Without peers, a latency of 1s or more also makes
	// the kubelet's probes fail.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('10s')",message="must be between 1ms and 10s"
	// +kubebuilder:validation:Type=string
	Latency metav1.Duration `json:"latency,omitzero"`

	// jitter is the variation of the latency in both directions. At most latency. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('10s')",message="must be between 0s and 10s"
	// +kubebuilder:validation:Type=string
	Jitter *metav1.Duration `json:"jitter,omitempty"`

	// correlation of a packet's delay with that of the previous one. Defaults to none.
	// +optional
	Correlation Percentage `json:"correlation,omitempty"`

	// direction of the packets that are delayed, from the perspective of the target server.
	// To: packets that the server sends to its peers.
	// From: packets that its peers send to it.
	// Both: both.
	// +optional
	// +kubebuilder:default=To
	Direction NetworkDirection `json:"direction,omitempty"`

	// peers at the other end. Defaults to all.
	// Clients: the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that are connected to the target server.
	// +optional
	Peers NetworkPeers `json:"peers,omitempty"`
}

// NetworkLoss drops some packets, by Chaos Mesh.
// +kubebuilder:validation:XValidation:rule="has(self.peers) || self.direction == 'To'",message="directions From and Both need peers"
// +kubebuilder:validation:XValidation:rule="has(self.peers) || double(self.loss.split('%')[0]) <= 50.0",message="loss above 50% needs peers: it would cut off the kubelet's probes, too"
type NetworkLoss struct {
	// loss is the share of packets that are dropped, such as 25%. Above 50% it needs peers.
	// +required
	// +kubebuilder:validation:XValidation:rule="double(self.split('%')[0]) > 0.0",message="must be more than 0%"
	Loss Percentage `json:"loss,omitempty"`

	// correlation of a packet's loss with that of the previous one. Defaults to none.
	// +optional
	Correlation Percentage `json:"correlation,omitempty"`

	// direction of the packets that are dropped, from the perspective of the target server.
	// To: packets that the server sends to its peers.
	// From: packets that its peers send to it.
	// Both: both.
	// +optional
	// +kubebuilder:default=To
	Direction NetworkDirection `json:"direction,omitempty"`

	// peers at the other end. Defaults to all.
	// Clients: the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that are connected to the target server.
	// +optional
	Peers NetworkPeers `json:"peers,omitempty"`
}

// NetworkPartition drops all packets between the server and its peers, by Chaos Mesh. It requires
// peers: a server that is isolated from all pods is isolated from the kubelet's probes as well,
// which then restart it.
type NetworkPartition struct {
	// from is the peers from which the server is isolated.
	// Clients: the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that are connected to the target server.
	// +required
	From NetworkPeers `json:"from,omitempty"`

	// direction of the packets that are dropped, from the perspective of the target server.
	// To: packets that the server sends to its peers.
	// From: packets that its peers send to it.
	// Both: both.
	// +optional
	// +kubebuilder:default=Both
	Direction NetworkDirection `json:"direction,omitempty"`
}

// DiskMethod is a call of the file system.
// +kubebuilder:validation:Enum=Read;Write;Flush;Fsync
type DiskMethod string

// The calls.
const (
	// DiskRead is calls that read.
	DiskRead DiskMethod = "Read"
	// DiskWrite is calls that write.
	DiskWrite DiskMethod = "Write"
	// DiskFlush is calls that flush a file when it is closed.
	DiskFlush DiskMethod = "Flush"
	// DiskFsync is fsync.
	DiskFsync DiskMethod = "Fsync"
)

// DiskDelay delays the file system calls to a volume, by Chaos Mesh.
type DiskDelay struct {
	// delay of each call. Between 1ms and 1m.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('1m')",message="must be between 1ms and 1m"
	// +kubebuilder:validation:Type=string
	Delay metav1.Duration `json:"delay,omitzero"`

	// volumePath is the mount path of the volume in the Redis container. Defaults to the mount that
	// contains the server's dir.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/`
	VolumePath string `json:"volumePath,omitempty"`

	// path is a pattern of the affected files, such as /data/appendonlydir/*. Defaults to the whole
	// volume.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`

	// methods are the calls that are delayed.
	// Read: calls that read.
	// Write: calls that write.
	// Flush: calls that flush a file when it is closed.
	// Fsync: fsync.
	// +optional
	// +listType=set
	// +kubebuilder:default={Write,Fsync}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Methods []DiskMethod `json:"methods,omitempty"`

	// percent of the calls that are delayed.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
}

// CPUStress consumes CPU in the Redis container, by Chaos Mesh.
type CPUStress struct {
	// workers is the number of processes that consume CPU.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Workers int32 `json:"workers,omitempty"`

	// load of each worker, in percent of a core.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Load int32 `json:"load,omitempty"`
}

// ClockSkew shifts the server's wall clock, by Chaos Mesh. The clocks of other processes are not
// affected.
type ClockSkew struct {
	// offset of the clock; negative sets it back. Between -8760h and 8760h, and at least 1s to either
	// side.
	// +required
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^-?([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('-8760h') && duration(self) <= duration('8760h') && (duration(self) >= duration('1s') || duration(self) <= duration('-1s'))",message="must be between -8760h and 8760h, and at least 1s to either side"
	// +kubebuilder:validation:Type=string
	Offset metav1.Duration `json:"offset,omitzero"`
}
