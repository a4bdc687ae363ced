package chaosmesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// chaosRecord is the record of what Chaos Mesh breaks: what it is given, and what was measured before, to compare with.
type chaosRecord struct {
	VolumePath string            `json:"volumePath,omitempty"` // DiskDelay: where the volume is mounted
	Peers      map[string]string `json:"peers,omitempty"`      // network faults: address by pod; not of clients, which have labels

	RoundTrip     *time.Duration `json:"roundTrip,omitempty"`        // the median of some PINGs
	Slowest       *time.Duration `json:"slowestRoundTrip,omitempty"` // the slowest of more of them
	Clock         *time.Duration `json:"clock,omitempty"`            // the server's clock against the operator's
	DelayedFsyncs int64          `json:"delayedFsyncs,omitempty"`    // aof_delayed_fsync
	PeersSpeaking int            `json:"peersSpeaking,omitempty"`    // on how many connections peers speak
}

// recordVolume finds the mount that is slowed down: the one that is named, else the one that holds the server's data.
func (c chaosMesh) recordVolume(ctx context.Context, pod *corev1.Pod, target *v1alpha1.FaultTarget, record *chaosRecord) error {
	var mounts []string
	for _, container := range pod.Spec.Containers {
		if container.Name == target.Container {
			for _, m := range container.VolumeMounts {
				mounts = append(mounts, m.MountPath)
			}
		}
	}
	path := c.spec.Action.DiskDelay.VolumePath
	if path != "" {
		if !slices.Contains(mounts, path) {
			return problem.Invalid("spec.action.diskDelay.volumePath: container %s of pod %s mounts nothing at %s, but at: %s", target.Container, target.Pod, path, strings.Join(mounts, ", "))
		}
		record.VolumePath = path
		return nil
	}
	settings, err := c.Settings(ctx, target.Address, "dir")
	folder := settings["dir"]
	if err == nil && folder == "" {
		err = errors.New("CONFIG GET shows no setting dir")
	}
	if err != nil {
		return fmt.Errorf("spec.action.diskDelay.volumePath: read the data directory of the server: %w", err)
	}
	for _, m := range mounts {
		if inside := folder == m || strings.HasPrefix(folder, strings.TrimSuffix(m, "/")+"/"); inside && len(m) > len(path) {
			path = m
		}
	}
	if path == "" {
		return problem.Invalid("spec.action.diskDelay: the server's dir %s lies on no volume of container %s: there is none to slow down", folder, target.Container)
	}
	record.VolumePath = path
	return nil
}

// network is what the network faults have in common: the field that names the peers, and them; "" = everybody.
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

// recordPeers finds the pods at the other end of a network fault. There must be one: with none, Chaos Mesh would wait until the fault is over.
func (c chaosMesh) recordPeers(ctx context.Context, target *v1alpha1.FaultTarget, record *chaosRecord) error {
	field, who := c.network()
	if who == "" {
		return nil
	}
	found, err := c.findPeers(ctx, target, who)
	if err != nil {
		return err
	}
	if len(found) == 0 {
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

func (c chaosMesh) findPeers(ctx context.Context, target *v1alpha1.FaultTarget, who v1alpha1.NetworkPeers) ([]corev1.Pod, error) {
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
		same := s.Err == nil && s.Shard == shard
		switch {
		case s.Pod.Name == target.Pod || s.Said.Role == topology.Sentinel:
		case who == v1alpha1.PeersServers,
			who == v1alpha1.PeersPrimary && same && s.Said.Role == topology.Primary,
			who == v1alpha1.PeersReplicas && same && s.Said.Role == topology.Replica:
			found = append(found, *s.Pod)
		}
	}
	return found, nil
}

// loadPods are the running pods of the load that measures the fault.
func (c chaosMesh) loadPods(ctx context.Context) ([]corev1.Pod, error) {
	return c.running(ctx, client.MatchingLabels{v1alpha1.LabelLoadTest: c.LoadTest})
}

// connectedSentinels are the pods from which sentinels command the server: they call their connections sentinel-ID-cmd.
func (c chaosMesh) connectedSentinels(ctx context.Context, target *v1alpha1.FaultTarget) ([]corev1.Pod, error) {
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

// running are the running pods of the fault's namespace.
func (c chaosMesh) running(ctx context.Context, which ...client.ListOption) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.Live.List(ctx, &list, append(which, client.InNamespace(c.Namespace))...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" }), nil
}

func noPeers(field string, who v1alpha1.NetworkPeers, pod, namespace string) error {
	return problem.NoTarget("%s: there are no %s to pod %s in namespace %s", field, who, pod, namespace)
}
