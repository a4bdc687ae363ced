package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Protocol is the version of Redis's wire protocol.
// +kubebuilder:validation:Enum=RESP2;RESP3
type Protocol string

// The protocols.
const (
	RESP2 Protocol = "RESP2"
	RESP3 Protocol = "RESP3"
)

// ReadFrom is where read-only commands go.
// +kubebuilder:validation:Enum=Primary;Replica;Any
type ReadFrom string

// Where to read.
const (
	ReadFromPrimary ReadFrom = "Primary"
	ReadFromReplica ReadFrom = "Replica" // the replicas round-robin; the primary if none is known
	ReadFromAny     ReadFrom = "Any"     // all servers round-robin
)

// ClientMode is how users share connections.
// +kubebuilder:validation:Enum=Dedicated;Multiplexed
type ClientMode string

// The modes.
const (
	ClientDedicated ClientMode = "Dedicated" // one request, or one batch, in flight per connection
	// concurrent requests of several users are sent in one batch
	ClientMultiplexed ClientMode = "Multiplexed"
)

// ClientDriver is the client implementation that sends the requests.
// +kubebuilder:validation:Enum=Native;GoRedis
type ClientDriver string

// The drivers.
const (
	DriverNative  ClientDriver = "Native"
	DriverGoRedis ClientDriver = "GoRedis"
)

// GoRedisOptions are options of go-redis, which has its own pool, retries and view of the topology.
type GoRedisOptions struct {
	// poolSize is the number of connections per load pod, in a cluster per node. Defaults to
	// client.connections.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	PoolSize *int32 `json:"poolSize,omitempty"`

	// maxRetries is how often go-redis retries a failed command; -1 disables retries. Defaults to the
	// default of go-redis.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=100
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// stateReloadInterval is how often go-redis reloads the layout of a cluster. Defaults to the
	// default of go-redis, 60s. Between 100ms and 1h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="must be between 100ms and 1h"
	// +kubebuilder:validation:Type=string
	StateReloadInterval *metav1.Duration `json:"stateReloadInterval,omitempty"`
}

// LoadClient is how load pods connect to Redis. Failed requests are part of the result: they are
// not retried unless retries is set.
// +kubebuilder:validation:XValidation:rule="!has(self.goRedis) || (has(self.driver) && self.driver == 'GoRedis')",message="goRedis belongs to driver GoRedis"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver != 'GoRedis' || !has(self.mode) || self.mode != 'Multiplexed'",message="driver GoRedis has a pool of its own: mode Multiplexed belongs to driver Native"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver != 'GoRedis' || !has(self.retries) || self.retries == 0",message="driver GoRedis retries by itself: set goRedis.maxRetries instead of retries"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver != 'GoRedis' || !has(self.pipeline) || self.pipeline == 1",message="driver GoRedis sends one request at a time: pipeline must be 1"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver != 'GoRedis' || !has(self.addedLatency) || duration(self.addedLatency) == duration('0s')",message="addedLatency belongs to driver Native"
type LoadClient struct {
	// connections per load pod. Each has one request in flight, or one batch if pipeline is above 1.
	// Defaults to 50; with http and cacheAside to as many as users need, at most 10000.
	// Users beyond the connections wait, which no latency contains: the verdict is then Inconclusive
	// (UsersQueue).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Connections int32 `json:"connections,omitempty"`

	// pipeline is the number of requests in a batch.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Pipeline int32 `json:"pipeline,omitempty"`

	// dialTimeout bounds one attempt to connect, TLS and login included. Between 10ms and 60s.
	// +optional
	// +kubebuilder:default="1s"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('60s')",message="must be between 10ms and 60s"
	// +kubebuilder:validation:Type=string
	DialTimeout metav1.Duration `json:"dialTimeout,omitzero"`

	// requestTimeout is how long a reply may take after the request was sent; a request with a later
	// reply counts as unknown. Between 10ms and 60s.
	// Defaults to 1s; with http and cacheAside to 30s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('60s')",message="must be between 10ms and 60s"
	// +kubebuilder:validation:Type=string
	RequestTimeout metav1.Duration `json:"requestTimeout,omitzero"`

	// protocol is the wire protocol.
	// RESP2: the protocol of Redis before 6.
	// RESP3: the protocol since Redis 6; RESP2 with a server or a proxy that does not know HELLO.
	// +optional
	// +kubebuilder:default=RESP3
	Protocol Protocol `json:"protocol,omitempty"`

	// readFrom is where read-only commands are sent. Replica and Any need a topology with replicas;
	// reads from replicas may be stale.
	// Primary: to the primary.
	// Replica: to the replicas round-robin; to the primary if no replica is known.
	// Any: to all servers round-robin.
	// +optional
	// +kubebuilder:default=Primary
	ReadFrom ReadFrom `json:"readFrom,omitempty"`

	// mode is how users share connections.
	// Dedicated: one request, or one batch, in flight on each connection.
	// Multiplexed: concurrent requests of several users are sent in one batch.
	// +optional
	// +kubebuilder:default=Dedicated
	Mode ClientMode `json:"mode,omitempty"`

	// driver is the client implementation that sends the requests.
	// Native: Redquake's own, which does not retry or hide errors.
	// GoRedis: go-redis with its pool and its retries, to measure what a Go service experiences.
	// +optional
	// +kubebuilder:default=Native
	Driver ClientDriver `json:"driver,omitempty"`

	// goRedis are options of driver GoRedis.
	// +optional
	GoRedis *GoRedisOptions `json:"goRedis,omitempty"`

	// connectionMaxAge is the age at which a connection is replaced, between two requests. Connections
	// are not replaced if it is not set. Between 10ms and 24h.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10ms') && duration(self) <= duration('24h')",message="must be between 10ms and 24h"
	// +kubebuilder:validation:Type=string
	ConnectionMaxAge *metav1.Duration `json:"connectionMaxAge,omitempty"`

	// retries is how often a request that was certainly not applied (READONLY, NOREPLICAS, MOVED,
	// CLUSTERDOWN, LOADING, MASTERDOWN, BUSY) is retried, each time after 10ms, after READONLY over a
	// new connection. A retry hides an error.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Retries int32 `json:"retries,omitempty"`

	// addedLatency is added to each round trip in the client, to simulate a slower network. Between 0s
	// and 10s.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('10s')",message="must be between 0s and 10s"
	// +kubebuilder:validation:Type=string
	AddedLatency *metav1.Duration `json:"addedLatency,omitempty"`
}
