package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LoadTestReference names a RedisLoadTest in the namespace of this object.
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
	// RolePrimary is a server that accepts writes.
	RolePrimary RedisRole = "Primary"
	// RoleReplica is a server that replicates from another server.
	RoleReplica RedisRole = "Replica"
	// RoleAny is either.
	RoleAny RedisRole = "Any"
)

// SelectMode is how many of the matching servers are selected.
// +kubebuilder:validation:Enum=One;All;Count;Percent
type SelectMode string

// The modes.
const (
	// SelectOne selects one.
	SelectOne SelectMode = "One"
	// SelectAll selects all.
	SelectAll SelectMode = "All"
	// SelectCount selects the number given by count.
	SelectCount SelectMode = "Count"
	// SelectPercent selects the share given by percent.
	SelectPercent SelectMode = "Percent"
)

// SelectPick is which of the matching servers are selected, if not all are.
// +kubebuilder:validation:Enum=First;Random
type SelectPick string

// The picks.
const (
	// PickFirst selects the first by name.
	PickFirst SelectPick = "First"
	// PickRandom selects at random.
	PickRandom SelectPick = "Random"
)

// FaultSelector selects servers. Their roles are read from Redis just before the injection.
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Count') == has(self.count)",message="count belongs to mode Count, and mode Count needs it"
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Percent') == has(self.percent)",message="percent belongs to mode Percent, and mode Percent needs it"
type FaultSelector struct {
	// role that a server must have.
	// Primary: it accepts writes.
	// Replica: it replicates from another server.
	// Any: either.
	// +optional
	// +kubebuilder:default=Any
	Role RedisRole `json:"role,omitempty"`

	// shard of a cluster that a server must belong to, counted from 0 by the lowest slot.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999
	Shard *int32 `json:"shard,omitempty"`

	// names of the pods of which a server must be one. Each of them must match role, shard and zone,
	// else no server is selected. Defaults to any pod of the target.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// zone that a server's node must be in, by its label topology.kubernetes.io/zone. Defaults to any.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Zone string `json:"zone,omitempty"`

	// mode is how many of the matching servers are selected.
	// One: one.
	// All: all.
	// Count: the number given by count.
	// Percent: the share given by percent.
	// +optional
	// +kubebuilder:default=One
	Mode SelectMode `json:"mode,omitempty"`

	// count of servers, with mode Count.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Count *int32 `json:"count,omitempty"`

	// percent of the matching servers, with mode Percent: rounded down, but at least one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// pick is which of the matching servers are selected, if not all are.
	// First: the first by name.
	// Random: at random, by status.seed.
	// +optional
	// +kubebuilder:default=First
	Pick SelectPick `json:"pick,omitempty"`
}

// FaultTrigger is when a fault is injected. By default it is injected as soon as the throughput has
// been steady for 10s.
// +kubebuilder:validation:XValidation:rule="[has(self.steadyFor), has(self.after), has(self.afterBeside)].filter(set, set).size() <= 1",message="set one of steadyFor, after and afterBeside"
type FaultTrigger struct {
	// steadyFor is how long the throughput must have been steady, after warm-up, before the injection.
	// Between 2s and 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('2s') && duration(self) <= duration('1h')",message="must be between 2s and 1h"
	// +kubebuilder:validation:Type=string
	SteadyFor *metav1.Duration `json:"steadyFor,omitempty"`

	// after is the time from the start of the load to the injection, at least the warm-up, whether the
	// throughput is steady or not. At most 168h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be between 0s and 168h"
	// +kubebuilder:validation:Type=string
	After *metav1.Duration `json:"after,omitempty"`

	// afterBeside is the time to the injection from the instant at which all faults in beside act,
	// whether the throughput is steady or not. At most 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +kubebuilder:validation:Type=string
	AfterBeside *metav1.Duration `json:"afterBeside,omitempty"`

	// timeout is how long to wait for a steady throughput, from the end of the load's warm-up. After
	// it the fault fails as NotSteady. It is also how long, but at least for 30s, the fault waits for
	// its load test to be created, for a target that can be selected, and for a fault in beside that
	// does not exist. Between 1s and 24h.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be between 1s and 24h"
	// +kubebuilder:validation:Type=string
	Timeout metav1.Duration `json:"timeout,omitzero"`
}
