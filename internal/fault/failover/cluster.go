package failover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
)

// clusterPatience is how long a CLUSTER FAILOVER that was accepted may show no result: nodes do not
// report one in progress, and abandon it after 5 s (Valkey 8.1: cluster-manual-failover-timeout).
const clusterPatience = 10 * time.Second

// reelection is the usual reason why a failover has no result: clusterHandleSlaveFailover of Redis
// waits twice the time of an election between two of them, and an election may take max(2 s, 2 *
// cluster-node-timeout).
const reelection = "a replica that was elected is not elected again within four times " +
	"cluster-node-timeout: wait for so long between two failovers of a shard, or use Takeover"

// clusterFailover sends CLUSTER FAILOVER to the most advanced replica of the target's shard that is
// not barred.
type clusterFailover struct {
	failover
	primary string
	record  clusterRecord
}

func (f failover) planCluster(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (failoverRecord, error) {
	none := failoverRecord{}
	id, err := f.Servers.Do(ctx, target.Address, f.Login, "CLUSTER", "MYID")
	if err != nil {
		return none, err
	}
	view, err := f.view(ctx, target.Address)
	if err != nil {
		return none, err
	}
	shard := slices.IndexFunc(view.Groups, func(g topology.Group) bool {
		return slices.ContainsFunc(g.Nodes, func(n topology.Node) bool { return n.ID == id })
	})
	if shard < 0 {
		return none, problem.NotYet("CLUSTER NODES of %s does not list the node itself", target.Address)
	}
	group := view.Groups[shard]
	primary := group.Nodes[0]
	switch {
	case primary.Role != topology.Primary || primary.Address == "":
		return none, problem.NotYet("CLUSTER NODES of %s lists no primary of its shard", target.Address)
	case len(group.Ranges) == 0:
		return none, problem.Unsupported(
			"the shard of the node at %s serves no slot: a failover would have no effect", target.Address)
	}
	err = f.Reaches(ctx, primary.Address, target.Pod, "the primary of its shard")
	if err != nil {
		return none, err
	}
	replicas, err := f.linkedReplicas(ctx, primary.Address, group.Nodes[1:])
	if err != nil {
		return none, err
	}
	record := clusterRecord{
		Node:    primary.ID,
		Epoch:   view.Epochs[primary.ID],
		Slot:    group.Ranges[0][0],
		Replica: replicas[0],
		Others:  replicas[1:],
	}
	return failoverRecord{Primary: primary.Address, Cluster: &record},
		f.MayRun(ctx, record.Replica, "CLUSTER", "FAILOVER")
}

// linkedReplicas are the addresses of the replicas of a shard that receive the replication stream,
// the best candidate first. Each is asked by the address that it announces to the cluster: a
// primary lists those that connect through a node port by another one, which leads nowhere. A node
// that is in no pod of the namespace may be one that is gone, and gets no command; if there is no
// other, the Problem says so.
func (f failover) linkedReplicas(
	ctx context.Context, primary string, nodes []topology.Node,
) ([]string, error) {
	var foreign error
	said := make([]candidate, len(nodes))
	var asking sync.WaitGroup
	for i, node := range nodes {
		if node.Address == "" {
			continue
		}
		err := f.Reaches(ctx, node.Address, f.nameOf(ctx, primary), "its replica")
		if err != nil {
			foreign = err
			continue
		}
		asking.Go(func() {
			own, err := f.replication(ctx, node.Address)
			said[i] = candidate{Attached: topology.Attached{
				Address: node.Address,
				Online:  err == nil && own.LinkUp && !own.Syncing,
				Offset:  own.Offset,
			}, barred: node.Barred}
		})
	}
	asking.Wait()
	said = slices.DeleteFunc(said, func(r candidate) bool { return !r.Online })
	slices.SortFunc(said, candidate.compare)
	var addresses []string
	for _, r := range said {
		addresses = append(addresses, r.Address)
	}
	if len(addresses) == 0 {
		return nil, cmp.Or(foreign, noReplica(primary))
	}
	return addresses, nil
}

func (c clusterFailover) observe(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (observation, error) {
	now, err := c.ownerOf(ctx)
	if err != nil {
		return observation{}, err
	}
	proof := fmt.Sprintf("the nodes name %s the primary of slot %d (config epoch %d)",
		now.node.Address, c.record.Slot, now.epoch)
	switch sent := target.InjectedAt; {
	case now.epoch > c.record.Epoch && now.node.ID != c.record.Node:
		return observation{
			phase:   promoted,
			primary: now.node.Address,
			proof:   fmt.Sprintf("%s instead of %s (%d)", proof, c.primary, c.record.Epoch),
		}, nil
	case sent != nil && c.now().Sub(sent.Time) < clusterPatience:
		return observation{phase: underWay, proof: c.command(target) + " was accepted; " + proof}, nil
	case sent != nil && c.mode != v1alpha1.FailoverTakeover:
		proof += "; " + reelection
	}
	return observation{
		phase:   resting,
		primary: now.node.Address,
		proof:   proof,
	}, nil
}

// owner is the node that serves a slot, with its config epoch.
type owner struct {
	node  topology.Node
	epoch uint64
}

// ownerOf asks all nodes of the shard which node serves its slot. The answer with the highest epoch
// is the latest.
func (c clusterFailover) ownerOf(ctx context.Context) (owner, error) {
	ask := append([]string{c.record.Replica, c.primary}, c.record.Others...)
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	var latest owner
	var failure error
	for _, address := range ask {
		asking.Go(func() {
			view, err := c.view(ctx, address)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
				return
			}
			o := serving(view, c.record.Slot)
			if o.node.ID != "" && (latest.node.ID == "" || o.epoch > latest.epoch) {
				latest = o
			}
		})
	}
	asking.Wait()
	if latest.node.ID != "" {
		return latest, nil
	}
	if failure == nil {
		failure = fmt.Errorf("no node of the shard lists a primary of slot %d", c.record.Slot)
	}
	return latest, failure
}

func (f failover) view(ctx context.Context, address string) (topology.View, error) {
	reply, err := f.Servers.Do(ctx, address, f.Login, "CLUSTER", "NODES")
	if err != nil {
		return topology.View{}, err
	}
	text, _ := reply.(string)
	return topology.ParseNodes(text, address)
}

// serving is the primary that serves a slot in a view; zero where none does.
func serving(view topology.View, slot uint16) owner {
	for _, g := range view.Groups {
		covers := func(r [2]uint16) bool { return r[0] <= slot && slot <= r[1] }
		n := g.Nodes[0]
		if n.Role == topology.Primary && slices.ContainsFunc(g.Ranges, covers) {
			return owner{node: n, epoch: view.Epochs[n.ID]}
		}
	}
	return owner{}
}

func (c clusterFailover) begin(ctx context.Context, _ *v1alpha1.FaultTarget) error {
	replica := c.record.Replica
	words := []any{"CLUSTER", "FAILOVER"}
	if option := c.option(); option != "" {
		words = append(words, option)
	}
	_, err := c.Servers.Do(ctx, replica, c.Login, words...)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "You should send CLUSTER FAILOVER to a replica"):
		return nil // it was promoted meanwhile: the next call of Inject finds that
	case strings.Contains(err.Error(), "is down or failed, please use CLUSTER FAILOVER FORCE"):
		return fmt.Errorf("%w (spec.action.failover.mode: Force would do it)", err)
	}
	return c.Refusal(err, replica, "CLUSTER", "FAILOVER")
}

