package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/redis/topology"
)

func (s *replicaScale) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	now, err := s.read(ctx, target)
	switch {
	case err != nil:
		return contract.Unseen(err)
	case now.gone:
		return contract.Inconclusive(
			"StatefulSet %s does not exist any more: something deleted it", now.name)
	case now.replicas == now.old:
		return contract.NotObserved("StatefulSet %s still has %d replicas", now.name,
			now.old)
	}
	var evidence []string
	for i, name := range now.changed() {
		effect, text := s.effectOn(ctx, now, name, i == 0)
		if effect != v1alpha1.EffectConfirmed {
			return effect, text
		}
		evidence = append(evidence, text)
	}
	return v1alpha1.EffectConfirmed, strings.Join(evidence, "; ")
}

// effectOn compares one pod that was added or removed with its primary's list of replicas. In a
// cluster only the first is compared in number, as each may have another primary.
func (s *replicaScale) effectOn(
	ctx context.Context, now *scaling, name string, first bool,
) (v1alpha1.Effect, string) {
	m := now.record.Members[name]
	if m.Address == "" {
		return contract.NotObserved(
			"StatefulSet %s has %d replicas, but pod %s does not exist yet", now.name, now.replicas, name)
	}
	primary, said, err := s.primaryFor(ctx, now, m)
	if err != nil {
		return contract.Unseen(err)
	}
	online := said.lists(name, m.Address)
	if online != (s.by > 0) {
		return contract.NotObserved("primary %s lists %s: %t", primary, name, online)
	}
	verb := "lists"
	if s.by < 0 {
		verb = "no longer lists"
	}
	text := fmt.Sprintf("primary %s %s %s", primary, verb, name)
	if m.Slot == nil || first {
		text += fmt.Sprintf(" (%s instead of %d)", format.Plural(len(said.followers), "replica"),
			now.record.Followers)
	}
	return v1alpha1.EffectConfirmed, text
}

// Follow implements contract.Follower.
func (s *replicaScale) Follow(_ context.Context, target *v1alpha1.FaultTarget) []contract.Sighting {
	record, _, err := contract.Load[scaleRecord](target)
	if err != nil {
		return nil
	}
	var seen []contract.Sighting
	for _, name := range record.pods() {
		m := record.Members[name]
		for _, one := range []contract.Sighting{
			{
				At:     m.Came,
				Event:  eventReplicaAdded,
				Object: name,
			},
			{
				At:      m.Synced,
				Event:   eventReplicaSynced,
				Object:  name,
				Message: m.How,
			},
			{
				At:     m.Gone,
				Event:  eventReplicaRemoved,
				Object: name,
			},
		} {
			if !one.At.IsZero() {
				seen = append(seen, one)
			}
		}
	}
	return seen
}

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
		pod, err := s.Pod(ctx, name)
		if err == nil && pod.Status.PodIP != "" && !slices.Contains(found, s.Address(pod)) {
			found = append(found, s.Address(pod))
		}
	}
	return found
}
