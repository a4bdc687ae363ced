package network

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/peers"
	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/problem"
)

// addresses are those of pods, by the names of the pods, separated by commas. What a fault hits are
// the same pods all along; where one is replaced under its name, the new address is hit.
type addresses map[string]string

func (a addresses) add(pods []corev1.Pod) {
	for i := range pods {
		var all []string
		for _, ip := range addressesOf(&pods[i]) {
			all = append(all, ip.String())
		}
		a[pods[i].Name] = strings.Join(all, ",")
	}
}

// now are the addresses that the pods have now, or had last while that is not known. A pod that is
// gone has none: another one may have its address.
func (n network) now(ctx context.Context, a addresses, known []corev1.Pod) []netip.Addr {
	var all []netip.Addr
	for _, name := range slices.Sorted(maps.Keys(a)) {
		var pod *corev1.Pod
		if i := slices.IndexFunc(known, func(p corev1.Pod) bool { return p.Name == name }); i >= 0 {
			pod = &known[i]
		} else { // the target does not select it, as sentinels of their own
			read, err := n.Pod(ctx, name)
			if apierrors.IsNotFound(err) {
				continue
			} else if err == nil {
				pod = read
			}
		}
		if pod != nil {
			if current := addressesOf(pod); len(current) > 0 {
				all = append(all, current...)
				continue
			}
		}
		all = append(all, a.of(name)...)
	}
	return all
}

// of are the recorded addresses of a pod.
func (a addresses) of(name string) []netip.Addr {
	var all []netip.Addr
	for text := range strings.SplitSeq(a[name], ",") {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address)
		}
	}
	return all
}

// all are the recorded addresses of all pods.
func (a addresses) all() []netip.Addr {
	var all []netip.Addr
	for _, name := range slices.Sorted(maps.Keys(a)) {
		all = append(all, a.of(name)...)
	}
	return all
}

func addressesOf(pod *corev1.Pod) []netip.Addr {
	var all []netip.Addr
	for _, ip := range append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...) {
		address, err := netip.ParseAddr(ip.IP)
		if err == nil && !slices.Contains(all, address.Unmap()) {
			all = append(all, address.Unmap())
		}
	}
	return all
}

// everybody reports whether the fault concerns all but the node.
func (n network) everybody() bool {
	return len(n.peers) == 0 || slices.Contains(n.peers, v1alpha1.PeerAll)
}

// clients reports whether it concerns all but the Redis itself.
func (n network) clients() bool {
	return slices.Contains(n.peers, v1alpha1.PeerClients)
}