// finish waits until the old primary is demoted: until then it accepts writes. One that does not
// answer, or is partitioned, is left to the cluster.
func (c clusterFailover) finish(
	ctx context.Context, target *v1alpha1.FaultTarget, _ observation,
) (contract.Progress, error) {
	old, err := c.replication(ctx, c.primary)
	if err == nil && old.Role == topology.Primary && c.now().Sub(begunAt(target)) < clusterPatience {
		return contract.Underway("the old primary at %s still calls itself the primary", c.primary), nil
	}
	return contract.Progress{}, nil
}

// revert has nothing to do: the nodes abandon a failover by themselves.
func (clusterFailover) revert(context.Context, *v1alpha1.FaultTarget) (contract.Progress, error) {
	return contract.Progress{}, nil
}

func (clusterFailover) manualRevertCommand(*v1alpha1.FaultTarget) string {
	return ""
}

func (c clusterFailover) command(*v1alpha1.FaultTarget) string {
	return strings.TrimSpace("CLUSTER FAILOVER "+c.option()) + " at " + c.record.Replica
}

func (c clusterFailover) coordination(context.Context, *v1alpha1.FaultTarget) string {
	if option := c.option(); option != "" {
		return fmt.Sprintf(
			"uncoordinated: %s does not wait for what the old primary acknowledges meanwhile", option)
	}
	return "coordinated: the old primary took no writes until the replica had them all"
}

// option is the argument of CLUSTER FAILOVER.
func (c clusterFailover) option() string {
	switch c.mode {
	case v1alpha1.FailoverForce:
		return "FORCE"
	case v1alpha1.FailoverTakeover:
		return "TAKEOVER"
	}
	return ""
}
