package callers

import (
	"context"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/plan"
)

// silent discards go-redis' log, which writes every failed dial to standard error. Failures are in
// the record.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { goredis.SetLogger(silent{}) })

// newCache creates the client of a workload that uses Redis as a cache: go-redis, with its own pool,
// retries and view of the topology. Options that the plan does not set keep go-redis' defaults, as in
// most services.
func newCache(r *load.State, kind plan.Topology) (goredis.UniversalClient, error) {
	silence()
	o, err := cacheOptions(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case plan.TopologyCluster:
		c, cluster := &r.Plan.Client, o.Cluster()
		cluster.ReadOnly = c.ReadFrom == plan.ReadReplica || c.ReadFrom == plan.ReadAny
		cluster.RouteRandomly = c.ReadFrom == plan.ReadAny
		return goredis.NewClusterClient(cluster), nil
	case plan.TopologySentinel:
		return sentinelCache(r, o)
	}
	simple := o.Simple()
	// with plain replication the primary at the start: go-redis does not follow a failover there
	simple.Addr = r.Routes.Servers()[0]
	return goredis.NewClient(simple), nil
}

// cacheOptions returns the options that all topologies share.
func cacheOptions(r *load.State) (*goredis.UniversalOptions, error) {
	c, t := &r.Plan.Client, &r.Plan.Target
	o := &goredis.UniversalOptions{
		Addrs:           t.Addresses,
		Username:        t.Username,
		DB:              t.Database,
		Protocol:        r.Routes.Dialer.Speaks(),
		DialTimeout:     c.DialTimeout,
		ReadTimeout:     c.RequestTimeout,
		WriteTimeout:    c.RequestTimeout,
		PoolSize:        c.Connections,
		ConnMaxLifetime: c.MaxAge,
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			password, err := r.Routes.Dialer.Secret()
			return t.Username, password, err
		},
	}
	if r.Portable || slices.ContainsFunc(t.Addresses, plan.IsSocket) {
		o.Dialer = r.Routes.Dialer.TCP
	}
	var err error
	if t.TLS != nil {
		o.TLSConfig, err = dial.TLSConfig(t.TLS) // go-redis fills in the server's name
	}
	return o, err
}

func sentinelCache(
	r *load.State, o *goredis.UniversalOptions,
) (goredis.UniversalClient, error) {
	sentinel := r.Plan.Target.Sentinel
	if sentinel == nil { // detected: the target's addresses are those of the sentinels
		sentinel = &plan.Sentinel{Addresses: r.Plan.Target.Addresses}
	}
	if o.Addrs, o.MasterName = sentinel.Addresses, sentinel.MasterName; o.MasterName == "" {
		o.MasterName = r.Routes.Current().Shards[0].ID
	}
	failover := o.Failover()
	failover.SentinelUsername = sentinel.Username
	var err error
	if failover.SentinelPassword, err = dial.ReadPassword(sentinel.PasswordFile); err != nil {
		return nil, err
	}
	if r.Plan.Client.ReadFrom == plan.ReadAny {
		failover.RouteRandomly = true
		return goredis.NewFailoverClusterClient(failover), nil
	}
	failover.ReplicaOnly = r.Plan.Client.ReadFrom == plan.ReadReplica
	return goredis.NewFailoverClient(failover), nil
}
