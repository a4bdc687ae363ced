package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// join makes a server a replica in its shard, and says what is missing until all nodes know it and it replicates. Its ID is recorded, and stored,
// before it is introduced to any node.
func (s *replicaScale) join(ctx context.Context, now *scaling, m *member) string {
	nodes, err := s.listing(ctx, m.Address)
	if err != nil {
		return err.Error()
	}
	own := myself(nodes)
	if !slices.Contains(m.Nodes, own.id) {
		m.Nodes = append(m.Nodes, own.id)
		return "is node " + own.id
	}
	owner, err := s.ownerOf(ctx, *m.Slot, s.staying(ctx, now))
	if err != nil {
		return err.Error()
	}
	if why := s.introduce(ctx, own, m.Address, owner.address); why != "" {
		return why
	}
	switch {
	case own.primary == owner.id:
		return ""
	case len(own.slots) > 0:
		return "owns slots, so it is left alone"
	}
	if _, err := s.Servers.Do(ctx, m.Address, s.Login, "CLUSTER", "REPLICATE", owner.id); err != nil {
		return fmt.Sprintf("could not be made a replica of %s: %v", owner.address, err)
	}
	return "was made to replicate " + owner.address
}

// introduce lets every node that does not know a server meet it. Each must: one that was made to forget its ID takes no other's word for it for a minute.
func (s *replicaScale) introduce(ctx context.Context, own listed, address, seed string) string {
	all, err := s.everyNode(ctx, seed)
	if err != nil {
		return "cannot be introduced to all nodes: " + err.Error()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err.Error()
	}
	strangers := 0
	for at, view := range all {
		if n, known := findNode(view, own.id); known && n.trusted() && n.connected || at == address {
			continue
		}
		strangers++
		words := []any{"CLUSTER", "MEET", host, port}
		if own.bus != "" {
			words = append(words, own.bus)
		}
		if _, err := s.Servers.Do(ctx, at, s.Login, words...); err != nil {
			return fmt.Sprintf("could not be introduced to %s: %v", at, err)
		}
	}
	if strangers > 0 {
		return fmt.Sprintf("is unknown to %d of %s", strangers, plural(len(all), "node"))
	}
	return ""
}

// forget makes all nodes forget a server that is gone, and says what is missing. Beside the recorded IDs that is any dead entry under its address: a
// node that lost its volume comes back with another ID.
func (s *replicaScale) forget(ctx context.Context, now *scaling, m member) string {
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
	for _, at := range nodes {
		if !at.trusted() || m.left(at) || leaves(now, at) {
			continue
		}
		if why := s.forgetAt(ctx, at.address, m); why != "" {
			return why
		}
	}
	return ""
}

// forgetAt makes one node forget what is left of a member. A node that owns slots is kept.
func (s *replicaScale) forgetAt(ctx context.Context, address string, m member) string {
	view, err := s.listing(ctx, address)
	if err != nil {
		return fmt.Sprintf("is not forgotten by %s yet: %v", address, err)
	}
	for _, n := range view {
		if !m.left(n) {
			continue
		}
		if len(n.slots) > 0 {
			return fmt.Sprintf("owned slots as node %s: it must not be forgotten before another node serves them", n.id)
		}
		_, err := s.Servers.Do(ctx, address, s.Login, "CLUSTER", "FORGET", n.id)
		if err != nil && !(redis.IsReply(err) && strings.Contains(err.Error(), "Unknown node")) {
			return fmt.Sprintf("is not forgotten by %s yet: %v", address, err)
		}
	}
	return ""
}

// leaves says whether a node is one of those that go together. They are not asked to forget one another: where some primaries have forgotten one
// already, the others never find a majority that holds it for dead.
func leaves(now *scaling, n listed) bool {
	return slices.ContainsFunc(now.changed(), func(name string) bool { return now.record.Members[name].left(n) })
}
