// Package failover is the fault Failover, through Sentinel, Redis Cluster or plain replication.
package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Kinds are the faults of the roles of servers.
var Kinds = contract.Kinds{
	v1alpha1.FaultFailover: newFailover,
}

// defaultFailoverTimeout is the default of spec.action.failover.timeout.
const defaultFailoverTimeout = 10 * time.Second

// blindFor is how long the state of a failover that has begun may be unknown: servers that are busy
// with it may not answer.
const blindFor = time.Minute

func newFailover(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := ptr.Deref(spec.Action.Failover, v1alpha1.Failover{})
	return failover{
		Deps:    deps,
		now:     time.Now,
		mode:    cmp.Or(given.Mode, v1alpha1.FailoverPlain),
		method:  cmp.Or(given.Method, v1alpha1.FailoverAuto),
		timeout: cmp.Or(given.Timeout.Duration, defaultFailoverTimeout),
	}
}

func (failover) Traits() contract.Traits {
	return contract.Traits{Whole: true}
}

// Preflight returns errors of Redis and the sentinels as problems that may pass.
func (f failover) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	err := f.prepare(ctx, target)
	_, isProblem := errors.AsType[*problem.Problem](err)
	if err == nil || ctx.Err() != nil || isProblem {
		return err
	}
	return problem.NotYet("%v", err)
}

func (f failover) prepare(ctx context.Context, target *v1alpha1.FaultTarget) error {
	server, err := f.Servers.Ask(ctx, target.Address, f.Login)
	if err != nil {
		return err
	}
	if server.Mode != "cluster" && server.Role != topology.Primary {
		return problem.Invalid("spec.select.role: %s is a %s: a failover is of a primary: set Primary",
			target.Pod, server.Role)
	}
	method, err := f.choose(target, server)
	if err != nil {
		return err
	}
	modes := modesOf[method]
	if !slices.Contains(modes, f.mode) {
		return problem.Invalid(
			"spec.action.failover.mode: %s is none of method %s, which was found: it has %v", f.mode, method,
			modes)
	}
	record, err := f.plan(ctx, target, method)
	if err != nil {
		return err
	}
	record.Method = method
	return contract.Save(target, record)
}

// plan returns the record for a method, or a Problem where the failover cannot work. It changes
// nothing.
func (f failover) plan(
	ctx context.Context, target *v1alpha1.FaultTarget, method v1alpha1.FailoverMethod,
) (failoverRecord, error) {
	switch method {
	case v1alpha1.FailoverSentinel:
		return f.planSentinel(ctx, target)
	case v1alpha1.FailoverCluster:
		return f.planCluster(ctx, target)
	}
	return f.planReplication(ctx, target)
}

// modesOf are the modes of each method.
var modesOf = map[v1alpha1.FailoverMethod][]v1alpha1.FailoverMode{
	v1alpha1.FailoverSentinel: {v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated},
	v1alpha1.FailoverCluster: {
		v1alpha1.FailoverPlain, v1alpha1.FailoverForce,
		v1alpha1.FailoverTakeover,
	},
	v1alpha1.FailoverReplication: {v1alpha1.FailoverPlain, v1alpha1.FailoverForce},
}

// choose finds the method that fits the target, and refuses one that does not.
func (f failover) choose(
	target *v1alpha1.FaultTarget, server topology.Server,
) (v1alpha1.FailoverMethod, error) {
	clustered := server.Mode == "cluster"
	switch {
	case f.method == v1alpha1.FailoverAuto && clustered:
		return v1alpha1.FailoverCluster, nil
	case f.method != v1alpha1.FailoverAuto && clustered != (f.method == v1alpha1.FailoverCluster):
		return "", problem.Invalid(
			"spec.action.failover.method: %s, but the server at %s runs in mode %s", f.method,
			target.Address, cmp.Or(server.Mode, "standalone"))
	case f.method == v1alpha1.FailoverSentinel && len(f.Sentinels.Addresses) == 0:
		return "", problem.Invalid(
			"spec.target.sentinel: method Sentinel requires the addresses of the sentinels")
	case f.method == v1alpha1.FailoverAuto && len(f.Sentinels.Addresses) > 0:
		return v1alpha1.FailoverSentinel, nil
	case f.method == v1alpha1.FailoverAuto:
		return v1alpha1.FailoverReplication, nil
	}
	return f.method, nil
}

