package scale

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis/topology"
)

// serverInfo is a server's INFO about itself and its replicas.
type serverInfo struct {
	topology.ReplicationInfo
	topology.Server
	role      topology.Role
	followers []topology.Attached
	keys      bool // it holds data
	syncs     syncs
}

// blank is true of a primary without data and replicas.
func (t serverInfo) blank() bool {
	return t.role == topology.Primary && !t.Loading && !t.keys && len(t.followers) == 0
}

// lists reports whether a primary lists the server of a pod as an online replica.
func (t serverInfo) lists(pod, address string) bool {
	a, known := t.follower(pod, address)
	return known && a.Online
}

// follower is the primary's entry of the server of a pod, which announces the pod's IP or a host
// name that begins with the pod's name.
func (t serverInfo) follower(pod, address string) (topology.Attached, bool) {
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
func primaryOf(said serverInfo, address string) string {
	if said.role == topology.Replica {
		return said.Primary
	}
	return address
}

func (s *replicaScale) info(ctx context.Context, address string) (serverInfo, error) {
	info, err := s.Info(ctx, address)
	if err != nil {
		return serverInfo{}, err
	}
	t := serverInfo{
		ReplicationInfo: topology.ReplicationOf(info),
		Server:          topology.ServerOf(address, info),
	}
	t.role, t.followers = t.ReplicationInfo.Role, t.Replicas
	t.syncs = syncs{
		RunID:   t.RunID,
		Full:    info.Int("sync_full"),
		Partial: info.Int("sync_partial_ok"),
	}
	for field := range info {
		t.keys = t.keys || strings.HasPrefix(field, "db") && info.Pairs(field)["keys"] != ""
	}
	return t, nil
}

// staying are the addresses of the running servers that are neither added nor removed, the recorded
// primary's first.
func (s *replicaScale) staying(ctx context.Context, now *scaling) []string {
	found := []string{now.record.Primary}
	for _, name := range now.staying() {
		if pod, err := s.Pod(ctx, name); err == nil && pod.Status.PodIP != "" &&
			!slices.Contains(found, s.Address(pod)) {
			found = append(found, s.Address(pod))
		}
	}
	return found
}
