package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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

// ClientDriver is the client that sends the requests: Native, or a library that applications use.
// +kubebuilder:validation:Enum=Native;GoRedis;Rueidis;RedisPy;RedisPyAsync;GlidePython;NodeRedis;IORedis;GlideNode;Lettuce;Jedis;GlideJava;RedisRs;RedisRsMultiplexed
type ClientDriver string

// The drivers that code names; docs/clients has all.
const (
	DriverNative  ClientDriver = "Native"
	DriverGoRedis ClientDriver = "GoRedis"
	DriverRueidis ClientDriver = "Rueidis"
)

// LoadClient is how load pods connect to Redis. Failed requests are part of the result: they are
// not retried unless retries is set.
// +kubebuilder:validation:XValidation:rule="!has(self.options) || (has(self.driver) && self.driver != 'Native')",message="options belong to the library of a driver: set driver"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || (has(self.driver) && !(self.driver in ['Native', 'GoRedis', 'Rueidis']))",message="image is that of an adapter, which the drivers Native, GoRedis and Rueidis do without"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.mode) || self.mode != 'Multiplexed'",message="the drivers of libraries share connections as they do: mode Multiplexed belongs to driver Native"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.retries) || self.retries == 0",message="the drivers of libraries retry by themselves: set options instead of retries"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.pipeline) || self.pipeline == 1",message="the drivers of libraries send one request at a time: pipeline must be 1"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.readFrom) || self.readFrom == 'Primary'",message="the drivers of libraries choose servers by themselves: set options instead of readFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.connectionMaxAge)",message="connectionMaxAge belongs to driver Native: set options instead"
// +kubebuilder:validation:XValidation:rule="!has(self.driver) || self.driver == 'Native' || !has(self.addedLatency) || duration(self.addedLatency) == duration('0s')",message="addedLatency belongs to driver Native"
type LoadClient struct {
	// connections per load pod. Each has one request in flight, or one batch if pipeline is above 1.
	// Defaults to 50; with http, cacheAside and the driver of a library to as many as users need, at
	// most 10000. With the driver of a library it is how many requests may be in flight, over as many
	// connections as the library makes; without users 1000 by default.
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
	// reply counts as unknown. The requests of a library have the library's own limits instead, and
	// this time is how long they are awaited at the end of the load. Between 10ms and 60s.
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

	// driver is the client that sends the requests.
	// Native: Redquake's own, which does not retry or hide errors.
	// The others are libraries, as applications use them, with their own pools, retries and views of the
	// topology: the outage is then that of the application. Those in Go run in the load pod's own
	// process, the others in a sidecar. Beside them the probe measures Redis itself.
	// GoRedis: go-redis.
	// Rueidis: rueidis.
	// RedisPy: redis-py, a thread for each request in flight, at most 200.
	// RedisPyAsync: redis-py with asyncio.
	// GlidePython: Valkey GLIDE for Python.
	// NodeRedis: node-redis.
	// IORedis: ioredis.
	// GlideNode: Valkey GLIDE for Node.js.
	// Lettuce: Lettuce, its asynchronous commands over one connection.
	// Jedis: Jedis, a thread for each request in flight, at most 200.
	// GlideJava: Valkey GLIDE for Java.
	// RedisRs: redis-rs with its connection manager.
	// RedisRsMultiplexed: redis-rs with its multiplexed connection, which does not connect again.
	// +optional
	// +kubebuilder:default=Native
	Driver ClientDriver `json:"driver,omitempty"`

	// options are given to the constructor of the driver's library, by the library's own names, such as
	// socket_timeout for RedisPy, and durations as the library takes them. What is not set keeps the
	// library's default. The load fails with the library's words if it does not know an option.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Options *runtime.RawExtension `json:"options,omitempty"`

	// image is the image of the sidecar with the driver's library, for another version of the library
	// or one of your own, see clients/PROTOCOL.md. Defaults to the one of the operator's version.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

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
