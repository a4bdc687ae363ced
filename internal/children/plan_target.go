package children

import (
	"net"
	"path"
	"strconv"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

func planTarget(namespace string, target *v1alpha1.RedisTarget, addresses []string) plan.Target {
	t := plan.Target{
		Topology:  plan.Topology(target.Topology),
		Addresses: addresses,
		Database:  int(target.Database),
		TLS:       planTLS(target.TLS, caDir, certDir),
	}
	if auth := target.Auth; auth != nil {
		t.Username = auth.Username
		t.PasswordFile = path.Join(passwordDir, passwordFile)
	}
	if s := target.Sentinel; s != nil {
		t.Sentinel = &plan.Sentinel{
			Addresses:  sentinelAddresses(namespace, s),
			MasterName: s.MasterName,
			TLS:        planTLS(s.TLS, sentinelCADir, sentinelCertDir),
		}
		if s.Auth != nil {
			t.Sentinel.Username = s.Auth.Username
			t.Sentinel.PasswordFile = path.Join(sentinelPasswordDir, passwordFile)
		}
	}
	return t
}

// sentinelAddresses are the sentinels' own, or their Service by its name.
func sentinelAddresses(namespace string, sentinel *v1alpha1.SentinelTarget) []string {
	if s := sentinel.Service; s != nil {
		return []string{net.JoinHostPort(s.Name+"."+namespace+".svc", strconv.Itoa(int(s.Port)))}
	}
	return sentinel.Addresses
}

func planTLS(tls *v1alpha1.RedisTLS, caDir, certDir string) *plan.TLS {
	if tls == nil {
		return nil
	}
	t := &plan.TLS{ServerName: tls.ServerName, InsecureSkipVerify: tls.InsecureSkipVerify}
	if tls.CASecretRef != nil {
		t.CAFile = path.Join(caDir, caKey)
	}
	if tls.CertSecretRef != nil {
		t.CertFile = path.Join(certDir, certKey)
		t.KeyFile = path.Join(certDir, privateKey)
	}
	return t
}

func planClient(client *v1alpha1.LoadClient) plan.Client {
	c := plan.Client{
		Connections:    int(client.Connections),
		Pipeline:       int(client.Pipeline),
		DialTimeout:    client.DialTimeout.Duration,
		RequestTimeout: client.RequestTimeout.Duration,
		Protocol:       3,
		ReadFrom:       plan.ReadFrom(client.ReadFrom),
		Mode:           plan.Mode(client.Mode),
		Driver:         plan.Driver(client.Driver),
		MaxAge:         value(client.ConnectionMaxAge).Duration,
		Retries:        int(client.Retries),
		AddedLatency:   value(client.AddedLatency).Duration,
	}
	if client.Protocol == v1alpha1.RESP2 {
		c.Protocol = 2
	}
	if g := client.GoRedis; g != nil {
		c.GoRedis = &plan.GoRedis{PoolSize: int(value(g.PoolSize)), StateReloadInterval: value(g.StateReloadInterval).Duration}
		if g.MaxRetries != nil {
			c.GoRedis.MaxRetries = new(int(*g.MaxRetries))
		}
	}
	return c
}
