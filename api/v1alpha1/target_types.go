package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Topology is how the servers of a Redis deployment relate.
// +kubebuilder:validation:Enum=Auto;Standalone;Replication;Sentinel;Cluster
type Topology string

// The topologies.
const (
	TopologyAuto        Topology = "Auto"        // detected from the servers
	TopologyStandalone  Topology = "Standalone"  // one server, or a Service in front of one
	TopologyReplication Topology = "Replication" // a primary and its replicas
	TopologySentinel    Topology = "Sentinel"    // a primary and its replicas, monitored by sentinels
	TopologyCluster     Topology = "Cluster"     // Redis Cluster
)

// RedisTarget is a Redis deployment and its credentials. All objects that it names must be in the
// namespace of this object.
// +kubebuilder:validation:XValidation:rule="(has(self.service) ? 1 : 0) + (has(self.addresses) ? 1 : 0) + (has(self.podSelector) ? 1 : 0) + (has(self.sentinel) ? 1 : 0) > 0",message="set service, addresses or podSelector, or sentinel: without one of them there is no Redis to load"
// +kubebuilder:validation:XValidation:rule="!(has(self.service) && has(self.addresses))",message="service and addresses are two ways to say the same: set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.topology) || self.topology != 'Sentinel' || has(self.sentinel)",message="topology Sentinel needs sentinel: where the sentinels are"
// +kubebuilder:validation:XValidation:rule="!has(self.sentinel) || !has(self.topology) || self.topology == 'Sentinel' || self.topology == 'Auto'",message="sentinel belongs to topology Sentinel or Auto"
// +kubebuilder:validation:XValidation:rule="!(has(self.container) || has(self.podPort)) || has(self.podSelector) || has(self.service)",message="container and podPort are of the Redis pods: set podSelector or service, by which they are found"
// +kubebuilder:validation:XValidation:rule="!has(self.database) || self.database == 0 || !has(self.topology) || self.topology != 'Cluster'",message="a cluster has only database 0"
type RedisTarget struct {
	// topology is how the servers relate.
	// Auto: detected from the servers: Sentinel if sentinel is set, Cluster if a server reports it,
	// Replication if there are several addresses with a replica among them, otherwise Standalone.
	// Standalone: one server: service, or the first address that replies.
	// Replication: a primary and its replicas.
	// Sentinel: a primary and its replicas, monitored by sentinels.
	// Cluster: Redis Cluster.
	// +optional
	// +kubebuilder:default=Auto
	Topology Topology `json:"topology,omitempty"`

	// service is the Service that clients use; the load is sent through it.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// addresses are host:port pairs that clients use instead of a Service; the first one that replies
	// is used.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=300
	// +kubebuilder:validation:items:Pattern=`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}$`
	Addresses []string `json:"addresses,omitempty"`

	// podSelector selects the Redis pods. Faults on pods need it, unless service has a selector.
	// If neither service nor addresses is set, the load is sent to these pods directly.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// container is the container of the Redis pods that runs Redis. Defaults to the one that declares
	// the port of Redis, else the first whose image is named after Redis or Valkey, else the first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Container string `json:"container,omitempty"`

	// podPort is the port on which Redis listens in its pods, whether they declare it or not. Defaults
	// to the targetPort of service, else a declared port that is named after Redis, else 6379 if it is
	// declared, else the first declared port that is not named after something else, else 6379.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	PodPort int32 `json:"podPort,omitempty"`

	// sentinel is the sentinels from which the primary is discovered. The load then needs neither
	// service nor addresses nor podSelector.
	// +optional
	Sentinel *SentinelTarget `json:"sentinel,omitempty"`

	// auth is the ACL user and its password.
	// +optional
	Auth *RedisAuth `json:"auth,omitempty"`

	// tls enables TLS.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`

	// database is the number given to SELECT.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Database int32 `json:"database,omitempty"`
}

// IsSet reports whether there is a target: an absent one is empty, and every other one names
// servers.
func (t *RedisTarget) IsSet() bool {
	return t.Service != nil || len(t.Addresses) > 0 || t.PodSelector != nil || t.Sentinel != nil
}

// SentinelTarget is the sentinels of a Redis deployment and their credentials.
// +kubebuilder:validation:XValidation:rule="has(self.service) != has(self.addresses)",message="set service or addresses: one of them says where the sentinels are"
type SentinelTarget struct {
	// service is the Service of the sentinels. Further sentinels that they announce are queried as
	// well.
	// +optional
	Service *SentinelService `json:"service,omitempty"`

	// addresses are host:port pairs of sentinels, instead of a Service.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=300
	// +kubebuilder:validation:items:Pattern=`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}$`
	Addresses []string `json:"addresses,omitempty"`

	// masterName is the name under which the sentinels monitor the primary. Needed only if they
	// monitor several.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._A-Za-z0-9]+$`
	MasterName string `json:"masterName,omitempty"`

	// auth is the ACL user of the sentinels and its password, which may differ from those of the
	// servers.
	// +optional
	Auth *RedisAuth `json:"auth,omitempty"`

	// tls enables TLS for connections to the sentinels, independently of the target's tls.
	// +optional
	TLS *RedisTLS `json:"tls,omitempty"`
}

// SentinelService names a Service in the namespace of this object.
type SentinelService struct {
	// name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// port is the Service's port number.
	// +optional
	// +kubebuilder:default=26379
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// ServiceReference names a Service in the namespace of this object.
type ServiceReference struct {
	// name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// port is the Service's port number.
	// +optional
	// +kubebuilder:default=6379
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// RedisAuth is how to log in.
type RedisAuth struct {
	// username is the ACL user. Defaults to the default user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Username string `json:"username,omitempty"`

	// passwordSecretRef is the key of a Secret that contains the password. Load pods read it from a
	// mounted file for every dial.
	// +required
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef,omitzero"`
}

// SecretKeyReference names a key of a Secret in the namespace of this object.
type SecretKeyReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key within the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// SecretReference names a Secret in the namespace of this object.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// RedisTLS are the TLS settings: trusted certificates and the client certificate.
type RedisTLS struct {
	// caSecretRef is a Secret whose key ca.crt contains the trusted certificates. Defaults to the
	// system's roots.
	// +optional
	CASecretRef *SecretReference `json:"caSecretRef,omitempty"`

	// certSecretRef is a Secret of type kubernetes.io/tls with the client certificate.
	// +optional
	CertSecretRef *SecretReference `json:"certSecretRef,omitempty"`

	// serverName is the name that the server's certificate must have. Defaults to the host that is
	// dialled.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`

	// insecureSkipVerify accepts any certificate. For tests only.
	// +optional
	// +kubebuilder:default=false
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}
