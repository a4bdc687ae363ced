package scale

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// recordPrimary finds the primary of the selected server, and records it and what it counts.
func (s *replicaScale) recordPrimary(
	ctx context.Context, target *v1alpha1.FaultTarget, record *scaleRecord,
) error {
	own, err := s.info(ctx, target.Address)
	if err != nil {
		return problem.NotYet("Redis at %s did not answer INFO: %v", target.Address, err)
	}
	if own.Mode == "cluster" {
		if err := s.recordShard(ctx, target, record); err != nil {
			return err
		}
	} else {
		record.Primary = primaryOf(own, target.Address)
	}
	err = s.Reaches(ctx, record.Primary, target.Pod, "its primary")
	if err != nil {
		return err
	}
	said, err := s.info(ctx, record.Primary)
	if err != nil || said.role != topology.Primary {
		return problem.NotYet(
			"%s, the primary of pod %s, does not answer as one (%v): replicas are scaled only while all "+
				"servers answer", record.Primary, target.Pod, err)
	}
	record.Followers, record.Syncs = len(said.followers), said.syncs
	return nil
}

// recordGoing checks the servers that would be removed: all are replicas, and the primary of each
// stays and answers.
func (s *replicaScale) recordGoing(ctx context.Context, now *scaling) error {
	if err := s.primaryAmong(ctx, now); err != nil {
		return err
	}
	for _, name := range now.changed() {
		pod, err := s.Pod(ctx, name)
		if err != nil {
			return err
		}
		m := member{Address: s.Address(pod)}
		if now.record.Slot != nil {
			if m, err = s.node(ctx, m.Address); err != nil {
				return err
			}
		}
		_, said, err := s.primaryFor(ctx, now, m)
		if err == nil && !said.lists(name, m.Address) {
			err = fmt.Errorf("it does not list it as a replica that is online")
		}
		if err != nil {
			return problem.NotYet("the primary of %s must be there before the replica is removed: %v", name,
				err)
		}
		now.record.setMember(name, m)
	}
	return nil
}

// primaryAmong returns a Problem where a pod that would be removed is a primary, or may be one.
func (s *replicaScale) primaryAmong(ctx context.Context, now *scaling) error {
	for _, name := range now.changed() {
		pod, err := s.Pod(ctx, name)
		switch {
		case apierrors.IsNotFound(err), err == nil && pod.Status.PodIP == "":
			continue // it runs no server
		case err != nil:
			return err
		}
		err = s.maybePrimary(ctx, now, name, s.Address(pod))
		if err != nil {
			return err
		}
	}
	return nil
}

// maybePrimary returns a Problem where the server in a pod that would be removed may be a primary.
// An added one that does not answer is none if another server is.
func (s *replicaScale) maybePrimary(ctx context.Context, now *scaling, name, address string) error {
	m := now.record.Members[name]
	said, err := s.info(ctx, address)
	switch {
	case err == nil && (said.role == topology.Replica || s.unused(ctx, m, address, said)):
		return nil
	case err == nil:
		return problem.TooWide(
			"spec.action.replicaScale.by: %d: %s is a primary, and would be removed: fail over to a "+
				"server with a lower ordinal first (a fault of type Failover does)", s.by, name)
	case s.by < 0:
		return problem.NotYet("the role of %s cannot be determined: %v", name, err)
	}
	primary, _, other := s.primaryFor(ctx, now, m)
	if other != nil || primary == address {
		return problem.NotYet(
			"the role of %s cannot be determined (%v), and no other server is known to be the primary", name,
			err)
	}
	return nil
}

// unused is true of an added server that was never in sync, has no replicas and owns no slots: it
// is no primary, even if ROLE says so.
func (s *replicaScale) unused(ctx context.Context, m member, address string, said serverInfo) bool {
	return s.by > 0 && m.Synced.IsZero() && len(said.followers) == 0 &&
		!s.ownsSlots(ctx, address, said)
}

// primaryFor reads the primary that a pod's server has, or is to have: the one that most of the
// remaining servers name, in a tie the recorded one.
func (s *replicaScale) primaryFor(
	ctx context.Context, now *scaling, m member,
) (string, serverInfo, error) {
	asked := s.staying(ctx, now)
	if m.Slot != nil {
		owner, err := s.ownerOf(ctx, *m.Slot, asked)
		if err != nil {
			return "", serverInfo{}, err
		}
		said, err := s.info(ctx, owner.address)
		return owner.address, said, err
	}
	votes, best := map[string]int{}, asked[0]
	for _, address := range asked {
		if said, err := s.info(ctx, address); err == nil {
			votes[primaryOf(said, address)]++
		}
	}
	for address, n := range votes {
		if n > votes[best] {
			best = address
		}
	}
	said, err := s.info(ctx, best)
	if err == nil && said.role != topology.Primary {
		err = fmt.Errorf("%s is no primary", best)
	}
	return best, said, err
}

// reachNodes refuses a cluster with nodes that no pod of the namespace is: all nodes are made to
// meet or to forget the ones that are scaled.
func (s *replicaScale) reachNodes(ctx context.Context, target *v1alpha1.FaultTarget) error {
	nodes, err := s.listing(ctx, target.Address)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if !n.trusted() {
			continue
		}
		err := s.Reaches(ctx, n.address, target.Pod, "a node of its cluster")
		if err != nil {
			return err
		}
	}
	return nil
}

// recordShard records the shard of the selected server and its primary, and refuses a user who may
// not change the cluster.
func (s *replicaScale) recordShard(
	ctx context.Context, target *v1alpha1.FaultTarget, record *scaleRecord,
) error {
	none := strings.Repeat("0", 40)
	for _, command := range [][]string{
		{"CLUSTER", "MYID"},
		{"CLUSTER", "MEET", "127.0.0.1", "6379"},
		{"CLUSTER", "REPLICATE", none},
		{"CLUSTER", "FORGET", none},
	} {
		err := s.MayRun(ctx, target.Address, command...)
		if err != nil {
			return err
		}
	}
	m, err := s.node(ctx, target.Address)
	if err != nil {
		return err
	}
	owner, err := s.ownerOf(ctx, *m.Slot, []string{target.Address})
	if err != nil {
		return err
	}
	record.Slot, record.Primary = m.Slot, owner.address
	return s.reachNodes(ctx, target)
}
