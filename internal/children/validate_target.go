package children

import (
	"fmt"
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
)

func (p *problems) target(path *field.Path, target *v1alpha1.RedisTarget, addresses []string) {
	oneOf(p, path.Child("topology"), target.Topology, v1alpha1.TopologyAuto, v1alpha1.TopologyStandalone, v1alpha1.TopologyReplication,
		v1alpha1.TopologySentinel, v1alpha1.TopologyCluster)
	between(p, path.Child("database"), target.Database, 0, 65535)
	if target.Database != 0 && target.Topology == v1alpha1.TopologyCluster {
		p.add(path.Child("database"), target.Database, "a cluster has only database 0")
	}
	if len(addresses) == 0 && target.Sentinel == nil {
		p.missing(path, "no address of a Redis: set service, addresses or podSelector, or sentinel")
	}
	p.addresses(path.Child("addresses"), addresses)
	p.login(path, target.Auth, target.TLS)
	p.sentinel(path.Child("sentinel"), target)
}

func (p *problems) sentinel(path *field.Path, target *v1alpha1.RedisTarget) {
	s := target.Sentinel
	switch {
	case s == nil && target.Topology == v1alpha1.TopologySentinel:
		p.missing(path, "topology Sentinel needs it: where the sentinels are")
		return
	case s == nil:
		return
	case target.Topology != v1alpha1.TopologySentinel && target.Topology != v1alpha1.TopologyAuto:
		p.conflict(path, "belongs to topology Sentinel or Auto")
	}
	if (s.Service == nil) == (len(s.Addresses) == 0) {
		p.missing(path, "set service or addresses: one of them says where the sentinels are")
	}
	if s.Service != nil {
		if s.Service.Name == "" {
			p.missing(path.Child("service", "name"), "")
		}
		between(p, path.Child("service", "port"), s.Service.Port, 1, 65535)
	}
	p.addresses(path.Child("addresses"), s.Addresses)
	p.login(path, s.Auth, s.TLS)
}

func (p *problems) addresses(path *field.Path, addresses []string) {
	for _, address := range addresses {
		if err := checkAddress(address); err != nil {
			p.add(path, address, err.Error())
		}
	}
}

func (p *problems) login(path *field.Path, auth *v1alpha1.RedisAuth, tls *v1alpha1.RedisTLS) {
	if auth != nil && (auth.PasswordSecretRef.Name == "" || auth.PasswordSecretRef.Key == "") {
		p.missing(path.Child("auth", "passwordSecretRef"), "set name and key of the Secret")
	}
	if tls != nil {
		if tls.CASecretRef != nil && tls.CASecretRef.Name == "" {
			p.missing(path.Child("tls", "caSecretRef", "name"), "")
		}
		if tls.CertSecretRef != nil && tls.CertSecretRef.Name == "" {
			p.missing(path.Child("tls", "certSecretRef", "name"), "")
		}
	}
}

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fmt.Errorf("must be host:port")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("the port must be between 1 and 65535")
	}
	return nil
}

func (p *problems) client(path *field.Path, client *v1alpha1.LoadClient) {
	between(p, path.Child("connections"), client.Connections, 1, 10_000)
	between(p, path.Child("pipeline"), client.Pipeline, 1, 1000)
	between(p, path.Child("dialTimeout"), client.DialTimeout.Duration, 10*time.Millisecond, time.Minute)
	between(p, path.Child("requestTimeout"), client.RequestTimeout.Duration, 10*time.Millisecond, time.Minute)
	oneOf(p, path.Child("protocol"), client.Protocol, v1alpha1.RESP2, v1alpha1.RESP3)
	oneOf(p, path.Child("readFrom"), client.ReadFrom, v1alpha1.ReadFromPrimary, v1alpha1.ReadFromReplica, v1alpha1.ReadFromAny)
	oneOf(p, path.Child("mode"), client.Mode, v1alpha1.ClientDedicated, v1alpha1.ClientMultiplexed)
	oneOf(p, path.Child("driver"), client.Driver, v1alpha1.DriverNative, v1alpha1.DriverGoRedis)
	p.lasting(path.Child("connectionMaxAge"), client.ConnectionMaxAge, 10*time.Millisecond, 24*time.Hour)
	between(p, path.Child("retries"), client.Retries, 0, 100)
	p.lasting(path.Child("addedLatency"), client.AddedLatency, 0, 10*time.Second)
	if g := client.GoRedis; g != nil {
		at := path.Child("goRedis")
		if g.PoolSize != nil {
			between(p, at.Child("poolSize"), *g.PoolSize, 1, 10_000)
		}
		if g.MaxRetries != nil {
			between(p, at.Child("maxRetries"), *g.MaxRetries, -1, 100)
		}
		p.lasting(at.Child("stateReloadInterval"), g.StateReloadInterval, 100*time.Millisecond, time.Hour)
	}
	isGoRedis := client.Driver == v1alpha1.DriverGoRedis
	if client.GoRedis != nil && !isGoRedis {
		p.conflict(path.Child("goRedis"), "belongs to driver GoRedis")
	}
	if isGoRedis && client.Mode == v1alpha1.ClientMultiplexed {
		p.conflict(path.Child("mode"), "driver GoRedis has a pool of its own: Multiplexed belongs to driver Native")
	}
	if isGoRedis && client.Pipeline > 1 {
		p.conflict(path.Child("pipeline"), "driver GoRedis sends one request at a time: it must be 1")
	}
	if isGoRedis && length(client.AddedLatency) > 0 {
		p.conflict(path.Child("addedLatency"), "belongs to driver Native")
	}
	if isGoRedis && client.Retries > 0 {
		p.conflict(path.Child("retries"), "driver GoRedis retries by itself: set goRedis.maxRetries")
	}
}

// lasting wants lo <= d <= hi where there is one.
func (p *problems) lasting(path *field.Path, d *metav1.Duration, lo, hi time.Duration) {
	if d != nil {
		between(p, path, d.Duration, lo, hi)
	}
}