// choose finds the pods that are peers of a target, those that are hit and those that are spared. Of
// each kind that is hit there must be one: a fault that hits nobody shows nothing.
func (n network) choose(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (hit, spared, operator addresses, err error) {
	hit, spared, operator = addresses{}, addresses{}, addresses{}
	if n.everybody() {
		return hit, spared, operator, nil
	}
	for _, who := range n.peers {
		if who == v1alpha1.PeerClients { // they are whoever is neither hit nor spared
			continue
		}
		pods, err := n.findPeers(ctx, target, who)
		if err != nil {
			return nil, nil, nil, err
		}
		if len(pods) == 0 {
			return nil, nil, nil, peers.None(n.field+".peers", who, target.Pod, n.Namespace)
		}
		for i := range pods {
			if pods[i].Spec.HostNetwork {
				return nil, nil, nil, problem.Unsupported(
					"%s.peers: pod %s has spec.hostNetwork: its packets are those of node %s", n.field, pods[i].Name,
					pods[i].Spec.NodeName)
			}
		}
		if who == v1alpha1.PeerOperator {
			operator.add(pods)
			continue
		}
		hit.add(pods)
	}
	if !n.clients() {
		return hit, spared, operator, nil
	}
	for _, who := range []v1alpha1.NetworkPeer{v1alpha1.PeerServers, v1alpha1.PeerSentinels} {
		pods, err := peers.Find(ctx, n.Deps, target, who)
		if err != nil {
			return nil, nil, nil, err
		}
		spared.add(pods)
	}
	for name := range hit {
		delete(spared, name)
	}
	return hit, spared, operator, nil
}

// findPeers returns the running pods that are peers of one kind.
func (n network) findPeers(
	ctx context.Context, target *v1alpha1.FaultTarget, who v1alpha1.NetworkPeer,
) ([]corev1.Pod, error) {
	if who != v1alpha1.PeerOperator {
		return peers.Find(ctx, n.Deps, target, who)
	}
	return peers.Operator(ctx, n.Deps, n.field+".operator", n.operator)
}

// operatorNow are the addresses of the operator's pods, which get new names; those of the record
// while they are not known.
func (n network) operatorNow(ctx context.Context, r record) []netip.Addr {
	if n.operator == nil {
		return nil
	}
	hit := addresses{}
	pods, err := peers.Operator(ctx, n.Deps, n.field+".operator", n.operator)
	if hit.add(pods); err != nil {
		hit = r.Operator
	}
	return hit.all()
}

// rule is what is dropped in the pod of a target, by the addresses that pods have now. It asks no
// server: it is made again every few seconds, while some do not answer.
func (n network) rule(
	ctx context.Context, target *v1alpha1.FaultTarget, pod *corev1.Pod, r record,
) (*netfault.Rule, error) {
	rule := &netfault.Rule{
		ID:    r.Rule,
		In:    n.direction != v1alpha1.DirectionOut,
		Out:   n.direction != v1alpha1.DirectionIn,
		Share: n.share,
		For:   netfault.Longest,
		Delay: n.delay,
	}
	if n.everybody() {
		rule.Except = true
		return rule, spareNode(rule, pod)
	}
	known, err := n.LatestPods(ctx)
	if err != nil {
		return nil, err
	}
	if !n.clients() {
		rule.Peers = append(n.now(ctx, r.Hit, known), n.operatorNow(ctx, r)...)
		return rule, nil
	}
	rule.Except = true
	rule.Peers = n.now(ctx, r.Spared, known)
	for i := range known { // those among them that are new
		if p := &known[i]; p.Name != target.Pod && r.Hit[p.Name] == "" {
			rule.Peers = append(rule.Peers, addressesOf(p)...)
		}
	}
	if own, found := ownAddress(target.Address); found {
		rule.Peers = append(rule.Peers, own)
	}
	return rule, spareNode(rule, pod)
}

// spareNode leaves the kubelet's probes alone, which come from an address of the node. The program
// spares the gateway of the pod as well.
func spareNode(rule *netfault.Rule, pod *corev1.Pod) error {
	for _, host := range pod.Status.HostIPs {
		if address, err := netip.ParseAddr(host.IP); err == nil {
			rule.Peers = append(rule.Peers, address.Unmap())
		}
	}
	if len(pod.Status.HostIPs) == 0 {
		return problem.NotYet("the status of pod %s does not have the addresses of its node", pod.Name)
	}
	return nil
}

// ownAddress is the one from which this process reaches a server: what it measures and reverts must
// not depend on the fault.
func ownAddress(server string) (netip.Addr, bool) {
	conn, err := net.Dial("udp", server) // sends nothing
	if err != nil {
		return netip.Addr{}, false
	}
	defer func() { _ = conn.Close() }()
	local, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return local.Addr().Unmap(), err == nil
}

// inWords is what becomes of whose packets, and of which.
func (n network) inWords(r record) string {
	does := "drop "
	if n.delay.Latency > 0 {
		does = fmt.Sprintf("delay by %s ", n.delay.Latency)
	}
	return does + n.packets(r)
}

// packets are those that are dropped or delayed.
func (n network) packets(r record) string {
	what := "all packets"
	if n.share < netfault.Whole {
		what = fmt.Sprintf("%g%% of the packets", 100*float64(n.share)/netfault.Whole)
	}
	//exhaustive:enforce
	switch n.direction {
	case v1alpha1.DirectionIn:
		what += " from "
	case v1alpha1.DirectionOut:
		what += " to "
	case v1alpha1.DirectionBoth:
		what += " from and to "
	}
	names := slices.Sorted(maps.Keys(r.Hit))
	if n.operator != nil {
		names = append(names, "the pods of Deployment "+n.operator.Deployment)
	}
	switch {
	case n.everybody():
		return what + "everybody but its node"
	case n.clients():
		return what + strings.Join(append([]string{"all clients"}, names...), ", ")
	}
	return what + strings.Join(names, ", ")
}
