package chaosmesh

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/fault/peers"
)

// recordPeers finds the pods at the other end of a network fault. There must be some of each kind:
// with none, Chaos Mesh would wait until the fault is over.
func (c chaosMesh) recordPeers(
	ctx context.Context, target *v1alpha1.FaultTarget, record *chaosRecord,
) error {
	field, among := peers.Of(&c.spec.Action)
	for _, who := range among {
		found, err := peers.Find(ctx, c.Deps, target, who)
		if err != nil {
			return err
		}
		if len(found) == 0 && !(c.DryRun && who == v1alpha1.PeerClients) {
			return peers.None(field, who, target.Pod, c.Namespace)
		}
		if who == v1alpha1.PeerClients { // they have labels
			continue
		}
		if record.Peers == nil {
			record.Peers = map[string]string{}
		}
		for i := range found {
			record.Peers[found[i].Name] = found[i].Status.PodIP
		}
	}
	return nil
}

// peers are those that were recorded, as Chaos Mesh selects them; nil = everybody.
func (c chaosMesh) peers(record chaosRecord) *object.Peers {
	_, among := peers.Of(&c.spec.Action)
	switch {
	case len(among) == 0:
		return nil
	case slices.Contains(among, v1alpha1.PeerClients):
		return &object.Peers{Labels: map[string]string{v1alpha1.LabelLoadTest: c.LoadTest}}
	}
	return &object.Peers{Pods: slices.Sorted(maps.Keys(record.Peers))}
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
	all, err := peers.Connections(ctx, c.Deps, target.Address)
	if err != nil {
		return 0, err
	}
	replicas, err := peers.Replicas(ctx, c.Deps, target.Address)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, one := range append(all, replicas...) {
		if one.Quiet < one.Limit && slices.Contains(addresses, one.From) {
			n++
		}
	}
	return n, nil
}

func (c chaosMesh) peerAddresses(ctx context.Context, record chaosRecord) ([]string, error) {
	addresses := slices.Collect(maps.Values(record.Peers))
	if _, among := peers.Of(&c.spec.Action); slices.Contains(among, v1alpha1.PeerClients) {
		pods, err := peers.LoadPods(ctx, c.Deps)
		for i := range pods {
			addresses = append(addresses, pods[i].Status.PodIP)
		}
		return addresses, err
	}
	return addresses, nil
}

// named are peers in a sentence.
func named(among []v1alpha1.NetworkPeer) string {
	words := make([]string, len(among))
	for i, who := range among {
		words[i] = string(who)
	}
	return strings.Join(words, ", ")
}

func packets(direction v1alpha1.NetworkDirection, among []v1alpha1.NetworkPeer) string {
	whose := "all"
	if len(among) > 0 {
		whose = named(among)
	}
	return fmt.Sprintf("direction %s, peers %s", direction, whose)
}
