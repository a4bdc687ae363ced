package failover

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// replicationGrace is how much longer than its TIMEOUT a failover may take until it counts as
// stuck, and how long to wait after it for servers that do not answer.
const replicationGrace = 10 * time.Second

// replicationFailover sends FAILOVER to the primary, which waits for the replica, demotes itself
// and hands over; and points the other replicas to the new primary.
type replicationFailover struct {
	failover
	primary string
	record  replicationRecord
}

func (f failover) planReplication(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (failoverRecord, error) {
	none := failoverRecord{}
	said, err := f.replicasOf(ctx, target.Address)
	if err != nil {
		return none, err
	}
	switch said.Failover {
	case "":
		server, err := f.Servers.Ask(ctx, target.Address, f.Login)
		if err != nil {
			return none, err
		}
		return none, problem.Unsupported(
			"the server at %s (%s %s) does not support FAILOVER, which requires Redis 6.2", target.Address,
			server.Name, server.Version)
	case "no-failover":
	default:
		return none, problem.NotYet("the server at %s is failing over already: %s", target.Address,
			said.Failover)
	}
	if err := f.reachReplicas(ctx, target.Address, said.Replicas); err != nil {
		return none, err
	}
	if err := f.unwatched(ctx, target); err != nil {
		return none, err
	}
	replicas := f.promotable(ctx, said.Replicas)
	record := replicationRecord{Replica: replicas[0].Address}
	if record.Follows, err = f.planFollowers(ctx, target.Address, record.Replica,
		replicas[1:]); err != nil {
		return none, err
	}
	return failoverRecord{Primary: target.Address, Replication: &record},
		f.MayRun(ctx, target.Address, "FAILOVER", "ABORT")
}

// promotable orders replicas: the best candidate first.
func (f failover) promotable(
	ctx context.Context, replicas []topology.Attached,
) []topology.Attached {
	candidates := make([]candidate, len(replicas))
	var asking sync.WaitGroup
	for i, r := range replicas {
		asking.Go(func() {
			own, err := f.replication(ctx, r.Address)
			candidates[i] = candidate{Attached: r, barred: err == nil && own.Barred}
		})
	}
	asking.Wait()
	slices.SortFunc(candidates, candidate.compare)
	ordered := make([]topology.Attached, len(candidates))
	for i, c := range candidates {
		ordered[i] = c.Attached
	}
	return ordered
}

// unwatched refuses a primary that sentinels watch: they would treat FAILOVER as an outage and fail
// over once more.
func (f failover) unwatched(ctx context.Context, target *v1alpha1.FaultTarget) error {
	const why = "they would fail over once more on top of it: use method Sentinel"
	if len(f.Sentinels.Addresses) > 0 {
		return problem.Invalid(
			"spec.action.failover.method: Replication, but spec.target.sentinel is set: sentinels watch the primary: " +
				why)
	}
	err := f.MayRun(ctx, target.Address, "CLIENT", "LIST")
	if err != nil {
		return err
	}
	reply, err := f.Servers.Do(ctx, target.Address, f.Login, "CLIENT", "LIST")
	if err != nil {
		return err
	}
	text, _ := reply.(string)
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "name=sentinel-") {
			return problem.Invalid(
				"spec.target.sentinel: sentinels watch the server at %s (its client %s), and %s, and set their addresses",
				target.Address, word, why)
		}
	}
	return nil
}

func (r replicationFailover) begin(ctx context.Context, target *v1alpha1.FaultTarget) error {
	_, err := r.Servers.Do(ctx, target.Address, r.Login, r.words()...)
	if err != nil && strings.Contains(err.Error(), "FAILOVER already in progress") {
		return nil
	}
	return r.Refusal(err, target.Address, "FAILOVER")
}

// revert ends a failover that is in progress, and completes one that has happened.
func (r replicationFailover) revert(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	now, err := r.observe(ctx, target)
	if err == nil && now.phase == promoted {
		return r.finish(ctx, target, now)
	}
	if here, err := r.here(ctx, target); err != nil || !here {
		return contract.Progress{}, err
	}
	old, err := r.replication(ctx, target.Address)
	if err != nil || old.Failover == "no-failover" {
		return contract.Progress{}, err
	}
	_, err = r.Servers.Do(ctx, target.Address, r.Login, "FAILOVER", "ABORT")
	if err != nil && !strings.Contains(err.Error(), "No failover in progress") {
		return contract.Progress{}, err
	}
	return contract.Underway("FAILOVER ABORT was sent"), nil
}

