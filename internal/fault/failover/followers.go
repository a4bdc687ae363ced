package failover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
)

// FAILOVER changes the old primary and the promoted replica only. Every other server that
// replicates from the old primary would do so from a replica for ever, unless it is pointed to the
// new primary. Those that the old primary lists are not all: a replica that reconnects or restarts
// just then is missing.
// Planning does not wait for it, as a failover while a replica is down is a fault that users want;
// the servers of the target are asked again, and waited for, when the failover is completed.

// follower is a server that may replicate from the old primary, or a pod whose server has no
// address yet.
type follower struct {
	address string
	pod     string // instead of an address
	said    topology.ReplicationInfo
	err     error // it did not answer
}

// followers queries the servers of the target's pods, and those at further addresses, except some.
func (f failover) followers(ctx context.Context, further, except []string) ([]follower, error) {
	all := make([]follower, 0, len(further))
	for _, address := range further {
		all = append(all, follower{address: address})
	}
	more, err := f.inPods(ctx, slices.Concat(further, except))
	all = append(all, more...)
	var asking sync.WaitGroup
	for i := range all {
		if one := &all[i]; one.address != "" {
			asking.Go(func() { one.said, one.err = f.replication(ctx, one.address) })
		}
	}
	asking.Wait()
	return all, err
}

// inPods are the servers in the target's pods that run or start, except those to which some
// addresses lead. Pods of a target that is not known any more, as its load test was deleted, are
// not looked for.
func (f failover) inPods(ctx context.Context, except []string) ([]follower, error) {
	if f.Spec == nil {
		return nil, nil
	}
	// the servers are still to be asked
	listing, cancel := context.WithTimeout(ctx, confine.AskTimeout)
	defer cancel()
	pods, err := f.LatestPods(listing)
	if err != nil {
		return nil, fmt.Errorf("list the pods of the target: %w", err)
	}
	known := map[string]bool{}
	for _, address := range except {
		known[f.PlaceOf(ctx, address)] = true
	}
	var found []follower
	for i := range pods {
		pod := &pods[i]
		switch {
		case pod.Labels[v1alpha1.LabelLoadTest] != "" || !startsOrRuns(pod):
		case pod.Status.PodIP == "":
			found = append(found, follower{pod: pod.Name})
		case !known[f.Address(pod)]:
			found = append(found, follower{address: f.Address(pod)})
		}
	}
	return found, nil
}

// startsOrRuns is false of a pod that has no node: it finds the new primary when it starts.
func startsOrRuns(pod *corev1.Pod) bool {
	phase := cmp.Or(pod.Status.Phase, corev1.PodPending)
	return pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" &&
		(phase == corev1.PodPending || phase == corev1.PodRunning)
}

// follows reports whether a server replicates from a primary, by whatever name.
func (f failover) follows(ctx context.Context, said topology.ReplicationInfo, primary string) bool {
	return said.Role == topology.Replica && said.Primary != "" &&
		f.PlaceOf(ctx, said.Primary) == f.PlaceOf(ctx, primary)
}

// planFollowers returns what the servers follow that replicate from a primary, by their addresses,
// except the replica to be promoted.
func (f failover) planFollowers(
	ctx context.Context, primary, promoted string, listed []topology.Attached,
) (map[string]string, error) {
	addresses := make([]string, len(listed))
	for i := range listed {
		addresses[i] = listed[i].Address
	}
	others, err := f.followers(ctx, addresses, []string{primary, promoted})
	if err != nil {
		return nil, err
	}
	planned := map[string]string{}
	for i, one := range others {
		attached := i < len(addresses)
		switch {
		case attached && one.err != nil:
			return nil, problem.NotYet(
				"the replica at %s does not answer, so it could not be pointed to the new primary: %v",
				one.address, one.err)
		case !attached && (one.err != nil || !f.follows(ctx, one.said, primary)):
			continue
		}
		planned[one.address] = one.said.Primary
		err := f.MayRun(ctx, one.address, "REPLICAOF", "NO", "ONE")
		if err != nil {
			return nil, err
		}
	}
	return planned, nil
}

// others are the servers but the old and the new primary.
func (r replicationFailover) others(ctx context.Context) ([]follower, error) {
	return r.followers(ctx, slices.Sorted(maps.Keys(r.record.Follows)), []string{
		r.primary,
		r.record.Replica,
	})
}

// stays reports whether a server still replicates from the old primary. What somebody else pointed
// elsewhere does not.
func (r replicationFailover) stays(ctx context.Context, one follower) bool {
	before, recorded := r.record.Follows[one.address]
	return recorded && one.said.Role == topology.Replica && one.said.Primary == before ||
		r.follows(ctx, one.said, r.primary)
}

// repoint points the other servers to the new primary, and returns what is missing until all of
// them follow it; "" = nothing. A server that does not answer yet, or whose pod starts, may come up
// as a replica of the old primary.
func (r replicationFailover) repoint(ctx context.Context, primary string) string {
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		return err.Error()
	}
	var missing []string
	others, err := r.others(ctx)
	if err != nil {
		missing = append(missing, err.Error())
	}
	for _, one := range others {
		err := one.err
		switch {
		case one.pod != "":
			missing = append(missing, fmt.Sprintf("pod %s starts", one.pod))
		case err == nil && r.stays(ctx, one):
			_, err = r.Servers.Do(ctx, one.address, r.Login, "REPLICAOF", host, port)
			missing = append(missing,
				fmt.Sprintf("the replica at %s is pointed to %s", one.address, primary))
		}
		if err != nil {
			missing = append(missing,
				fmt.Sprintf("the replica at %s cannot be pointed to %s: %v", one.address, primary, err))
		}
	}
	return strings.Join(missing, "; ")
}
