package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/probe"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/redis/track"
)

// discover finds the topology of the deployment, follows its changes, and assigns the loops'
// connections accordingly.
func (r *Runner) discover(ctx context.Context, progress func(string)) error {
	if r.laidOut {
		return r.layOutDeployment()
	}
	kind := topology.Kind(r.run.Plan.Target.Topology)
	if kind == "" || kind == topology.KindStandalone {
		return nil
	}
	target := deploymentOf(&r.run.Plan.Target, r.run.Plan.Client.DialTimeout,
		r.run.Routes.Dialer.Secret)
	if r.run.Plan.Target.Topology == plan.TopologyAuto {
		progress("detecting the topology of the deployment")
		err := r.find(ctx, progress, target, "the topology of the deployment",
			func(ctx context.Context, target track.Target) (err error) {
				kind, err = track.Detect(ctx, target)
				return err
			})
		if err != nil || kind == topology.KindStandalone {
			return err
		}
		if slices.ContainsFunc(r.run.Plan.Target.Addresses, plan.IsSocket) {
			return socketOf(kind)
		}
	}
	primaries := fmt.Sprintf("the primaries of the %s", kind)
	progress("finding " + primaries)
	if err := r.find(ctx, progress, target, primaries,
		func(ctx context.Context, target track.Target) error {
			return r.follow(ctx, target,
				kind)
		}); err != nil {
		return err
	}
	return r.layOutDeployment()
}

// socketOf is the error of a unix socket that leads to a part of a deployment of several servers,
// whose others it does not reach; nil if that part can be loaded on its own.
func socketOf(kind topology.Kind) error {
	if kind == topology.KindReplication {
		return nil
	}
	return &plan.Error{
		Reason: plan.PlanInvalid,
		Message: fmt.Sprintf("target.addresses: the unix socket is that of one server of a %s, "+
			"whose others it does not reach: set their hosts and ports", kind),
	}
}

// layOutDeployment assigns the loops' connections and the probes to the shards, and has the loops
// follow their changes.
func (r *Runner) layOutDeployment() error {
	m := r.run.Routes.Tracker.Map()
	r.layout.Store(m)
	if len(m.Shards) > 1 {
		r.run.Sharded = true
	}
	if err := r.probeShards(m); err != nil {
		return err
	}
	for _, l := range r.loops {
		l.LayOut(m)
	}
	r.run.Routes.Tracker.OnChange(func(*topology.Map) { // the loops apply it immediately
		for _, l := range r.loops {
			l.Nudge()
		}
	})
	return nil
}

// find repeats a look at the deployment until it succeeds, or fails with what does not pass. Each
// look takes as long as dialling does at most, and says meanwhile what it has not found.
func (r *Runner) find(
	ctx context.Context, progress func(string), target track.Target, what string,
	look func(context.Context, track.Target) error,
) error {
	w, client := r.newWait(progress), r.run.Plan.Client
	target.Trouble = func(err error) { _ = w.failed(notFound(what, err)) }
	return r.patientlyOn(ctx, w, func(ctx context.Context) error {
		within, cancel := context.WithTimeout(ctx,
			min(dial.Budget(client), max(r.patience, client.DialTimeout)))
		defer cancel()
		if err := look(within, target); err != nil {
			return r.unknown(ctx, what, err)
		}
		return nil
	})
}

// follow begins to follow the deployment, if its primaries are known and the plan is possible with
// it.
func (r *Runner) follow(ctx context.Context, target track.Target, kind topology.Kind) error {
	tracker, err := track.Start(ctx, target, kind)
	if err != nil {
		return err
	}
	if err := r.checkDeployment(tracker.Map()); err != nil {
		tracker.Close()
		return err
	}
	r.run.Routes.Tracker = tracker
	return nil
}

// notFound is the error of what may be found later.
func notFound(what string, err error) *plan.Error {
	return &plan.Error{
		Reason:  plan.TargetUnreachable,
		Err:     err,
		Message: fmt.Sprintf("failed to find %s: %v", what, err),
		Passes:  true,
	}
}

// unknown is the error of a deployment that does not answer, or not yet.
func (r *Runner) unknown(ctx context.Context, what string, err error) error {
	if invalid, ok := errors.AsType[*plan.Error](err); ok {
		return invalid
	}
	failed := notFound(what, err)
	if track.IsLasting(err) {
		failed.Reason, failed.Passes = dial.ReasonOf(err), false
		return failed
	}
	if r.findings.proxy != "" {
		return failed
	}
	target := &r.run.Plan.Target
	asked, secured, stage := target.Addresses, target.TLS != nil, redis.StageHello
	if s := target.Sentinel; s != nil {
		asked, secured = s.Addresses, s.TLS != nil
	}
	if secured {
		stage = redis.StageTLS
	}
	wrong := r.run.Routes.Dialer.WrongPort(ctx, &redis.DialError{
		Stage:   stage,
		Address: asked[0],
		Secured: secured,
		Err:     err,
	})
	if wrong != nil {
		return dial.Explain(wrong)
	}
	return failed
}

// probeShards creates one probe per shard.
func (r *Runner) probeShards(m *topology.Map) error {
	if len(r.probes) == 0 || len(m.Shards) == 1 {
		return nil
	}
	r.probes = nil
	for shard := range m.Shards {
		tag, ok := route.ShardTag(m, shard)
		if !ok {
			continue
		}
		p, err := probe.New(r.run, shard, tag)
		if err != nil {
			return &plan.Error{
				Reason:  plan.PlanInvalid,
				Message: "spec.probe: " + err.Error(),
				Err:     err,
			}
		}
		r.probes = append(r.probes, p)
	}
	return nil
}

// checkDeployment returns what in the plan is not possible with this deployment, or not yet; nil =
// nothing.
func (r *Runner) checkDeployment(m *topology.Map) error {
	invalid := func(message string) error {
		return &plan.Error{Reason: plan.PlanInvalid, Message: message}
	}
	if m.Kind == topology.KindCluster && r.run.Plan.Target.Database != 0 {
		return invalid("spec.target.database: a cluster has database 0 only")
	}
	if r.run.Plan.Client.ReadFrom == plan.ReadReplica && len(m.Replicas()) == 0 {
		return &plan.Error{
			Reason:  plan.PlanInvalid,
			Passes:  true,
			Message: "spec.client.readFrom: is Replica, but the deployment has no replica",
		}
	}
	return nil
}

// deploymentOf converts the target for package topology. timeout bounds each dial and each reply.
// secret returns the servers' password; the sentinels have a separate password file.
func deploymentOf(
	t *plan.Target, timeout time.Duration, secret func() (string, error),
) track.Target {
	d := track.Target{
		Addresses: t.Addresses,
		Login:     loginFunc(t.Username, secret, t.TLS),
		Timeout:   timeout,
		After:     time.After,
		Lasting:   func(err error) bool { return !dial.Passes(err) },
	}
	if s := t.Sentinel; s != nil {
		d.Sentinels, d.MasterName = s.Addresses, s.MasterName
		d.SentinelLogin = loginFunc(s.Username,
			func() (string, error) { return dial.ReadPassword(s.PasswordFile) }, s.TLS)
	}
	return d
}

func loginFunc(
	username string, secret func() (string, error), settings *plan.TLS,
) track.LoginFunc {
	return func() (redis.Login, error) {
		l, failed := dial.Login(username, secret, settings)
		if failed != nil {
			return l, failed
		}
		return l, nil
	}
}
