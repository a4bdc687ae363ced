package scale

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis/topology"
)

// told is what a server says of itself and its replicas.
type told struct {
	topology.ReplicationInfo
	topology.Server
	role      topology.Role
	followers []topology.Attached
	keys      bool // it holds data
	syncs     syncs
}

// blank is a server that came up on its own and has nothing to lose.
func (t told) blank() bool {
	return t.role == topology.Primary && !t.Loading && !t.keys && len(t.followers) == 0
}

// lists says whether a primary holds the server of a pod for an online replica.
func (t told) lists(pod, address string) bool {
	a, known := t.follower(pod, address)
	return known && a.Online
}

// follower is how a primary sees the server of a pod, which announces the pod's IP or a name that begins with the pod's.
func (t told) follower(pod, address string) (topology.Attached, bool) {
	_, port, _ := net.SplitHostPort(address)
	i := slices.IndexFunc(t.followers, func(a topology.Attached) bool {
		host, p, _ := net.SplitHostPort(a.Address)
		return a.Address == address || p == port && (host == pod || strings.HasPrefix(host, pod+"."))
	})
	if i < 0 {
		return topology.Attached{}, false
	}
	return t.followers[i], true
}

// primaryOf is the primary that a server names: itself, if it is one.
func primaryOf(said told, address string) string {
	if said.role == topology.Replica {
		return said.Primary
	}
	return address
}

func (s *replicaScale) info(ctx context.Context, address string) (told, error) {
	info, err := s.Info(ctx, address)
	if err != nil {
		return told{}, err
	}
	t := told{ReplicationInfo: topology.ReplicationOf(info), Server: topology.ServerOf(address, info)}
	t.role, t.followers = t.ReplicationInfo.Role, t.Replicas
	t.syncs = syncs{RunID: t.RunID, Full: info.Int("sync_full"), Partial: info.Int("sync_partial_ok")}
	for field := range info {
		t.keys = t.keys || strings.HasPrefix(field, "db") && info.Pairs(field)["keys"] != ""
	}
	return t, nil
}

// staying are the addresses of the servers that stay, as far as they run, each once: the recorded primary's first.
func (s *replicaScale) staying(ctx context.Context, now *scaling) []string {
	found := []string{now.record.Primary}
	for _, name := range now.staying() {
		if pod, err := s.Pod(ctx, name); err == nil && pod.Status.PodIP != "" && !slices.Contains(found, s.Address(pod)) {
			found = append(found, s.Address(pod))
		}
	}
	return found
}
