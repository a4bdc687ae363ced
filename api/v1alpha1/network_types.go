package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkPeer is who is at the other end of a fault of the network.
// +kubebuilder:validation:Enum=Clients;Servers;Primary;Replicas;Sentinels;Operator;All
type NetworkPeer string

// The peers.
const (
	// PeerClients are all but the servers and sentinels of the target and the operator of Redquake;
	// with engine ChaosMesh only the load pods of the test that measures the fault.
	PeerClients NetworkPeer = "Clients"
	// PeerServers are all other Redis servers of the target.
	PeerServers NetworkPeer = "Servers"
	// PeerPrimary is the primary of the target server's shard.
	PeerPrimary NetworkPeer = "Primary"
	// PeerReplicas are the other replicas of the target server's shard.
	PeerReplicas NetworkPeer = "Replicas"
	// PeerSentinels are the sentinels that watch the target server.
	PeerSentinels NetworkPeer = "Sentinels"
	// PeerOperator is the operator that looks after the Redis; engine Native only.
	PeerOperator NetworkPeer = "Operator"
	// PeerAll is everybody but the node of the pod, whose kubelet probes it; engine Native only.
	PeerAll NetworkPeer = "All"
)

// NetworkDirection is the direction of the affected packets, from the perspective of the target
// server.
// +kubebuilder:validation:Enum=In;Out;Both
type NetworkDirection string

// The directions.
const (
	// DirectionIn is packets that the server receives from its peers.
	DirectionIn NetworkDirection = "In"
	// DirectionOut is packets that the server sends to its peers.
	DirectionOut NetworkDirection = "Out"
	// DirectionBoth is both.
	DirectionBoth NetworkDirection = "Both"
)

// Percentage is text such as 25% or 0.5%.
// +kubebuilder:validation:MaxLength=6
// +kubebuilder:validation:Pattern=`^(100|[0-9]{1,2}(\.[0-9]{1,2})?)%$`
type Percentage string

// NetworkDelay delays packets, by the netem of the node's kernel.
// +kubebuilder:validation:XValidation:rule="has(self.peers) || self.direction == 'Out'",message="directions In and Both need peers"
// +kubebuilder:validation:XValidation:rule="!has(self.peers) || (!('All' in self.peers) && !('Operator' in self.peers))",message="leave peers out for all; there is no delay to the Operator"
// +kubebuilder:validation:XValidation:rule="!has(self.jitter) || duration(self.jitter) <= duration(self.latency)",message="jitter must not exceed latency"
type NetworkDelay struct {
	// latency that is added. Between 1ms and 10s. Without peers, a latency of 1s or more by engine
	// ChaosMesh also makes the kubelet's probes fail; engine Native spares them.
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
	// In: packets that the server receives from its peers; engine ChaosMesh.
	// Out: packets that the server sends to its peers.
	// Both: both; engine ChaosMesh.
	// +optional
	// +kubebuilder:default=Out
	Direction NetworkDirection `json:"direction,omitempty"`

	// peers at the other end. Defaults to all.
	// Clients: the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that watch the target server.
	// All: refused, as that is what no peers are.
	// Operator: refused.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Peers []NetworkPeer `json:"peers,omitempty"`
}

// NetworkLoss drops some packets.
// +kubebuilder:validation:XValidation:rule="has(self.operator) == (has(self.peers) && 'Operator' in self.peers)",message="set operator with peers Operator, and only then",fieldPath=".operator"
type NetworkLoss struct {
	// loss is the share of packets that are dropped in a direction, such as 25%. Of round trips, more
	// are lost: 20% in both directions are 36%.
	// +required
	// +kubebuilder:validation:XValidation:rule="double(self.split('%')[0]) > 0.0",message="must be more than 0%"
	Loss Percentage `json:"loss,omitempty"`

	// correlation of a packet's loss with that of the previous one; engine ChaosMesh only. Defaults to
	// none.
	// +optional
	Correlation Percentage `json:"correlation,omitempty"`

	// direction of the packets that are dropped, from the perspective of the target server.
	// In: packets that the server receives from its peers.
	// Out: packets that the server sends to its peers. To the server this is no loss as of a network:
	// it notices that they are not sent.
	// Both: both.
	// Defaults to In; with engine ChaosMesh and without peers only Out is possible.
	// +optional
	// +kubebuilder:default=In
	Direction NetworkDirection `json:"direction,omitempty"`

	// peers at the other end. Defaults to all; with engine ChaosMesh the node of the pod is one of
	// them, whose kubelet probes it.
	// Clients: all but the servers and sentinels of the target and the operator of Redquake; with
	// engine ChaosMesh only the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that watch the target server.
	// Operator: the operator that looks after the Redis, by the field operator; engine Native only.
	// All: everybody but the node of the pod; engine Native only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Peers []NetworkPeer `json:"peers,omitempty"`

	// operator is the one that looks after the Redis, of peers Operator.
	// +optional
	Operator *OperatorReference `json:"operator,omitempty"`
}

// NetworkPartition drops all packets between the server and its peers, without a reset: clients wait
// for answers that do not come.
// +kubebuilder:validation:XValidation:rule="has(self.operator) == (has(self.peers) && 'Operator' in self.peers)",message="set operator with peers Operator, and only then",fieldPath=".operator"
type NetworkPartition struct {
	// peers from which the server is cut off.
	// Clients: all but the servers and sentinels of the target and the operator of Redquake; with
	// engine ChaosMesh only the load pods of the test that measures the fault.
	// Servers: all other Redis servers of the target.
	// Primary: the primary of the target server's shard.
	// Replicas: the other replicas of the target server's shard.
	// Sentinels: the sentinels that watch the target server.
	// Operator: the operator that looks after the Redis, by the field operator; engine Native only.
	// All: everybody but the node of the pod; engine Native only.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	Peers []NetworkPeer `json:"peers,omitempty"`

	// operator is the one that looks after the Redis, of peers Operator.
	// +optional
	Operator *OperatorReference `json:"operator,omitempty"`

	// direction of the packets that are dropped, from the perspective of the target server.
	// In: packets that the server receives from its peers.
	// Out: packets that the server sends to its peers.
	// Both: both.
	// +optional
	// +kubebuilder:default=Both
	Direction NetworkDirection `json:"direction,omitempty"`
}
