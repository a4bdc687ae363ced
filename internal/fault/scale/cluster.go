package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/redis"
)

// A node that was made to forget an ID (CLUSTER FORGET) refuses it for a minute. From Redis 7.2 on
// it also tells the others to forget it, in each message, so that a CLUSTER MEET within that minute
// lasts until the next message. See clusterBlacklistAddNode and clusterProcessPingExtensions in
// Redis' cluster_legacy.c.
const (
	refusal = 60*time.Second + 3*time.Second // the servers count whole seconds, each by its own clock
	settled = 5 * time.Second                // a node gets several messages in this time
)

// handshake is how long a CLUSTER MEET is given. Valkey drops its connection to a node that it is
// made to meet once more.
const handshake = time.Second

// spreadsForgetting reports whether nodes of this version tell others what they were made to
// forget.
func spreadsForgetting(redisVersion string) bool {
	v, err := version.ParseGeneric(redisVersion)
	return err != nil || v.AtLeast(version.MajorMinor(7, 2))
}

// refusedFor is how long the nodes still refuse a server that comes back as the node that they were
// made to forget.
func (s *replicaScale) refusedFor(record *scaleRecord, m *member, id string) time.Duration {
	if s.by > 0 || record.RevertingSince == nil || len(m.Nodes) == 0 || m.Nodes[0] != id {
		return 0
	}
	forgotten := m.Forgotten
	if forgotten.IsZero() {
		forgotten = *record.RevertingSince // the operator died before it was recorded
	}
	return forgotten.Add(refusal).Sub(s.now())
}

// refusedAtMost is by how much refusals may prolong the revert of a removal.
func refusedAtMost(record *scaleRecord) time.Duration {
	if record.Slot == nil {
		return 0
	}
	return refusal
}

// unsettled is why a server that all nodes list may be forgotten again: another fault may have
// removed it within the last minute. "" = nothing.
func (s *replicaScale) unsettled(m *member) string {
	if s.now().Sub(m.Listed) > settled {
		return ""
	}
	return fmt.Sprintf("is in sync; all nodes have to list it for %s", settled)
}

// join makes a server a replica in its shard, and returns what is missing until all nodes list it
// and it replicates. Its ID is recorded and stored before any node meets it.
func (s *replicaScale) join(ctx context.Context, now *scaling, m *member, version string) string {
	nodes, err := s.listing(ctx, m.Address)
	if err != nil {
		return err.Error()
	}
	own := myself(nodes)
	if !slices.Contains(m.Nodes, own.id) {
		m.Nodes = append(m.Nodes, own.id)
		return "is node " + own.id
	}
	wait := s.refusedFor(now.record, m, own.id)
	if wait > 0 && spreadsForgetting(version) {
		return fmt.Sprintf("is met in %s: the nodes were made to forget it, and refuse it for a minute",
			wait.Round(time.Second))
	}
	owner, err := s.ownerOf(ctx, *m.Slot, s.staying(ctx, now))
	if err != nil {
		return err.Error()
	}
	why := s.introduce(ctx, own, m, owner.address)
	if why != "" {
		m.Listed = time.Time{}
		return why
	}
	if m.Listed.IsZero() && spreadsForgetting(version) {
		m.Listed = s.now()
	}
	switch {
	case own.primary == owner.id:
		return ""
	case len(own.slots) > 0:
		return "owns slots, so it is not changed"
	}
	_, err = s.Servers.Do(ctx, m.Address, s.Login, "CLUSTER", "REPLICATE", owner.id)
	if err != nil {
		return fmt.Sprintf("could not be made a replica of %s: %v", owner.address, err)
	}
	return "was made to replicate " + owner.address
}

// introduce makes every node that does not list a server meet it. Gossip is not enough: a node that
// refuses an ID ignores gossip about it.
func (s *replicaScale) introduce(ctx context.Context, own listed, m *member, seed string) string {
	all, err := s.everyNode(ctx, seed)
	if err != nil {
		return "cannot join all nodes: " + err.Error()
	}
	host, port, err := net.SplitHostPort(m.Address)
	if err != nil {
		return err.Error()
	}
	words := []any{"CLUSTER", "MEET", host, port}
	if own.bus != "" {
		words = append(words, own.bus)
	}
	unaware := 0
	again := s.now().Sub(m.Met) >= handshake
	for at, view := range all {
		n, known := findNode(view, own.id)
		if known && n.trusted() && n.connected || at == m.Address {
			continue
		}
		unaware++
		if !again {
			continue
		}
		m.Met = s.now()
		_, err := s.Servers.Do(ctx, at, s.Login, words...)
		if err != nil {
			return fmt.Sprintf("could not be met by %s: %v", at, err)
		}
	}
	if unaware > 0 {
		return fmt.Sprintf("is not listed yet by %d of %s", unaware, format.Plural(len(all), "node"))
	}
	return ""
}

