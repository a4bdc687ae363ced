package topology

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// MapOf is the map of a cluster of which some nodes have told their views: it merges them, and
// keeps the numbers that the shards had before, nil at first. known are further nodes to ask,
// primaries first.
func MapOf(before *Map, views []View) (m *Map, known []string) {
	if len(views) == 0 {
		if before == nil {
			m := NewMap(KindCluster, 0, nil)
			m.Problem = "no node answers"
			return m, nil
		}
		m := *before
		m.Problem = "no node answers"
		return &m, nil
	}
	groups := mergeViews(views)
	m = number(before, groups)
	m.Problem = unassigned(m, views)
	for _, v := range views {
		m.spare = append(m.spare, v.Spare...)
	}
	for _, g := range groups {
		if p := g.primary(); p != nil && p.Address != "" {
			known = append(known, p.Address)
		}
	}
	return m, append(known, m.Replicas()...)
}

// unassigned says how many slots belong to no node; "" if none, or if the nodes serve the others
// all the same, by cluster-require-full-coverage no.
// A cluster that is being formed is in that state, too: its nodes have not all met.
func unassigned(m *Map, views []View) string {
	switch left := m.Unassigned(); {
	case left == SlotCount:
		return "no slot belongs to a node"
	case left == 0 || slices.ContainsFunc(views, func(v View) bool { return v.Partial }):
		return ""
	default:
		return fmt.Sprintf("%d of %d slots belong to no node", left, SlotCount)
	}
}

// mergeViews merges several views. A slot belongs to the primary with the highest config epoch;
// among equals, and if no epoch is known, to the primary in most views.
func mergeViews(views []View) []Group {
	if len(views) == 1 || sameGroups(views) {
		return views[0].Groups
	}
	order, merged := bestGroups(views)
	claims := make([][]claim, len(order))
	for n := range claims {
		claims[n] = make([]claim, SlotCount)
	}
	for i := range views {
		for j := range views[i].Groups {
			g := &views[i].Groups[j]
			p := g.primary()
			if p == nil {
				continue
			}
			n, _ := slices.BinarySearch(order, p.ID)
			epoch := views[i].Epochs[p.ID]
			for _, r := range g.Ranges {
				for s := int(r[0]); s <= int(r[1]); s++ {
					claims[n][s].votes++
					claims[n][s].epoch = max(claims[n][s].epoch, epoch)
				}
			}
		}
	}
	for s := range SlotCount {
		winner := -1
		for n := range order {
			c := claims[n][s]
			if c.votes > 0 && (winner < 0 || c.over(claims[winner][s])) {
				winner = n
			}
		}
		if winner >= 0 {
			merged[winner].extend(uint16(s))
		}
	}
	return merged
}

// claim is the support of the views for one primary of a slot.
type claim struct {
	epoch uint64
	votes int
}

func (c claim) over(o claim) bool {
	return c.epoch > o.epoch || c.epoch == o.epoch && c.votes > o.votes
}

// bestGroups returns the groups, without slots, each from the view with the highest epoch of its
// primary, in the order of the primaries' IDs.
func bestGroups(views []View) (order []string, groups []Group) {
	best := map[string]*Group{} // by the primary's ID
	epochOf := map[string]uint64{}
	for i := range views {
		v := &views[i]
		for j := range v.Groups {
			g := &v.Groups[j]
			p := g.primary()
			if p == nil {
				continue
			}
			epoch := v.Epochs[p.ID]
			old := best[p.ID]
			if old == nil || epoch > epochOf[p.ID] || epoch == epochOf[p.ID] && g.listed() > old.listed() {
				best[p.ID], epochOf[p.ID] = g, epoch
			}
		}
	}
	order = slices.Sorted(maps.Keys(best))
	for _, id := range order {
		groups = append(groups, Group{Nodes: best[id].Nodes})
	}
	return order, groups
}

// extend adds a slot that is above all others of the group.
func (g *Group) extend(slot uint16) {
	last := len(g.Ranges) - 1
	if last >= 0 && g.Ranges[last][1]+1 == slot {
		g.Ranges[last][1] = slot
		return
	}
	g.Ranges = append(g.Ranges, [2]uint16{slot, slot})
}

func sameGroups(views []View) bool {
	first := byPrimary(views[0])
	for _, v := range views[1:] {
		if !reflect.DeepEqual(first, byPrimary(v)) {
			return false
		}
	}
	return true
}

