package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// defaultFailoverTimeout is what spec.action.failover.timeout is where it says nothing.
const defaultFailoverTimeout = 10 * time.Second

// lookFor bounds a question to a server that may hang because of the failover: a look asks several, and has AskTimeout for all.
const lookFor = AskTimeout / 4

// blindFor is how long nobody need know how far a failover is that was begun: servers that are busy with it may not answer at once.
const blindFor = time.Minute

// What Preflight records of a failover, by name. All that follows is told by it: whether the failover has happened is whether the recorded
// primary is still the primary, so that none is begun twice, whoever asks.
const (
	failoverMethod  = "method"  // that carries it out, never Auto
	failoverPrimary = "primary" // host:port of the primary, as the topology names it
	failoverEpoch   = "epoch"   // config epoch: it grows with every failover; Sentinel and Cluster
	failoverReplica = "replica" // host:port of the replica to promote, as it announced itself; Cluster and Replication
)

// failover promotes a replica in the place of the selected primary, by the means of the target's topology.
type failover struct {
	Surroundings
	mode    v1alpha1.FailoverMode
	method  v1alpha1.FailoverMethod
	timeout time.Duration
	now     func() time.Time
}

// promotion is one method of failing over.
type promotion interface {
	// plan refuses what cannot work and records what the others need. It changes nothing.
	plan(ctx context.Context, target *v1alpha1.FaultTarget, server topology.Server) error
	// look says how far the failover is, by what has the authority to say so.
	look(ctx context.Context, target *v1alpha1.FaultTarget) (standing, error)
	// begin sends the command. It is asked for only while the recorded primary is the primary. An error means that nothing was begun.
	begin(ctx context.Context, target *v1alpha1.FaultTarget) error
	// finish does what is left to do after the promotion; *InProgress until that is done.
	finish(ctx context.Context, target *v1alpha1.FaultTarget, s standing) error
	// tidy takes back what would stay behind an unfinished failover. What is promoted stays so.
	tidy(ctx context.Context, target *v1alpha1.FaultTarget) error
	// command is what begin sends, for people, and manualRevertCommand what tidy does; "" where there is nothing to tidy.
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

func newFailover(spec *v1alpha1.RedisFaultSpec, around Surroundings) Injector {
	given := v1alpha1.Failover{}
	if spec.Action.Failover != nil {
		given = *spec.Action.Failover
	}
	return failover{
		Surroundings: around, now: time.Now,
		mode: cmp.Or(given.Mode, v1alpha1.FailoverPlain), method: cmp.Or(given.Method, v1alpha1.FailoverAuto),
		timeout: cmp.Or(given.Timeout.Duration, defaultFailoverTimeout),
	}
}

func (failover) Traits() Traits { return Traits{} }

// recorded is what Preflight noted under a name; "" where it noted nothing.
func (failover) recorded(target *v1alpha1.FaultTarget, name string) string {
	value, _ := undoValue(target, name)
	return value
}

// by is the method of a name; nil for an unknown one.
func (f failover) by(method v1alpha1.FailoverMethod) promotion {
	switch method {
	case v1alpha1.FailoverSentinel:
		return sentinelFailover{f}
	case v1alpha1.FailoverCluster:
		return clusterFailover{f}
	case v1alpha1.FailoverReplication:
		return replicationFailover{f}
	}
	return nil
}

// recordedWay is the method that Preflight chose; nil without its record.
func (f failover) recordedWay(target *v1alpha1.FaultTarget) promotion {
	method, _ := undoValue(target, failoverMethod)
	return f.by(v1alpha1.FailoverMethod(method))
}

// Preflight turns what Redis or the sentinels did not answer into a problem that may pass.
func (f failover) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	err := f.prepare(ctx, target)
	var problem *lifecycle.Problem
	if err == nil || ctx.Err() != nil || errors.As(err, &problem) {
		return err
	}
	return busy("%v", err)
}

