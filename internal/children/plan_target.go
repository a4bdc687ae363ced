package children

import (
	"encoding/json"
	"net"
	"path"
	"strconv"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

func planTarget(namespace string, target *v1alpha1.RedisTarget, addresses []string) plan.Target {
	if !target.IsSet() {
		return plan.Target{}
	}
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

func planClient(spec *v1alpha1.RedisLoadTestSpec) plan.Client {
	client := &spec.Client
	c := plan.Client{
		Connections:    min(connections(spec), plan.Driver(client.Driver).InFlight()),
		Pipeline:       int(client.Pipeline),
		DialTimeout:    client.DialTimeout.Duration,
		RequestTimeout: timeout(&spec.Client, v1alpha1.DefaultRequestTimeout),
		Protocol:       3,
		ReadFrom:       plan.ReadFrom(client.ReadFrom),
		Mode:           plan.Mode(client.Mode),
		Driver:         plan.Driver(client.Driver),
		MaxAge:         value(client.ConnectionMaxAge).Duration,
		Retries:        int(client.Retries),
		AddedLatency:   value(client.AddedLatency).Duration,
	}
	if client.Options != nil {
		// The API server has read it as an object; what else it may be has no options.
		_ = json.Unmarshal(client.Options.Raw, &c.Options)
	}
	if c.Driver.IsLibrary() && c.Driver.Language() != plan.Go {
		c.Adapter = &plan.Adapter{Socket: path.Join(clientDir, clientSocket)}
	}
	if isRemote(&spec.Workload) {
		c.RemoteTimeout = timeout(client, v1alpha1.DefaultRemoteTimeout)
	}
	if client.Protocol == v1alpha1.RESP2 {
		c.Protocol = 2
	}
	return c
}

// connections is the number of connections of each pod. Those of a remote workload follow the
// users: an application's users do not share connections.
func connections(spec *v1alpha1.RedisLoadTestSpec) int {
	switch {
	case spec.Client.Connections > 0:
		return int(spec.Client.Connections)
	case !isRemote(&spec.Workload) && !isLibrary(spec):
		return v1alpha1.DefaultConnections
	}
	users := int(value(spec.Load.Users))
	for _, stage := range spec.Load.Stages {
		users = max(users, int(value(stage.Users)))
	}
	switch {
	case users == 0 && isLibrary(spec):
		return v1alpha1.DefaultLibraryRequests
	case users == 0:
		return v1alpha1.DefaultConnections // an open loop without a limit of its own
	}
	pods := int(spec.Pods.Count)
	return min((users+pods-1)/pods, v1alpha1.MaxConnections)
}

// timeout is the timeout that is set, or otherwise.
func timeout(client *v1alpha1.LoadClient, otherwise time.Duration) time.Duration {
	if set := client.RequestTimeout.Duration; set > 0 {
		return set
	}
	return otherwise
}

// isLibrary reports whether the requests are sent by a library that applications use.
func isLibrary(spec *v1alpha1.RedisLoadTestSpec) bool {
	return plan.Driver(spec.Client.Driver).IsLibrary()
}

func isRemote(w *v1alpha1.Workload) bool {
	return w.HTTP != nil || w.CacheAside != nil
}