func (r replicationFailover) observe(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (observation, error) {
	primary, replica := r.primary, r.record.Replica
	old, oldErr := r.replication(ctx, primary)
	now, nowErr := r.replication(ctx, replica)
	takenOver := nowErr == nil && now.Role == topology.Primary
	switch {
	case takenOver && (oldErr != nil || old.Role != topology.Primary):
		proof := fmt.Sprintf("ROLE of %s is primary instead of %s", replica, primary)
		//nolint:nilerr // an old primary that does not answer is no longer the primary
		return observation{
			phase:   promoted,
			primary: replica,
			proof:   proof,
		}, nil
	case oldErr != nil:
		return observation{}, oldErr
	case takenOver:
		return observation{}, fmt.Errorf("split: %s and %s both report the role primary", primary,
			replica)
	}
	return r.handover(target, old), nil
}

// handover is how far the recorded primary is with a failover while no other server is the primary.
func (r replicationFailover) handover(
	target *v1alpha1.FaultTarget, old topology.ReplicationInfo,
) observation {
	sent := target.InjectedAt
	switch {
	case old.Failover == "no-failover" && old.Role == topology.Primary:
		return observation{
			phase:   resting,
			primary: r.primary,
			proof:   fmt.Sprintf("ROLE of %s is primary", r.primary),
		}
	case sent != nil && r.now().Sub(sent.Time) > r.timeout+replicationGrace:
		return observation{
			phase: stuck,
			proof: fmt.Sprintf("the failover of %s is stuck in state %s", r.primary, old.Failover),
		}
	case old.Failover != "no-failover":
		return observation{
			phase: underWay,
			proof: fmt.Sprintf("%s is in state %s", r.primary, old.Failover),
		}
	}
	return observation{
		phase: underWay,
		proof: fmt.Sprintf("%s replicates from %s, which is no primary yet", r.primary, old.Primary),
	}
}

// finish points the other replicas to the new primary. A replica that somebody else pointed
// elsewhere meanwhile is not changed. It waits at most replicationGrace for servers that do not
// answer.
func (r replicationFailover) finish(
	ctx context.Context, target *v1alpha1.FaultTarget, now observation,
) (contract.Progress, error) {
	late := r.now().Sub(begunAt(target)) > r.timeout+replicationGrace
	missing := r.repoint(ctx, now.primary)
	if missing == "" || late {
		return contract.Progress{}, nil
	}
	return contract.Underway("%s", missing), nil
}

func (r replicationFailover) command(*v1alpha1.FaultTarget) string {
	words := make([]string, 0, 8)
	for _, word := range r.words() {
		words = append(words, fmt.Sprint(word))
	}
	return strings.Join(words, " ") + " at " + r.primary
}

// words are FAILOVER with its arguments. Without TIMEOUT a replica that hangs would block writes
// for ever.
func (r replicationFailover) words() []any {
	host, port, _ := net.SplitHostPort(r.record.Replica)
	words := []any{"FAILOVER", "TO", host, port}
	if r.mode == v1alpha1.FailoverForce {
		words = append(words, "FORCE")
	}
	return append(words, "TIMEOUT", r.timeout.Milliseconds())
}

func (r replicationFailover) manualRevertCommand(target *v1alpha1.FaultTarget) string {
	return r.CLIAt(target.Address, "FAILOVER ABORT")
}

func (r replicationFailover) coordination(ctx context.Context, _ *v1alpha1.FaultTarget) string {
	text := "coordinated: the old primary took no writes until the replica had them all"
	if r.mode == v1alpha1.FailoverForce {
		text = fmt.Sprintf(
			"coordinated only if the replica had caught up within %s: FORCE waits no longer", r.timeout)
	}
	others, err := r.others(ctx)
	if err != nil {
		text += fmt.Sprintf("; %v", err)
	}
	for _, one := range others {
		switch {
		case one.err != nil:
			text += fmt.Sprintf("; the replica at %s does not answer", one.address)
		case r.stays(ctx, one):
			text += fmt.Sprintf("; the replica at %s still replicates from the old primary", one.address)
		}
	}
	return text
}
