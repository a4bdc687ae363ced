// Package failover is the fault Failover, through Sentinel, Redis Cluster or plain replication.
package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// Kinds are the faults of the roles of servers.
var Kinds = contract.Kinds{
	v1alpha1.FaultFailover: newFailover,
}

// defaultFailoverTimeout is what spec.action.failover.timeout is where it says nothing.
const defaultFailoverTimeout = 10 * time.Second

// blindFor is how long nobody need know how far a failover is that was begun: servers that are busy with it may not answer at once.
const blindFor = time.Minute

// failoverRecord is the record of a failover. All that follows is told by it: whether the failover has happened is whether the recorded
// primary is still the primary, so that none is begun twice, whoever asks.
type failoverRecord struct {
	Method      v1alpha1.FailoverMethod `json:"method"`  // never Auto
	Primary     string                  `json:"primary"` // host:port of the primary, as the topology names it
	Cluster     *clusterRecord          `json:"cluster,omitempty"`
	Sentinel    *sentinelRecord         `json:"sentinel,omitempty"`
	Replication *replicationRecord      `json:"replication,omitempty"`
}

// failover promotes a replica in the place of the selected primary, by the means of the target's topology.
type failover struct {
	contract.Deps
	mode    v1alpha1.FailoverMode
	method  v1alpha1.FailoverMethod
	timeout time.Duration
	now     func() time.Time
}

// promotion is one method of failing over, with what was recorded for it.
type promotion interface {
	// look says how far the failover is, by what has the authority to say so.
	look(ctx context.Context, target *v1alpha1.FaultTarget) (standing, error)
	// begin sends the command. It is asked for only while the recorded primary is the primary. An error means that nothing was begun.
	begin(ctx context.Context, target *v1alpha1.FaultTarget) error
	// finish does what is left to do after the promotion.
	finish(ctx context.Context, target *v1alpha1.FaultTarget, s standing) (contract.Progress, error)
	// revert ends what would stay behind an unfinished failover. What is promoted stays so.
	revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error)
	// command is what begin sends, for people, and manualRevertCommand what revert does; "" where there is nothing to revert.
	command(target *v1alpha1.FaultTarget) string
	manualRevertCommand(target *v1alpha1.FaultTarget) string
	// care says whether the old primary stopped taking writes before the new one began to.
	care(ctx context.Context, target *v1alpha1.FaultTarget) string
}

// standing is how far a failover is.
type standing struct {
	phase   phase
	primary string    // host:port of the primary now; "" = none is known for certain
	since   time.Time // when it became so, where that is known exactly
	proof   string    // who says so
}

// phase is the place of a standing in the course of a failover.
type phase string

const (
	resting  phase = "resting"  // the recorded primary is the primary, and nothing is under way
	underWay phase = "underWay" // it is failed over now
	promoted phase = "promoted" // another is the primary, or was since
	stuck    phase = "stuck"    // it was begun, and should have ended long ago
)

func newFailover(spec *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	given := v1alpha1.Failover{}
	if spec.Action.Failover != nil {
		given = *spec.Action.Failover
	}
	return failover{
		Deps: deps, now: time.Now,
		mode: cmp.Or(given.Mode, v1alpha1.FailoverPlain), method: cmp.Or(given.Method, v1alpha1.FailoverAuto),
		timeout: cmp.Or(given.Timeout.Duration, defaultFailoverTimeout),
	}
}

func (failover) Traits() contract.Traits { return contract.Traits{} }

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
	return nil, record, fmt.Errorf("the record of pod %s says nothing of method %q", target.Pod, record.Method)
}

// Preflight turns what Redis or the sentinels did not answer into a problem that may pass.
func (f failover) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	err := f.prepare(ctx, target)
	if _, isProblem := errors.AsType[*problem.Problem](err); err == nil || ctx.Err() != nil || isProblem {
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
		return problem.Invalid("spec.select.role: %s is a %s: a failover is of a primary: set Primary", target.Pod, server.Role)
	}
	method, err := f.choose(target, server)
	if err != nil {
		return err
	}
	if modes := modesOf[method]; !slices.Contains(modes, f.mode) {
		return problem.Invalid("spec.action.failover.mode: %s is none of method %s, which was found: it has %v", f.mode, method, modes)
	}
	record, err := f.plan(ctx, target, method)
	if err != nil {
		return err
	}
	record.Method = method
	return contract.Save(target, record)
}

// plan refuses what cannot work and says what the other methods need to know. It changes nothing.
func (f failover) plan(ctx context.Context, target *v1alpha1.FaultTarget, method v1alpha1.FailoverMethod) (failoverRecord, error) {
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
	v1alpha1.FailoverSentinel:    {v1alpha1.FailoverPlain, v1alpha1.FailoverCoordinated},
	v1alpha1.FailoverCluster:     {v1alpha1.FailoverPlain, v1alpha1.FailoverForce, v1alpha1.FailoverTakeover},
	v1alpha1.FailoverReplication: {v1alpha1.FailoverPlain, v1alpha1.FailoverForce},
}