func (f failover) prepare(ctx context.Context, target *v1alpha1.FaultTarget) error {
	server, err := f.Servers.Ask(ctx, target.Address, f.Login)
	if err != nil {
		return err
	}
	if server.Mode != "cluster" && server.Role != topology.Primary {
		return invalid("spec.select.role: %s is a %s: a failover is of a primary: set Primary", target.Pod, server.Role)
	}
	method, err := f.choose(target, server)
	if err != nil {
		return err
	}
	if modes := modesOf[method]; !slices.Contains(modes, f.mode) {
		return invalid("spec.action.failover.mode: %s is none of method %s, which was found: it has %v", f.mode, method, modes)
	}
	setUndo(target, failoverMethod, string(method))
	return f.by(method).plan(ctx, target, server)
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
		return "", invalid("spec.action.failover.method: %s, but the server at %s runs in mode %s", f.method, target.Address, cmp.Or(server.Mode, "standalone"))
	case f.method == v1alpha1.FailoverSentinel && len(f.Sentinels) == 0:
		return "", invalid("spec.target.sentinel: method Sentinel needs to know where the sentinels are")
	case f.method == v1alpha1.FailoverAuto && len(f.Sentinels) > 0:
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
		return said, unsupported("the primary at %s has no replica that could take its place", primary)
	}
	return said, nil
}

func (f failover) replication(ctx context.Context, address string) (topology.ReplicationInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	reply, err := f.Servers.Do(ctx, address, f.Login, "INFO", "replication")
	if err != nil {
		return topology.ReplicationInfo{}, err
	}
	text, _ := reply.(string)
	return topology.ReplicationOf(redis.ParseInfo(text)), nil
}

// Begun holds for a failover of somebody else's, too: there must not be another on top of it.
func (f failover) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	way := f.recordedWay(target)
	if way == nil {
		return false, nil
	}
	if target.InjectedAt != nil {
		return true, nil
	}
	s, err := way.look(ctx, target)
	return err == nil && s.phase != resting, err
}

func (f failover) Inject(ctx context.Context, target *v1alpha1.FaultTarget) error {
	way := f.recordedWay(target)
	if way == nil {
		return invalid("target %s has no record of how to fail it over", target.Pod)
	}
	s, unknown := way.look(ctx, target)
	switch {
	case unknown == nil && s.phase == promoted:
		return way.finish(ctx, target, s)
	case unknown == nil && s.phase == underWay:
		return &InProgress{s.proof}
	case unknown == nil && s.phase == stuck:
		return errors.New(s.proof)
	case unknown != nil && target.InjectedAt != nil && f.now().Sub(target.InjectedAt.Time) < blindFor:
		return &InProgress{unknown.Error()}
	}
	if here, err := f.here(ctx, target); err != nil || !here {
		return err
	}
	switch {
	case unknown != nil:
		return unknown
	case target.InjectedAt != nil: // begun a second time, it would no longer be what was measured from t0 on
		return fmt.Errorf("the failover was begun and came to nothing: %s", s.proof)
	}
	if err := way.begin(ctx, target); err != nil {
		return err
	}
	return &InProgress{"begun: " + way.command(target)}
}

// here says whether the very server that was recorded is still there. A new process in its place was never meant.
func (f failover) here(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	pod, err := f.pod(ctx, target.Pod)
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

func (f failover) Revert(ctx context.Context, target *v1alpha1.FaultTarget) error {
	way := f.recordedWay(target)
	if way == nil {
		return nil
	}
	return way.tidy(ctx, target)
}

func (f failover) ManualRevertCommand(target *v1alpha1.FaultTarget) string {
	way := f.recordedWay(target)
	if way == nil {
		return ""
	}
	return way.manualRevertCommand(target)
}

// busy is the problem of a target that cannot be failed over just now.
func busy(format string, words ...any) error {
	return &lifecycle.Problem{Reason: v1alpha1.ReasonInjectionFailed, Message: fmt.Sprintf(format, words...)}
}
