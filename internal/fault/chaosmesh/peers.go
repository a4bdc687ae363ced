package chaosmesh

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// recordPeers finds the pods at the other end of a network fault. There must be one: with none,
// Chaos Mesh would wait until the fault is over.
func (c chaosMesh) recordPeers(
	ctx context.Context, target *v1alpha1.FaultTarget, record *chaosRecord,
) error {
	field, who := c.network()
	if who == "" {
		return nil
	}
	found, err := c.findPeers(ctx, target, who)
	if err != nil {
		return err
	}
	if len(found) == 0 && !(c.DryRun && who == v1alpha1.PeersClients) {
		return noPeers(field, who, target.Pod, c.Namespace)
	}
	if who == v1alpha1.PeersClients {
		return nil
	}
	record.Peers = map[string]string{}
	for i := range found {
		record.Peers[found[i].Name] = found[i].Status.PodIP
	}
	return nil
}

func (c chaosMesh) findPeers(
	ctx context.Context, target *v1alpha1.FaultTarget, who v1alpha1.NetworkPeers,
) ([]corev1.Pod, error) {
	switch who {
	case v1alpha1.PeersClients:
		return c.loadPods(ctx)
	case v1alpha1.PeersSentinels:
		return c.connectedSentinels(ctx, target)
	}
	servers, err := c.Survey(ctx)
	if err != nil {
		return nil, err
	}
	shard := noShard
	for i := range servers {
		if servers[i].Pod.Name == target.Pod {
			shard = servers[i].Shard
		}
	}
	var found []corev1.Pod
	for i := range servers {
		s := &servers[i]
		if s.Pod.Name != target.Pod && isPeer(s, who, shard) {
			found = append(found, *s.Pod)
		}
	}
	return found, nil
}

// isPeer is true of the servers that a network fault of a server of a shard concerns: all, or the
// primary or the replicas of its shard.
func isPeer(s *target.Server, who v1alpha1.NetworkPeers, shard int) bool {
	switch who {
	case v1alpha1.PeersServers:
		return s.State.Role != topology.Sentinel
	case v1alpha1.PeersPrimary:
		return s.Err == nil && s.Shard == shard && s.State.Role == topology.Primary
	case v1alpha1.PeersReplicas:
		return s.Err == nil && s.Shard == shard && s.State.Role == topology.Replica
	}
	return false
}

// peers are those that were recorded, as Chaos Mesh selects them.
func (c chaosMesh) peers(record chaosRecord) *object.Peers {
	_, who := c.network()
	switch who {
	case "":
		return nil
	case v1alpha1.PeersClients:
		return &object.Peers{Labels: map[string]string{v1alpha1.LabelLoadTest: c.LoadTest}}
	}
	return &object.Peers{Pods: slices.Sorted(maps.Keys(record.Peers))}
}

// connectedSentinels are the pods of the sentinels that are connected to the server: their
// connections have the name sentinel-ID-cmd.
func (c chaosMesh) connectedSentinels(
	ctx context.Context, target *v1alpha1.FaultTarget,
) ([]corev1.Pod, error) {
	connections, err := c.connections(ctx, target.Address)
	if err != nil {
		return nil, err
	}
	all, err := c.running(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return p.Name == target.Pod || !slices.ContainsFunc(connections, func(n connection) bool {
			return n.from == p.Status.PodIP && n.sentinel
		})
	}), nil
}

func noPeers(field string, who v1alpha1.NetworkPeers, pod, namespace string) error {
	return problem.NoTarget("%s: there are no %s to pod %s in namespace %s", field, who, pod,
		namespace)
}

// speaking counts the connections from the recorded peers on which the server still hears
// something.
func (c chaosMesh) speaking(
	ctx context.Context, target *v1alpha1.FaultTarget, record chaosRecord,
) (int, error) {
	addresses, err := c.peerAddresses(ctx, record)
	if err != nil {
		return 0, err
	}
	all, err := c.connections(ctx, target.Address)
	if err != nil {
		return 0, err
	}
	replicas, err := c.replicas(ctx, target.Address)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, one := range append(all, replicas...) {
		if one.quiet < one.limit && slices.Contains(addresses, one.from) {
			n++
		}
	}
	return n, nil
}

func (c chaosMesh) peerAddresses(ctx context.Context, record chaosRecord) ([]string, error) {
	var addresses []string
	if _, who := c.network(); who == v1alpha1.PeersClients {
		pods, err := c.loadPods(ctx)
		for i := range pods {
			addresses = append(addresses, pods[i].Status.PodIP)
		}
		return addresses, err
	}
	return slices.Collect(maps.Values(record.Peers)), nil
}

// network is the field of a network fault that names the peers, and its value; "" = all.
func (c chaosMesh) network() (field string, peers v1alpha1.NetworkPeers) {
	switch c.spec.Action.Type {
	case v1alpha1.FaultNetworkDelay:
		return "spec.action.networkDelay.peers", c.spec.Action.NetworkDelay.Peers
	case v1alpha1.FaultNetworkLoss:
		return "spec.action.networkLoss.peers", c.spec.Action.NetworkLoss.Peers
	case v1alpha1.FaultNetworkPartition:
		return "spec.action.networkPartition.from", c.spec.Action.NetworkPartition.From
	}
	return "", ""
}

// loadPods are the running pods of the load that measures the fault.
func (c chaosMesh) loadPods(ctx context.Context) ([]corev1.Pod, error) {
	return c.running(ctx, client.MatchingLabels{v1alpha1.LabelLoadTest: c.LoadTest})
}

// running are the running pods of the fault's namespace.
func (c chaosMesh) running(ctx context.Context, which ...client.ListOption) ([]corev1.Pod, error) {
	found, err := c.ListPods(ctx, which...)
	return slices.DeleteFunc(found, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.Status.PodIP == ""
	}), err
}
