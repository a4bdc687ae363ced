package failover

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

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
