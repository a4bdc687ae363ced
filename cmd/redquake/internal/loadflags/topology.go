package loadflags

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// applyTopology overrides the target with the flags about servers and sentinels.
func (f *Flags) applyTopology(target *v1alpha1.RedisTarget) {
	if f.changed("topology") {
		target.Topology = v1alpha1.Topology(f.topology)
	}
	if len(f.sentinels) > 0 {
		if target.Sentinel == nil {
			target.Sentinel = &v1alpha1.SentinelTarget{}
		}
		target.Sentinel.Addresses, target.Sentinel.Service = f.sentinels, nil
	}
	switch {
	case len(f.addresses) > 0:
		target.Addresses, target.Service = f.addresses, nil
	case f.file == "" && target.Sentinel == nil:
		target.Addresses = []string{defaultAddress}
	}
	if f.changed("master-name") && target.Sentinel != nil {
		target.Sentinel.MasterName = f.masterName
	}
}

// completeTarget adds the target of the flags to a file without one.
func (f *Flags) completeTarget(spec map[string]any) {
	switch {
	case spec["target"] != nil:
	case len(f.sentinels) > 0:
		spec["target"] = map[string]any{"sentinel": map[string]any{"addresses": anys(f.sentinels)}}
	case len(f.addresses) > 0:
		spec["target"] = map[string]any{"addresses": anys(f.addresses)}
	}
}

func anys(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// applyConnections overrides the client with the flags about its connections.
func (f *Flags) applyConnections(client *v1alpha1.LoadClient) {
	if f.changed("connections") {
		client.Connections = f.connections
	}
	if f.changed("pipeline") {
		client.Pipeline = f.pipeline
	}
	if f.changed("timeout") {
		client.RequestTimeout = metav1.Duration{Duration: f.timeout}
	}
	if f.changed("dial-timeout") {
		client.DialTimeout = metav1.Duration{Duration: f.dialTimeout}
	}
	if f.changed("resp2") {
		client.Protocol = v1alpha1.RESP3
		if f.resp2 {
			client.Protocol = v1alpha1.RESP2
		}
	}
}

// mostFollowing is how many connections a number of users makes at most: as many as a Redis takes
// beside its other clients.
const mostFollowing = 1000

// followUsers gives each user of the flags a connection, unless it is said how many there are, or
// users are to share them. Users that wait for a connection would make the figures inconclusive.
func (f *Flags) followUsers(spec *v1alpha1.RedisLoadTestSpec) {
	client, workload := &spec.Client, &spec.Workload
	if !f.changed("users") || client.Connections > 0 || client.Mode == v1alpha1.ClientMultiplexed ||
		workload.HTTP != nil || workload.CacheAside != nil || isLibrary(client) {
		return
	}
	client.Connections = min(f.users, mostFollowing)
}

// applyDriver overrides the client with the flags about connections, retries and the driver.
func (f *Flags) applyDriver(client *v1alpha1.LoadClient) error {
	if f.changed("read-from") {
		client.ReadFrom = v1alpha1.ReadFrom(f.readFrom)
	}
	if f.changed("mode") {
		client.Mode = v1alpha1.ClientMode(f.mode)
	}
	if f.changed("driver") {
		client.Driver = v1alpha1.ClientDriver(f.driver)
	}
	if f.changed("retries") {
		client.Retries = f.retries
	}
	for name, d := range map[string]struct {
		field **metav1.Duration
		value time.Duration
	}{
		"connection-max-age": {&client.ConnectionMaxAge, f.connectionMaxAge},
		"added-latency":      {&client.AddedLatency, f.addedLatency},
	} {
		if f.changed(name) {
			*d.field = unlessZero(d.value)
		}
	}
	return f.applyOptions(client)
}

// unlessZero returns the duration of a flag; nil for 0.
func unlessZero(d time.Duration) *metav1.Duration {
	if d == 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

// checkSentinels returns an error for flags without sentinels, and for sentinels of the file that
// need a cluster to be resolved.
func (f *Flags) checkSentinels(target *v1alpha1.RedisTarget) error {
	s := target.Sentinel
	switch {
	case s == nil && (f.masterName != "" || f.sentinelUsername != "" || f.sentinelPasswordFile != "" ||
		f.sentinelTLS):
		return fmt.Errorf(
			"--master-name, --sentinel-username, --sentinel-password-file and --sentinel-tls need --sentinel")
	case s == nil:
		return nil
	case s.Service != nil:
		return fmt.Errorf(
			"%s: spec.target.sentinel.service: a Service is not resolved outside of a cluster: pass --sentinel host:port",
			f.file)
	case s.Auth != nil && f.sentinelPasswordFile == "":
		return fmt.Errorf(
			"%s: spec.target.sentinel.auth.passwordSecretRef: Secrets are not read outside of a cluster: pass --sentinel-password-file",
			f.file)
	}
	return f.checkTLSSecrets("spec.target.sentinel.tls", s.TLS)
}

// sentinelLogin replaces the paths of files in load pods by those of the flags.
func (f *Flags) sentinelLogin(to *plan.Sentinel) {
	if to == nil {
		return
	}
	to.PasswordFile = f.sentinelPasswordFile
	if f.changed("sentinel-username") {
		to.Username = f.sentinelUsername
	}
	if to.TLS == nil {
		if !f.sentinelTLS {
			return
		}
		to.TLS = &plan.TLS{}
	}
	f.applyTLS(to.TLS)
}
