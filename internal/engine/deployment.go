package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// discover queries the topology of the deployment, follows its changes, and assigns the loops' connections accordingly.
func (r *Runner) discover(ctx context.Context, progress func(string)) error {
	n := r.run
	kind := topology.Kind(n.plan.Target.Topology)
	if kind == "" || kind == topology.KindStandalone {
		return nil
	}
	what := fmt.Sprintf("the primaries of the %s", kind)
	target := deploymentOf(&n.plan.Target, n.plan.Client.DialTimeout, n.dialer.secret)
	budget := dialBudget(n.plan.Client)
	within, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	failed := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &plan.Error{Reason: plan.TargetUnreachable, Err: err, Message: fmt.Sprintf("failed to find %s within %s: %v", what, budget, err)}
	}
	if n.plan.Target.Topology == plan.TopologyAuto {
		progress("detecting the topology of the deployment")
		what = "the topology of the deployment"
		var err error
		if kind, err = topology.Detect(within, target); err != nil {
			return failed(err)
		}
		if kind == topology.KindStandalone {
			return nil
		}
	}
	what = fmt.Sprintf("the primaries of the %s", kind)
	progress("finding " + what)
	tracker, err := topology.Start(within, target, kind)
	if err != nil {
		return failed(err)
	}
	n.routes.tracker = tracker
	m := tracker.Map()
	r.layout.Store(m)
	if problem := n.checkDeployment(m); problem != "" {
		return &plan.Error{Reason: plan.PlanInvalid, Message: problem}
	}
	if len(m.Shards) > 1 {
		n.sharded = true
	}
	if err := r.probeShards(m); err != nil {
		return err
	}
	r.layOutShards(m)
	tracker.OnChange(func(*topology.Map) { // the loops apply it immediately
		for _, l := range r.loops {
			l.nudge()
		}
	})
	return nil
}

// layOutShards creates the connections of every loop to each shard.
func (r *Runner) layOutShards(m *topology.Map) {
	n := r.run
	loops := int64(len(r.loops))
	for i, l := range r.loops {
		l.source = n.redis.Source(int64(n.pod)*loops+int64(i), int64(n.plan.Pods)*loops, m.Kind == topology.KindCluster)
		l.follower, _ = l.source.(workload.Follower)
		l.readsReplicas = n.plan.Client.ReadFrom == plan.ReadReplica || n.plan.Client.ReadFrom == plan.ReadAny
		l.layout = m
		for shard := range m.Shards {
			l.ensurePools(shard)
		}
	}
}

// probeShards creates one probe per shard.
func (r *Runner) probeShards(m *topology.Map) error {
	if len(r.probes) == 0 || len(m.Shards) == 1 {
		return nil
	}
	r.probes = nil
	for shard := range m.Shards {
		tag, ok := shardTag(m, shard)
		if !ok {
			continue
		}
		p, err := newProber(r.run, shard, tag)
		if err != nil {
			return &plan.Error{Reason: plan.PlanInvalid, Message: "spec.probe: " + err.Error(), Err: err}
		}
		r.probes = append(r.probes, p)
	}
	return nil
}

// checkDeployment returns what in the plan is not possible with this deployment; "" = nothing.
func (r *runState) checkDeployment(m *topology.Map) string {
	if m.Kind == topology.KindCluster && r.plan.Target.Database != 0 {
		return "spec.target.database: a cluster has database 0 only"
	}
	if r.plan.Client.ReadFrom == plan.ReadReplica && len(m.Replicas()) == 0 {
		return "spec.client.readFrom: is Replica, but the deployment has no replica"
	}
	if r.plan.Client.Driver == plan.GoRedisDriver && r.plan.Client.ReadFrom != "" && r.plan.Client.ReadFrom != plan.ReadPrimary && m.Kind != topology.KindCluster {
		return "spec.client.readFrom: driver GoRedis supports it for Redis Cluster only; in other deployments go-redis would send writes to replicas, too"
	}
	return ""
}

// shardTag returns a hash tag "{n}" whose slot belongs to the shard; false if the shard serves no slot.
func shardTag(m *topology.Map, shard int) (string, bool) {
	if m.Shards[shard].Slots == 0 {
		return "", false
	}
	for i := range 1 << 20 {
		tag := fmt.Sprintf("{%d}", i)
		if s, ok := m.ShardOf(topology.SlotOf([]byte(tag))); ok && s == shard {
			return tag, true
		}
	}
	return "", false
}

// deploymentOf converts the target for package topology. timeout bounds each dial and each reply. secret returns the servers' password; the
// sentinels have a separate password file.
func deploymentOf(t *plan.Target, timeout time.Duration, secret func() (string, error)) topology.Target {
	d := topology.Target{Addresses: t.Addresses, Login: loginFunc(t.Username, secret, t.TLS), Timeout: timeout, After: time.After}
	if s := t.Sentinel; s != nil {
		d.Sentinels, d.MasterName = s.Addresses, s.MasterName
		d.SentinelLogin = loginFunc(s.Username, func() (string, error) { return readPassword(s.PasswordFile) }, s.TLS)
	}
	return d
}

func loginFunc(username string, secret func() (string, error), settings *plan.TLS) topology.LoginFunc {
	return func() (redis.Login, error) {
		l, failed := login(username, secret, settings)
		if failed != nil {
			return l, failed
		}
		return l, nil
	}
}