// choose finds the method that fits the target, and refuses one that does not.
func (f failover) choose(target *v1alpha1.FaultTarget, server topology.Server) (v1alpha1.FailoverMethod, error) {
	clustered := server.Mode == "cluster"
	switch {
	case f.method == v1alpha1.FailoverAuto && clustered:
		return v1alpha1.FailoverCluster, nil
	case f.method != v1alpha1.FailoverAuto && clustered != (f.method == v1alpha1.FailoverCluster):
		return "", problem.Invalid("spec.action.failover.method: %s, but the server at %s runs in mode %s", f.method, target.Address, cmp.Or(server.Mode, "standalone"))
	case f.method == v1alpha1.FailoverSentinel && len(f.Sentinels.Addresses) == 0:
		return "", problem.Invalid("spec.target.sentinel: method Sentinel needs to know where the sentinels are")
	case f.method == v1alpha1.FailoverAuto && len(f.Sentinels.Addresses) > 0:
		return v1alpha1.FailoverSentinel, nil
	case f.method == v1alpha1.FailoverAuto:
		return v1alpha1.FailoverReplication, nil
	}
	return f.method, nil
}

// replicasOf are the replicas that a primary holds for online, the most advanced first. A Problem says that there is none.
func (f failover) replicasOf(ctx context.Context, primary string) (topology.ReplicationInfo, error) {
	said, err := f.replication(ctx, primary)
	if err != nil {
		return said, err
	}
	said.Replicas = slices.DeleteFunc(said.Replicas, func(r topology.Attached) bool { return !r.Online || r.Address == "" })
	if len(said.Replicas) == 0 {
		return said, problem.Unsupported("the primary at %s has no replica that could take its place", primary)
	}
	return said, nil
}

func (f failover) replication(ctx context.Context, address string) (topology.ReplicationInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, target.LookFor)
	defer cancel()
	info, err := f.Info(ctx, address, "replication")
	return topology.ReplicationOf(info), err
}

// Begun holds for a failover of somebody else's, too: there must not be another on top of it.
func (f failover) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	way, _, err := f.recorded(target)
	if err != nil || way == nil {
		return false, err
	}
	if target.InjectedAt != nil {
		return true, nil
	}
	s, err := way.look(ctx, target)
	return err == nil && s.phase != resting, err
}

func (f failover) Inject(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	way, _, err := f.recorded(target)
	if err != nil {
		return contract.Progress{}, err
	}
	if way == nil {
		return contract.Progress{}, problem.Invalid("target %s has no record of how to fail it over", target.Pod)
	}
	s, unknown := way.look(ctx, target)
	switch {
	case unknown == nil && s.phase == promoted:
		return way.finish(ctx, target, s)
	case unknown == nil && s.phase == underWay:
		return contract.Underway("%s", s.proof), nil
	case unknown == nil && s.phase == stuck:
		return contract.Progress{}, errors.New(s.proof)
	case unknown != nil && target.InjectedAt != nil && f.now().Sub(target.InjectedAt.Time) < blindFor:
		return contract.Underway("%v", unknown), nil
	}
	if here, err := f.here(ctx, target); err != nil || !here {
		return contract.Progress{}, err
	}
	switch {
	case unknown != nil:
		return contract.Progress{}, unknown
	case target.InjectedAt != nil: // begun a second time, it would no longer be what was measured from t0 on
		return contract.Progress{}, fmt.Errorf("the failover was begun and came to nothing: %s", s.proof)
	}
	if err := way.begin(ctx, target); err != nil {
		return contract.Progress{}, err
	}
	return contract.Underway("begun: %s", way.command(target)), nil
}

// here says whether the very server that was recorded is still there. A new process in its place was never meant.
func (f failover) here(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := f.Pod(ctx, target.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	case string(pod.UID) != target.UID:
		return false, nil
	}
	server, err := f.Servers.Ask(ctx, target.Address, f.Login)
	return err == nil && server.RunID == target.RunID, err
}

// begunAt is when the command was sent, or a little before: an operator that died may not have said when.
func begunAt(target *v1alpha1.FaultTarget) time.Time {
	switch {
	case target.InjectedAt != nil:
		return target.InjectedAt.Time
	case target.IntendedAt != nil:
		return target.IntendedAt.Time
	}
	return time.Time{}
}

func (f failover) Revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error) {
	way, _, err := f.recorded(target)
	if err != nil || way == nil {
		return contract.Progress{}, err
	}
	return way.revert(ctx, target)
}

func (f failover) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	way, _, err := f.recorded(target)
	if err != nil || way == nil {
		return ""
	}
	return way.manualRevertCommand(target)
}
