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

// findOut asks how the deployment looks, follows it from then on, and lays out the loops' connections accordingly.
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
		return &plan.Error{Reason: plan.TargetUnreachable, Err: err, Message: fmt.Sprintf("looking for %s within %s: %v", what, budget, err)}
	}
	if n.plan.Target.Topology == plan.TopologyAuto {
		progress("asking what kind of deployment it is")
		what = "what kind of deployment it is"
		var err error
		if kind, err = topology.Detect(within, target); err != nil {
			return failed(err)
		}
		if kind == topology.KindStandalone {
			return nil
		}
	}
	what = fmt.Sprintf("the primaries of the %s", kind)
	progress("looking for " + what)
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
		n.shards = newShardLog()
	}
	if err := r.probeShards(m); err != nil {
		return err
	}
	r.layOutShards(m)
	tracker.OnChange(func(*topology.Map) { // the loops take it up at once
		for _, l := range r.loops {
			l.nudge()
		}
	})
	return nil
}

// layOutShards gives every loop connections to each shard.
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

// probeShards gives every shard a probe of its own.
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

// fits says what in the plan cannot be with such a deployment.
func (r *runState) checkDeployment(m *topology.Map) string {
	if m.Kind == topology.KindCluster && r.plan.Target.Database != 0 {
		return "spec.target.database: a cluster has database 0 only"
	}
	if r.plan.Client.ReadFrom == plan.ReadReplica && len(m.Replicas()) == 0 {
		return "spec.client.readFrom: is Replica, and the deployment has no replica now"
	}
	if r.plan.Client.Driver == plan.GoRedisDriver && r.plan.Client.ReadFrom != "" && r.plan.Client.ReadFrom != plan.ReadPrimary && m.Kind != topology.KindCluster {
		return "spec.client.readFrom: with driver GoRedis a cluster only: of other deployments go-redis follows the primary, or sends writes to replicas, too"
	}
	return ""
}

// shardTag is a hash tag "{n}" that leads a key to the shard; false where the shard serves no slot.
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

// deploymentOf is the target as package topology follows it. timeout bounds a dial, and an answer. secret is the servers' password; the sentinels
// have a file of their own.
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
