// Package peers finds the pods at the other end of a fault of the network, by either engine.
package peers

import (
	"slices"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

const (
	// silentLoss is the share of lost packets above which a server serves hardly anybody: each
	// retransmission is lost as well.
	silentLoss = 0.5
	// silentDelay is the delay of each packet from which a server does not serve in time.
	silentDelay = time.Second
)

// Silences reports whether a server that a fault of the network hits does not serve, or does not
// serve its peers, and whether a sentinel beside it is cut off as well. One that is cut off from
// its operator alone serves everybody.
func Silences(action *v1alpha1.Action) (server, wholePod bool) {
	_, among := Of(action)
	switch {
	case slices.Equal(among, []v1alpha1.NetworkPeer{v1alpha1.PeerOperator}):
		return false, false
	case action.NetworkPartition != nil:
		server = true
	case action.NetworkLoss != nil:
		server = action.NetworkLoss.Loss.Share() > silentLoss
	case action.NetworkDelay != nil:
		server = action.NetworkDelay.Latency.Duration >= silentDelay
	}
	return server, server && !slices.Equal(among, []v1alpha1.NetworkPeer{v1alpha1.PeerClients})
}

// Of are the peers of a fault of the network, and the field that names them; none = all.
func Of(action *v1alpha1.Action) (field string, among []v1alpha1.NetworkPeer) {
	switch {
	case action.NetworkDelay != nil:
		return "spec.action.networkDelay.peers", action.NetworkDelay.Peers
	case action.NetworkLoss != nil:
		return "spec.action.networkLoss.peers", action.NetworkLoss.Peers
	case action.NetworkPartition != nil:
		return "spec.action.networkPartition.peers", action.NetworkPartition.Peers
	}
	return "", nil
}

// None is the Problem of peers that do not exist.
func None(field string, who v1alpha1.NetworkPeer, pod, namespace string) error {
	return problem.NoTarget("%s: there are no %s to pod %s in namespace %s", field, who, pod, namespace)
}
