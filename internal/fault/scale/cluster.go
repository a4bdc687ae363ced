package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// join makes a server a replica in its shard, and returns what is missing until all nodes list it and it replicates. Its ID is recorded and stored
// before any node meets it.
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
		return "owns slots, so it is not changed"
	}
	if _, err := s.Servers.Do(ctx, m.Address, s.Login, "CLUSTER", "REPLICATE", owner.id); err != nil {
		return fmt.Sprintf("could not be made a replica of %s: %v", owner.address, err)
	}
	return "was made to replicate " + owner.address
}

// introduce makes every node that does not list a server meet it. Gossip is not enough: a node that was made to forget an ID ignores gossip about it
// for a minute.
func (s *replicaScale) introduce(ctx context.Context, own listed, address, seed string) string {
	all, err := s.everyNode(ctx, seed)
	if err != nil {
		return "cannot join all nodes: " + err.Error()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err.Error()
	}
	unaware := 0
	for at, view := range all {
		if n, known := findNode(view, own.id); known && n.trusted() && n.connected || at == address {
			continue
		}
		unaware++
		words := []any{"CLUSTER", "MEET", host, port}
		if own.bus != "" {
			words = append(words, own.bus)
		}
		if _, err := s.Servers.Do(ctx, at, s.Login, words...); err != nil {
			return fmt.Sprintf("could not be met by %s: %v", at, err)
		}
	}
	if unaware > 0 {
		return fmt.Sprintf("is not listed yet by %d of %s", unaware, plural(len(all), "node"))
	}
	return ""
}

// forget makes all nodes forget a removed server, and returns what is missing. In addition to the recorded IDs it removes any disconnected entry with
// its address: a node that lost its volume restarts with another ID.
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

// forgetAt makes one node forget the entries of a removed member. An entry that owns slots is kept.
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

// leaves reports whether a node is removed by the same scaling. Such nodes are not made to forget one another: where some primaries have forgotten one
// already, the others find no majority that marks it as failed.
func leaves(now *scaling, n listed) bool {
	return slices.ContainsFunc(now.changed(), func(name string) bool { return now.record.Members[name].left(n) })
}
