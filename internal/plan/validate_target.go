package plan

import (
	"fmt"
	"net"
	"slices"
	"time"
)

func (p *Plan) checkTarget() string {
	t := &p.Target
	switch {
	case !slices.Contains([]Topology{"", TopologyAuto, TopologyStandalone, TopologyReplication, TopologySentinel, TopologyCluster}, t.Topology):
		return fmt.Sprintf("target.topology: %q is none of Auto, Standalone, Replication, Sentinel, Cluster", t.Topology)
	case t.Topology == TopologySentinel && t.Sentinel == nil:
		return "target.sentinel: is missing, topology Sentinel needs it"
	case t.Sentinel != nil && t.Topology != TopologySentinel && t.Topology != TopologyAuto:
		return fmt.Sprintf("target.sentinel: belongs to topology Sentinel or Auto, not to %s", t.Topology)
	case len(t.Addresses) == 0 && t.Sentinel == nil:
		return "target.addresses: is empty"
	case t.Database < 0:
		return fmt.Sprintf("target.database: is %d, must not be negative", t.Database)
	case t.Database > 0 && t.Topology == TopologyCluster:
		return fmt.Sprintf("target.database: is %d, a cluster has only database 0", t.Database)
	}
	if problem := checkAddresses("target.addresses", t.Addresses); problem != "" {
		return problem
	}
	if problem := checkTLS("target.tls", t.TLS); problem != "" {
		return problem
	}
	if s := t.Sentinel; s != nil {
		if len(s.Addresses) == 0 {
			return "target.sentinel.addresses: is empty"
		}
		if problem := checkAddresses("target.sentinel.addresses", s.Addresses); problem != "" {
			return problem
		}
		return checkTLS("target.sentinel.tls", s.TLS)
	}
	return ""
}

func checkAddresses(field string, addresses []string) string {
	for i, a := range addresses {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return fmt.Sprintf("%s[%d]: %q is not host:port", field, i, a)
		}
	}
	return ""
}

func checkTLS(field string, t *TLS) string {
	if t != nil && (t.CertFile == "") != (t.KeyFile == "") {
		return field + ": certFile and keyFile go together"
	}
	return ""
}

func (p *Plan) checkClient() string {
	c := &p.Client
	switch {
	case c.Connections < 1 || c.Connections > maxConnection:
		return fmt.Sprintf("client.connections: is %d, must be 1 to %d", c.Connections, maxConnection)
	case c.Pipeline < 1 || c.Pipeline > maxPipeline:
		return fmt.Sprintf("client.pipeline: is %d, must be 1 to %d", c.Pipeline, maxPipeline)
	case c.DialTimeout <= 0:
		return "client.dialTimeout: must be over 0"
	case c.RequestTimeout <= 0:
		return "client.requestTimeout: must be over 0"
	case c.Protocol != 2 && c.Protocol != 3:
		return fmt.Sprintf("client.protocol: is %d, must be 2 or 3", c.Protocol)
	case !slices.Contains([]ReadFrom{"", ReadPrimary, ReadReplica, ReadAny}, c.ReadFrom):
		return fmt.Sprintf("client.readFrom: %q is none of Primary, Replica, Any", c.ReadFrom)
	case !slices.Contains([]Mode{"", Dedicated, Multiplexed}, c.Mode):
		return fmt.Sprintf("client.mode: %q is none of Dedicated, Multiplexed", c.Mode)
	case !slices.Contains([]Driver{"", NativeDriver, GoRedisDriver}, c.Driver):
		return fmt.Sprintf("client.driver: %q is none of Native, GoRedis", c.Driver)
	case c.MaxAge < 0 || c.MaxAge > 0 && c.MaxAge < 10*time.Millisecond:
		return "client.maxAge: must be 0 or at least 10ms"
	case c.Retries < 0:
		return "client.retries: is negative"
	case c.AddedLatency < 0:
		return "client.addedLatency: is negative"
	case c.Driver != GoRedisDriver && c.GoRedis != nil:
		return "client.goRedis: belongs to driver GoRedis"
	}
	if c.Driver == GoRedisDriver {
		return c.checkGoRedis()
	}
	return ""
}

func (c *Client) checkGoRedis() string {
	switch g := c.GoRedis; {
	case c.Mode == Multiplexed:
		return "client.mode: driver GoRedis has a pool of its own, Multiplexed belongs to Native"
	case c.Retries > 0:
		return "client.retries: driver GoRedis retries by goRedis.maxRetries"
	case g == nil:
	case g.PoolSize < 0:
		return "client.goRedis.poolSize: is negative"
	case g.MaxRetries != nil && *g.MaxRetries < -1:
		return "client.goRedis.maxRetries: must be -1 or more"
	case g.StateReloadInterval < 0:
		return "client.goRedis.stateReloadInterval: is negative"
	}
	return ""
}

// checkEngine refuses what does not go together.
func (p *Plan) checkEngine() string {
	remote, goRedis := p.Workload.IsRemote(), p.Client.Driver == GoRedisDriver
	switch {
	case remote && goRedis:
		return "client.driver: GoRedis is for workloads of Redis commands"
	case goRedis && p.Client.Pipeline > 1:
		return "client.pipeline: must be 1 with driver GoRedis, which sends one request at a time per goroutine"
	case goRedis && p.Client.Mode == Multiplexed:
		return "client.mode: Multiplexed is for the native driver; go-redis has its own pool"
	case goRedis && p.Client.AddedLatency > 0:
		return "client.addedLatency: is for the native driver"
	case p.Verify != nil && (remote || goRedis):
		return "verify: a ledger is kept by the native driver, with workloads of Redis commands"
	}
	return ""
}