// forget makes all nodes forget a removed server, and returns what is missing. In addition to the
// recorded IDs it removes any disconnected entry with its address: a node that lost its volume
// restarts with another ID.
func (s *replicaScale) forget(ctx context.Context, now *scaling, m *member) string {
	if now.record.Slot == nil {
		return ""
	}
	seed, err := s.ownerOf(ctx, *now.record.Slot, s.staying(ctx, now))
	if err != nil {
		return "is not forgotten yet: " + err.Error()
	}
	nodes, err := s.listing(ctx, seed.address)
	if err != nil {
		return "is not forgotten yet: " + err.Error()
	}
	asked, down := map[string]bool{}, false
	for _, at := range nodes {
		switch {
		case m.left(at) || leaves(now, at):
		case !at.trusted():
			down = true
		default:
			asked[at.address] = true
			if why := s.forgetAt(ctx, at.address, m); why != "" {
				return why
			}
		}
	}
	if down {
		return s.forgetInPods(ctx, now, m, asked)
	}
	return ""
}

// forgetInPods makes the servers forget a removed one that the others take for failed, or have at
// another address: once back, they would tell of it. An entry that no pod belongs to any more is
// not waited for.
func (s *replicaScale) forgetInPods(
	ctx context.Context, now *scaling, m *member, asked map[string]bool,
) string {
	pods, err := s.others(ctx, now)
	if err != nil {
		return "is not forgotten yet: " + err.Error()
	}
	for i := range pods {
		pod := &pods[i]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		switch {
		case ended, slices.Contains(now.changed(), pod.Name):
		case pod.Status.PodIP == "":
			return fmt.Sprintf("is not forgotten by pod %s yet: it has no address", pod.Name)
		case asked[s.Address(pod)]:
		default:
			if why := s.forgetAt(ctx, s.Address(pod), m); why != "" {
				return fmt.Sprintf("%s (pod %s)", why, pod.Name)
			}
		}
	}
	return ""
}

// others are the pods that may have nodes of the cluster: those of the target, or those of the
// StatefulSet where nothing says any more what the target is.
func (s *replicaScale) others(ctx context.Context, now *scaling) ([]corev1.Pod, error) {
	if s.Spec != nil {
		return s.ServerPods(ctx)
	}
	var pods []corev1.Pod
	for _, name := range now.staying() {
		pod, err := s.Pod(ctx, name)
		switch {
		case err == nil:
			pods = append(pods, *pod)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return pods, nil
}

// forgetAt makes one node forget the entries of a removed member. An entry that owns slots is kept.
func (s *replicaScale) forgetAt(ctx context.Context, address string, m *member) string {
	view, err := s.listing(ctx, address)
	if err != nil {
		return fmt.Sprintf("is not forgotten by %s yet: %v", address, err)
	}
	for _, n := range view {
		if !m.left(n) {
			continue
		}
		if len(n.slots) > 0 {
			return fmt.Sprintf(
				"owned slots as node %s: it must not be forgotten before another node serves them", n.id)
		}
		m.Forgotten = s.now()
		_, err := s.Servers.Do(ctx, address, s.Login, "CLUSTER", "FORGET", n.id)
		if err != nil && !(redis.IsReply(err) && strings.Contains(err.Error(), "Unknown node")) {
			return fmt.Sprintf("is not forgotten by %s yet: %v", address, err)
		}
	}
	return ""
}

// leaves reports whether a node is removed by the same scaling. Such nodes are not made to forget
// one another: where some primaries have forgotten one already, the others find no majority that
// marks it as failed.
func leaves(now *scaling, n listed) bool {
	return slices.ContainsFunc(now.changed(), func(name string) bool {
		return now.record.Members[name].left(n)
	})
}
