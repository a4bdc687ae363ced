package scale

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// listed is one line of CLUSTER NODES.
type listed struct {
	id, address, bus string // address as a client dials it
	flags            []string
	primary          string // ID of the one that it replicates; "-" = none
	connected        bool
	slots            [][2]int // first and last of each range, in order
}

// ownsSlots reports whether a server may be the primary of a shard.
func (s *replicaScale) ownsSlots(ctx context.Context, address string, said serverInfo) bool {
	if said.Mode != "cluster" {
		return false
	}
	nodes, err := s.listing(ctx, address)
	return err != nil || len(myself(nodes).slots) > 0
}

// node reads the cluster's entry of the server at an address.
func (s *replicaScale) node(ctx context.Context, address string) (member, error) {
	nodes, err := s.listing(ctx, address)
	if err != nil {
		return member{}, err
	}
	own := myself(nodes)
	primary := own
	if own.primary != "-" {
		primary, _ = findNode(nodes, own.primary)
	}
	if len(primary.slots) == 0 {
		return member{}, problem.NotYet("node %s at %s belongs to no shard that owns slots", own.id,
			address)
	}
	return member{
		Address: address,
		Nodes:   []string{own.id},
		Slot:    &primary.slots[0][0],
	}, nil
}

func myself(nodes []listed) listed {
	i := slices.IndexFunc(nodes, func(n listed) bool { return n.is("myself") })
	return nodes[max(i, 0)]
}

func findNode(nodes []listed, id string) (listed, bool) {
	i := slices.IndexFunc(nodes, func(n listed) bool { return n.id == id })
	if i < 0 {
		return listed{}, false
	}
	return nodes[i], true
}

// ownerOf is the node that serves a slot, in the view of the first server that answers and does not
// mark it as failed.
func (s *replicaScale) ownerOf(ctx context.Context, slot int, asked []string) (listed, error) {
	err := fmt.Errorf("no server answers")
	for _, address := range asked {
		nodes, askErr := s.listing(ctx, address)
		if askErr != nil {
			err = askErr
			continue
		}
		for _, n := range nodes {
			if n.owns(slot) && n.trusted() {
				return n, nil
			}
		}
		err = fmt.Errorf("at %s no node serves slot %d", address, slot)
	}
	return listed{}, err
}

func (n listed) owns(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// everyNode reads the lists of all nodes of the cluster that are not marked as failed, by address.
func (s *replicaScale) everyNode(ctx context.Context, seed string) (map[string][]listed, error) {
	nodes, err := s.listing(ctx, seed)
	if err != nil {
		return nil, err
	}
	all := map[string][]listed{}
	for _, n := range nodes {
		if !n.trusted() {
			continue
		}
		if all[n.address], err = s.listing(ctx, n.address); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// trusted is true of a node whose entry is complete and not marked as failed.
func (n listed) trusted() bool {
	return !n.is("handshake") && !n.is("noaddr") && !n.is("fail") && n.address != ""
}

// listing reads CLUSTER NODES of one node.
func (s *replicaScale) listing(ctx context.Context, address string) ([]listed, error) {
	reply, err := s.Servers.Do(ctx, address, s.Login, "CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	return parseListing(text, address)
}

func parseListing(text, asked string) ([]listed, error) {
	var nodes []listed
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES at %s: the line %q has less than 8 words", asked,
				redis.Printable(strings.TrimSpace(line), 200))
		}
		n := listed{
			id:        w[0],
			flags:     strings.Split(w[2], ","),
			primary:   w[3],
			connected: w[7] == "connected",
		}
		place, _, _ := strings.Cut(w[1], ",")
		place, n.bus, _ = strings.Cut(place, "@")
		n.address = topology.AddressOf(place, asked)
		var err error
		if n.slots, err = parseSlots(w[8:]); err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("CLUSTER NODES at %s names no node", asked)
	}
	return nodes, nil
}

// parseSlots reads slots and ranges of slots. Slots in migration, such as [93->-ID], are skipped.
func parseSlots(words []string) ([][2]int, error) {
	var slots [][2]int
	for _, word := range words {
		if strings.HasPrefix(word, "[") {
			continue
		}
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		a, firstErr := strconv.Atoi(first)
		b, lastErr := strconv.Atoi(last)
		if firstErr != nil || lastErr != nil {
			return nil, fmt.Errorf("%q is no range of slots", redis.Printable(word, 100))
		}
		slots = append(slots, [2]int{a, b})
	}
	return slots, nil
}

// left reports whether an entry is that of a member whose pod was removed.
func (m member) left(n listed) bool {
	return slices.Contains(m.Nodes, n.id) ||
		m.Address != "" && n.address == m.Address && !n.connected && !n.is("myself")
}

func (n listed) is(flag string) bool {
	return slices.Contains(n.flags, flag)
}