// byPrimary is a view whose groups are sorted by primary.
func byPrimary(v View) map[string]Group {
	groups := make(map[string]Group, len(v.Groups))
	for _, g := range v.Groups {
		key := ""
		if p := g.primary(); p != nil {
			key = p.ID
		}
		g.Nodes = slices.SortedFunc(slices.Values(g.Nodes), func(a, b Node) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
		groups[key] = g
	}
	return groups
}

// number assigns each group the previous number of its shard, and new groups the next numbers.
// Shards are identified by their nodes, or else by their slots.
func number(before *Map, groups []Group) *Map {
	m := &Map{Kind: KindCluster, slots: emptySlots()}
	if before != nil {
		m.Shards = slices.Clone(before.Shards)
		m.members = slices.Clone(before.members)
	}
	for i := range m.Shards {
		m.Shards[i].Primary, m.Shards[i].Replicas = "", nil
	}
	// In the order of the slots, so that the shards of a new cluster are numbered by slot.
	ordered := slices.SortedStableFunc(slices.Values(groups), func(a, b Group) int {
		return a.firstSlot() - b.firstSlot()
	})
	chosen := choose(before, ordered)
	for i := range ordered {
		g := &ordered[i]
		if chosen[i] < 0 {
			if len(g.Ranges) == 0 {
				continue // a new node without slots, or a failed one
			}
			chosen[i] = len(m.Shards)
			m.Shards = append(m.Shards, Shard{})
			m.members = append(m.members, nil)
		}
		m.fill(chosen[i], g)
	}
	m.count()
	return m
}

// choose returns the previous number of each group's shard; -1 = none.
func choose(before *Map, groups []Group) []int {
	chosen := slices.Repeat([]int{-1}, len(groups))
	if before == nil {
		return chosen
	}
	var pairs []pair
	for i := range groups {
		for n, score := range scores(before, &groups[i]) {
			if score > 0 {
				pairs = append(pairs, pair{
					group: i,
					shard: n,
					score: score,
				})
			}
		}
	}
	// The best match is first, so that a replica that changed its shard does not take the number of
	// its former shard; groups with slots come before others: a failed primary without slots must not
	// take the number of the replica that replaced it.
	slices.SortStableFunc(pairs, func(a, b pair) int {
		aServes := len(groups[a.group].Ranges) > 0
		bServes := len(groups[b.group].Ranges) > 0
		if aServes != bServes {
			if aServes {
				return -1
			}
			return 1
		}
		return b.score - a.score
	})
	taken := make([]bool, len(before.Shards))
	for _, p := range pairs {
		if chosen[p.group] < 0 && !taken[p.shard] {
			chosen[p.group], taken[p.shard] = p.shard, true
		}
	}
	return chosen
}

// pair is the score of a group and a previous shard.
type pair struct{ group, shard, score int }

// The parts of a score.
const (
	matchSlot   = 1 // for each slot they share, where the group shares no node with any shard
	matchMember = 1 // for each node they share
	// the group's primary is a node of the shard; twice if it was its primary before
	matchPrimary = 1 << 20
)

// scores scores a group against each shard: by its primary, if that is the same or was a replica of
// it, and by the nodes they share. A group without known nodes is scored by slots: of a shard that
// is known only from a MOVED reply, or of one whose new primary was never listed.
func scores(before *Map, g *Group) []int {
	all := make([]int, len(before.Shards))
	known := false
	for n, members := range before.members {
		for _, node := range g.Nodes {
			was, ok := members[node.ID]
			if !ok {
				continue
			}
			known = true
			all[n] += matchMember
			if node.Role == Primary {
				all[n] += matchPrimary
				if was.Role == Primary {
					all[n] += matchPrimary
				}
			}
		}
	}
	if known {
		return all
	}
	for _, r := range g.Ranges {
		for slot := int(r[0]); slot <= int(r[1]); slot++ {
			if n := before.slots[slot]; n != noShard {
				all[n] += matchSlot
			}
		}
	}
	return all
}

func (m *Map) fill(n int, g *Group) {
	s := &m.Shards[n]
	members := map[string]Node{}
	for _, node := range g.Nodes {
		members[node.ID] = node
		switch {
		case node.Address == "" || node.Unlisted:
		case node.Role == Primary:
			// Even if it is down: it may recover before another primary is elected, and clients should then
			// reconnect immediately.
			s.Primary = node.Address
			if s.ID == "" {
				s.ID = node.ID
			}
		default:
			s.Replicas = append(s.Replicas, node.Address)
		}
	}
	slices.Sort(s.Replicas)
	m.members[n] = members
	for _, r := range g.Ranges {
		for slot := int(r[0]); slot <= int(r[1]); slot++ {
			m.slots[slot] = uint16(n)
		}
	}
}

// WithMoves applies moves that are not confirmed by a node's view yet.
func (m *Map) WithMoves(moves map[uint16]string) *Map {
	for _, slot := range slices.Sorted(maps.Keys(moves)) {
		if moved, known := m.WithMoved(slot, moves[slot]); known {
			m = moved
		}
	}
	return m
}

// WithMoved returns the map after a MOVED reply for a slot. A replica that receives a slot of its
// shard was promoted; a primary that had no slot yet is a new shard. An address that no node has
// told changes nothing: known is false.
func (m *Map) WithMoved(slot uint16, address string) (moved *Map, known bool) {
	if address == "" {
		return m, false
	}
	slot %= SlotCount
	to := slices.IndexFunc(m.Shards, func(s Shard) bool { return s.Primary == address })
	if n := m.slots[slot]; to >= 0 && n == uint16(to) {
		return m, true
	}
	c := m.Clone()
	if to < 0 {
		if to = c.shardOfReplica(address); to >= 0 {
			s := &c.Shards[to]
			s.Replicas = slices.DeleteFunc(slices.Clone(s.Replicas), func(a string) bool {
				return a == address
			})
			s.Primary = address
		}
	}
	if to < 0 {
		if !slices.Contains(m.spare, address) {
			return m, false
		}
		to = len(c.Shards)
		c.Shards = append(c.Shards, Shard{Primary: address})
		c.members = append(slices.Clone(c.members), nil)
	}
	if n := c.slots[slot]; n != noShard {
		c.Shards[n].Slots--
	}
	c.slots[slot] = uint16(to)
	c.Shards[to].Slots++
	return c, true
}

// shardOfReplica returns the shard of a replica, also of one that CLUSTER SLOTS does not list; -1 =
// none.
func (m *Map) shardOfReplica(address string) int {
	for i := range m.Shards {
		if slices.Contains(m.Shards[i].Replicas, address) {
			return i
		}
	}
	return slices.IndexFunc(m.members, func(members map[string]Node) bool {
		for _, node := range members {
			if node.Unlisted && slices.Contains(node.calls(), address) {
				return true
			}
		}
		return false
	})
}