// Begun is also true of a failover that somebody else began: a second one must not start during it.
func (f failover) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	method, _, err := f.recorded(target)
	if err != nil || method == nil {
		return false, err
	}
	if target.InjectedAt != nil {
		return true, nil
	}
	s, err := method.observe(ctx, target)
	return err == nil && s.phase != resting, err
}

func (f failover) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	method, _, err := f.recorded(target)
	if err != nil {
		return contract.Progress{}, err
	}
	if method == nil {
		return contract.Progress{}, problem.Invalid("target %s has no record of how to fail it over",
			target.Pod)
	}
	s, err := method.observe(ctx, target)
	switch {
	case err != nil:
		return f.unobserved(ctx, target, err)
	case s.phase == promoted:
		return method.finish(ctx, target, s)
	case s.phase == underWay:
		return contract.Underway("%s", s.proof), nil
	case s.phase == stuck:
		return contract.Progress{}, errors.New(s.proof)
	}
	return f.begin(ctx, method, target, s)
}

// unobserved is the progress of a failover whose state cannot be determined. It is an error unless
// the failover has just begun or the target's server no longer exists.
func (f failover) unobserved(
	ctx context.Context, target *v1alpha1.FaultTarget, cause error,
) (contract.Progress, error) {
	if target.InjectedAt != nil && f.now().Sub(target.InjectedAt.Time) < blindFor {
		return contract.Underway("%v", cause), nil
	}
	if here, err := f.here(ctx, target); err != nil || !here {
		return contract.Progress{}, err
	}
	return contract.Progress{}, cause
}

// begin sends the command, once. A second failover would not be the one that is measured from
// InjectedAt on.
func (f failover) begin(
	ctx context.Context, method promotion, target *v1alpha1.FaultTarget, s observation,
) (contract.Progress, error) {
	if here, err := f.here(ctx, target); err != nil || !here {
		return contract.Progress{}, err
	}
	if target.InjectedAt != nil {
		return contract.Progress{}, fmt.Errorf("the failover was begun and had no result: %s", s.proof)
	}
	if err := method.begin(ctx, target); err != nil {
		return contract.Progress{}, err
	}
	return contract.Underway("begun: %s", method.command(target)), nil
}

func (f failover) Revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	method, _, err := f.recorded(target)
	if err != nil || method == nil {
		return contract.Progress{}, err
	}
	return method.revert(ctx, target)
}

func (f failover) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	method, _, err := f.recorded(target)
	if err != nil || method == nil {
		return ""
	}
	return method.manualRevertCommand(target)
}

// recorded is the method that Preflight chose, with its record; nil where nothing was recorded.
func (f failover) recorded(target *v1alpha1.FaultTarget) (promotion, failoverRecord, error) {
	record, found, err := contract.Load[failoverRecord](target)
	switch {
	case err != nil || !found:
		return nil, record, err
	case record.Method == v1alpha1.FailoverSentinel && record.Sentinel != nil:
		return sentinelFailover{f, record.Primary, record.Sentinel}, record, nil
	case record.Method == v1alpha1.FailoverCluster && record.Cluster != nil:
		return clusterFailover{f, record.Primary, *record.Cluster}, record, nil
	case record.Method == v1alpha1.FailoverReplication && record.Replication != nil:
		return replicationFailover{f, record.Primary, *record.Replication}, record, nil
	}
	return nil, record, fmt.Errorf("the record of pod %s has no data of method %q", target.Pod,
		record.Method)
}
