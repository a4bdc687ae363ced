package failover

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
)

// failover promotes a replica in the place of the selected primary, by the means of the target's
// topology.
type failover struct {
	contract.Deps
	mode    v1alpha1.FailoverMode
	method  v1alpha1.FailoverMethod
	timeout time.Duration
	now     func() time.Time
}

// promotion is one method of failing over, with what was recorded for it.
type promotion interface {
	// observe determines the state of the failover from the authority of the topology.
	observe(ctx context.Context, target *v1alpha1.FaultTarget) (observation, error)
	// begin sends the command. It is called only while the recorded primary is the primary. An error
	// means that nothing was begun.
	begin(ctx context.Context, target *v1alpha1.FaultTarget) error
	// finish completes the failover after the promotion.
	finish(ctx context.Context, target *v1alpha1.FaultTarget, s observation) (contract.Progress, error)
	// revert cleans up after an unfinished failover. A promoted replica stays the primary.
	revert(ctx context.Context, target *v1alpha1.FaultTarget) (contract.Progress, error)
	// command describes what begin sends, and manualRevertCommand what revert does; "" where there is
	// nothing to revert.
	command(target *v1alpha1.FaultTarget) string
	manualRevertCommand(target *v1alpha1.FaultTarget) string
	// coordination describes whether the old primary stopped accepting writes before the new one
	// started to.
	coordination(ctx context.Context, target *v1alpha1.FaultTarget) string
}

// observation is the observed state of a failover.
type observation struct {
	phase   phase
	primary string    // host:port of the current primary; "" = it cannot be determined
	since   time.Time // when it was promoted, where that is known exactly
	proof   string    // the evidence
}

// phase is how far a failover has come.
type phase string

const (
	resting  phase = "resting"  // the recorded primary is the primary, and nothing is in progress
	underWay phase = "underWay" // a failover is in progress
	promoted phase = "promoted" // another server is or was the primary
	stuck    phase = "stuck"    // a failover began and is overdue
)

// reachReplicas refuses replicas that no pod of the namespace is: they would be sent commands, or
// named in one.
func (f failover) reachReplicas(
	ctx context.Context, primary string, replicas []topology.Attached,
) error {
	for _, r := range replicas {
		err := f.Reaches(ctx, r.Address, f.nameOf(ctx, primary), "its replica")
		if err != nil {
			return err
		}
	}
	return nil
}

// here reports whether the server process that was recorded still runs. A new process in its place
// is not the target.
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

// begunAt is when the command was sent, or shortly before where the operator restarted before it
// stored that.
func begunAt(target *v1alpha1.FaultTarget) time.Time {
	switch {
	case target.InjectedAt != nil:
		return target.InjectedAt.Time
	case target.IntendedAt != nil:
		return target.IntendedAt.Time
	}
	return time.Time{}
}

// candidate is a replica that could be promoted.
type candidate struct {
	topology.Attached
	barred bool // its configuration says never to promote it: the last choice
}

// compare orders candidates, the best one first: the most advanced.
func (c candidate) compare(other candidate) int {
	last := func(c candidate) int {
		if c.barred {
			return 1
		}
		return 0
	}
	return cmp.Or(last(c)-last(other), cmp.Compare(other.Offset, c.Offset),
		strings.Compare(c.Address, other.Address))
}

// replicasOf lists the online replicas of a primary, the most advanced first. It returns a Problem
// where there is none.
func (f failover) replicasOf(
	ctx context.Context, primary string,
) (topology.ReplicationInfo, error) {
	said, err := f.replication(ctx, primary)
	if err != nil {
		return said, err
	}
	said.Replicas = slices.DeleteFunc(said.Replicas, func(r topology.Attached) bool {
		return !r.Online || r.Address == ""
	})
	if len(said.Replicas) == 0 {
		return said, noReplica(primary)
	}
	return said, nil
}

func noReplica(primary string) error {
	return problem.Unsupported("the primary at %s has no replica that could be promoted", primary)
}

func (f failover) replication(
	ctx context.Context, address string,
) (topology.ReplicationInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
	defer cancel()
	info, err := f.Info(ctx, address, "replication")
	return topology.ReplicationOf(info), err
}
