package peers

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// Find returns the running pods that are peers of a target of one kind: of PeerClients, the load
// pods. Those of PeerAll are not listed.
func Find(
	ctx context.Context, deps contract.Deps, t *v1alpha1.FaultTarget, who v1alpha1.NetworkPeer,
) ([]corev1.Pod, error) {
	switch who {
	case v1alpha1.PeerAll:
		return nil, nil
	case v1alpha1.PeerClients:
		return LoadPods(ctx, deps)
	case v1alpha1.PeerSentinels:
		return sentinels(ctx, deps, t)
	}
	servers, err := deps.Survey(ctx)
	if err != nil {
		return nil, err
	}
	shard := target.NoShard
	for i := range servers {
		if servers[i].Pod.Name == t.Pod {
			shard = servers[i].Shard
		}
	}
	var found []corev1.Pod
	for i := range servers {
		s := &servers[i]
		if s.Pod.Name != t.Pod && is(s, who, shard) {
			found = append(found, *s.Pod)
		}
	}
	return found, nil
}

// is is true of the servers that a fault of a server of a shard concerns: all, or the primary or
// the replicas of its shard.
func is(s *target.Server, who v1alpha1.NetworkPeer, shard int) bool {
	switch who {
	case v1alpha1.PeerServers:
		return s.State.Role != topology.Sentinel
	case v1alpha1.PeerPrimary:
		return s.Err == nil && s.Shard == shard && s.State.Role == topology.Primary
	case v1alpha1.PeerReplicas:
		return s.Err == nil && s.Shard == shard && s.State.Role == topology.Replica
	}
	return false
}

// sentinels are the pods of the sentinels that are connected to the server: their connections have
// the name sentinel-ID-cmd.
func sentinels(
	ctx context.Context, deps contract.Deps, t *v1alpha1.FaultTarget,
) ([]corev1.Pod, error) {
	connections, err := Connections(ctx, deps, t.Address)
	if err != nil {
		return nil, err
	}
	all, err := running(ctx, deps)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return p.Name == t.Pod || !slices.ContainsFunc(connections, func(n Connection) bool {
			return n.From == p.Status.PodIP && n.Sentinel
		})
	}), nil
}

// LoadPods are the running pods of the load that measures a fault.
func LoadPods(ctx context.Context, deps contract.Deps) ([]corev1.Pod, error) {
	return running(ctx, deps, client.MatchingLabels{v1alpha1.LabelLoadTest: deps.LoadTest})
}

// running are the running pods of the fault's namespace.
func running(
	ctx context.Context, deps contract.Deps, which ...client.ListOption,
) ([]corev1.Pod, error) {
	found, err := deps.ListPods(ctx, which...)
	return slices.DeleteFunc(found, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.Status.PodIP == ""
	}), err
}

// How long a connection may be idle, in seconds, to count as active. Replicas acknowledge and
// sentinels ping every second, clients under load more often; a primary without writes pings its
// replicas every 10 s (repl-ping-replica-period).
const (
	speaksWithin        = 3
	primarySpeaksWithin = 12
)

// Connection is a client's connection, as the server shows it.
type Connection struct {
	From     string // address without port
	Sentinel bool   // it is a sentinel's, for commands
	Quiet    int    // seconds since the server received something
	Limit    int    // from which it counts as inactive
}

// Connections are those of clients, sentinels and the primary, by CLIENT LIST.
func Connections(ctx context.Context, deps contract.Deps, address string) ([]Connection, error) {
	reply, err := deps.Servers.Do(ctx, address, deps.Login, "CLIENT", "LIST")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	var found []Connection
	for line := range strings.Lines(text) {
		fields := map[string]string{}
		for word := range strings.FieldsSeq(line) {
			field, value, _ := strings.Cut(word, "=")
			fields[field] = value
		}
		from, _, err := net.SplitHostPort(fields["addr"])
		quiet, bad := strconv.Atoi(fields["idle"])
		// Of a replica, idle also counts what was written to it. A sentinel has a second connection, on
		// which it only receives.
		if err != nil || bad != nil || strings.Contains(fields["flags"], "S") ||
			strings.HasSuffix(fields["name"], "-pubsub") {
			continue
		}
		n := Connection{
			From:     from,
			Sentinel: strings.HasPrefix(fields["name"], "sentinel-"),
			Quiet:    quiet,
			Limit:    speaksWithin,
		}
		if strings.Contains(fields["flags"], "M") {
			n.Limit = primarySpeaksWithin
		}
		found = append(found, n)
	}
	return found, nil
}

// Replicas are the connections of the server's replicas, by INFO.
func Replicas(ctx context.Context, deps contract.Deps, address string) ([]Connection, error) {
	info, err := deps.Info(ctx, address, "replication")
	var found []Connection
	for field := range info {
		replica := info.Pairs(field)
		// A primary lists each replica as slave0, slave1, ...; slave_read_only and such have no lag.
		lag, noLag := strconv.Atoi(replica["lag"])
		if strings.HasPrefix(field, "slave") && noLag == nil && lag >= 0 {
			found = append(found, Connection{
				From:  replica["ip"],
				Quiet: lag,
				Limit: speaksWithin,
			})
		}
	}
	return found, err
}
