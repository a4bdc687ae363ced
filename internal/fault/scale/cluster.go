package scale

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// listed is one line of CLUSTER NODES.
type listed struct {
	id, address, bus string // address as a client dials it
	flags            []string
	primary          string // ID of the one that it replicates; "-" = none
	connected        bool
	slots            [][2]int // first and last of each range, in order
}

func (n listed) owns(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

func (n listed) is(flag string) bool { return slices.Contains(n.flags, flag) }

// trusted is a node whose entry is complete and that its cluster does not hold for dead.
func (n listed) trusted() bool {
	return !n.is("handshake") && !n.is("noaddr") && !n.is("fail") && n.address != ""
}

// listing is CLUSTER NODES as one node tells it.
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
			return nil, fmt.Errorf("CLUSTER NODES at %s: the line %q has less than 8 words", asked, strings.TrimSpace(line))
		}
		n := listed{id: w[0], flags: strings.Split(w[2], ","), primary: w[3], connected: w[7] == "connected"}
		place, _, _ := strings.Cut(w[1], ",")
		place, n.bus, _ = strings.Cut(place, "@")
		if at := strings.LastIndexByte(place, ':'); at >= 0 && place[at+1:] != "0" {
			host := place[:at]
			if host == "" { // a node that was never met does not know its own
				host, _, _ = net.SplitHostPort(asked)
			}
			n.address = net.JoinHostPort(host, place[at+1:])
		}
		for _, word := range w[8:] {
			if strings.HasPrefix(word, "[") {
				continue // a slot that moves
			}
			first, last, isRange := strings.Cut(word, "-")
			if !isRange {
				last = first
			}
			a, firstErr := strconv.Atoi(first)
			b, lastErr := strconv.Atoi(last)
			if firstErr != nil || lastErr != nil {
				return nil, fmt.Errorf("CLUSTER NODES at %s: %q is no range of slots", asked, word)
			}
			n.slots = append(n.slots, [2]int{a, b})
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("CLUSTER NODES at %s names no node", asked)
	}
	return nodes, nil
}

func findNode(nodes []listed, id string) (listed, bool) {
	i := slices.IndexFunc(nodes, func(n listed) bool { return n.id == id })
	if i < 0 {
		return listed{}, false
	}
	return nodes[i], true
}

func myself(nodes []listed) listed {
	i := slices.IndexFunc(nodes, func(n listed) bool { return n.is("myself") })
	return nodes[max(i, 0)]
}

// ownsSlots says whether a server may be the primary of a shard.
func (s *replicaScale) ownsSlots(ctx context.Context, address string, said told) bool {
	if said.Mode != "cluster" {
		return false
	}
	nodes, err := s.listing(ctx, address)
	return err != nil || len(myself(nodes).slots) > 0
}

// recordShard records the shard of the selected server and its primary, and refuses a user who may not change the cluster.
func (s *replicaScale) recordShard(ctx context.Context, target *v1alpha1.FaultTarget, record *scaleRecord) error {
	none := strings.Repeat("0", 40)
	for _, command := range [][]string{{"CLUSTER", "MYID"}, {"CLUSTER", "MEET", "127.0.0.1", "6379"}, {"CLUSTER", "REPLICATE", none}, {"CLUSTER", "FORGET", none}} {
		if err := s.MayRun(ctx, target.Address, command...); err != nil {
			return err
		}
	}
	m, err := s.node(ctx, target.Address)
	if err != nil {
		return err
	}
	owner, err := s.ownerOf(ctx, *m.Slot, []string{target.Address})
	if err != nil {
		return err
	}
	record.Slot, record.Primary = m.Slot, owner.address
	return nil
}

// node is what the server at an address is to its cluster.
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
		return member{}, problem.NotYet("node %s at %s belongs to no shard that owns slots", own.id, address)
	}
	return member{Address: address, Nodes: []string{own.id}, Slot: &primary.slots[0][0]}, nil
}

// ownerOf is the node that serves a slot, in the view of the first server that answers and does not hold it for dead.
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

// everyNode asks all nodes of the cluster that are not held for dead what they list. The error says which one does not answer.
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
		view, err := s.listing(ctx, at.address)
		if err != nil {
			return fmt.Sprintf("is not forgotten by %s yet: %v", at.address, err)
		}
		for _, n := range view {
			if !m.left(n) {
				continue
			}
			if len(n.slots) > 0 {
				return fmt.Sprintf("owned slots as node %s: it must not be forgotten before another node serves them", n.id)
			}
			_, err := s.Servers.Do(ctx, at.address, s.Login, "CLUSTER", "FORGET", n.id)
			if err != nil && !(redis.IsReply(err) && strings.Contains(err.Error(), "Unknown node")) {
				return fmt.Sprintf("is not forgotten by %s yet: %v", at.address, err)
			}
		}
	}
	return ""
}

// left says whether an entry is what remains of a member whose pod is gone.
func (m member) left(n listed) bool {
	return slices.Contains(m.Nodes, n.id) || m.Address != "" && n.address == m.Address && !n.connected && !n.is("myself")
}

// leaves says whether a node is one of those that go together. They are not asked to forget one another: where some primaries have forgotten one
// already, the others never find a majority that holds it for dead.
func leaves(now *scaling, n listed) bool {
	return slices.ContainsFunc(now.changed(), func(name string) bool { return now.record.Members[name].left(n) })
}

// recordAdded records the IDs that added servers have now, and says whether one is new.
func (s *replicaScale) recordAdded(ctx context.Context, now *scaling) (changed bool) {
	if s.by < 0 || now.record.Slot == nil {
		return false
	}
	for _, name := range now.changed() {
		pod, err := s.Pod(ctx, name)
		if err != nil || pod.Status.PodIP == "" {
			continue
		}
		m := now.record.Members[name]
		m.Address = s.Address(pod)
		if nodes, err := s.listing(ctx, m.Address); err == nil && !slices.Contains(m.Nodes, myself(nodes).id) {
			m.Nodes = append(m.Nodes, myself(nodes).id)
			changed = true
		}
		now.record.setMember(name, m)
	}
	return changed
}
