package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// View is a cluster from the perspective of one of its nodes.
type View struct {
	Groups []Group
	Epochs map[string]uint64 // config epoch of each primary by node ID; nil if unknown
	Spare  []string          // host:port of primaries without slots, to which a slot may move

	// the node, one of several, serves its slots although others belong to no node; from CLUSTER INFO
	Partial bool
}

// Unassigned is the number of slots that belong to no node.
func (v *View) Unassigned() int {
	left := SlotCount
	for _, g := range v.Groups {
		for _, r := range g.Ranges {
			left -= int(r[1]) - int(r[0]) + 1
		}
	}
	return left
}

// Group is a primary and its replicas in a View.
type Group struct {
	Nodes  []Node // the primary first, if the view has one
	Ranges [][2]uint16
}

// Node is a server of a cluster.
type Node struct {
	ID      string
	Address string // host:port as a client dials it; "" = unknown
	Role    Role
	// host:port with its host name, by which a redirection may call it; "" = none is known; from
	// CLUSTER NODES alone
	Named string

	// a replica that CLUSTER SLOTS leaves out: it failed or has no data yet, but may be elected
	Unlisted bool
	// a replica with cluster-replica-no-failover, which is not elected; from CLUSTER NODES alone
	Barred bool
}

// calls are the addresses by which a redirection may call a node.
func (n *Node) calls() []string {
	return slices.DeleteFunc([]string{n.Address, n.Named}, func(a string) bool { return a == "" })
}

// primary returns the group's primary; nil if the view has none.
func (g *Group) primary() *Node {
	if len(g.Nodes) > 0 && g.Nodes[0].Role == Primary {
		return &g.Nodes[0]
	}
	return nil
}

// AddUnlisted adds the replicas, and the primaries without slots, that only CLUSTER NODES names.
func (v *View) AddUnlisted(told View) {
	for _, g := range told.Groups {
		if p := g.primary(); p != nil && len(g.Ranges) == 0 {
			v.Spare = append(v.Spare, p.calls()...)
		}
	}
	for i := range v.Groups {
		g := &v.Groups[i]
		same := slices.IndexFunc(told.Groups, func(o Group) bool {
			return o.primary() != nil &&
				o.primary().ID == g.Nodes[0].ID
		})
		if same < 0 {
			continue
		}
		for _, n := range told.Groups[same].Nodes {
			if !slices.ContainsFunc(g.Nodes, func(o Node) bool { return o.ID == n.ID }) {
				n.Unlisted = true
				g.Nodes = append(g.Nodes, n)
			}
		}
	}
}

// listed is the number of nodes that CLUSTER SLOTS lists.
func (g *Group) listed() (n int) {
	for _, node := range g.Nodes {
		if !node.Unlisted {
			n++
		}
	}
	return n
}

// ParseSlots reads the reply of CLUSTER SLOTS: each range with the primary that serves it, even one
// that failed, and the replicas that are up and have data. It names no primary without slots. An
// endpoint that is empty or "?" stands for the host that was queried.
func ParseSlots(reply any, asked string) (View, error) {
	var v View
	groups := map[string]int{} // by the primary's ID
	for _, entry := range listOf(reply) {
		e := listOf(entry)
		if len(e) < 3 {
			return View{}, Unexpected("CLUSTER SLOTS", reply)
		}
		r, ok := slotRange(e[0], e[1])
		if !ok {
			return View{}, Unexpected("CLUSTER SLOTS", reply)
		}
		var g Group
		for i, node := range e[2:] {
			n := listOf(node)
			if len(n) < 2 {
				return View{}, Unexpected("CLUSTER SLOTS", reply)
			}
			one := Node{Address: joinAddress(endpoint(TextOf(n[0]), asked), n[1]), Role: Replica}
			if len(n) > 2 {
				one.ID = TextOf(n[2])
			} else {
				one.ID = one.Address // before 4.0
			}
			if i == 0 {
				one.Role = Primary
			}
			g.add(one)
		}
		at, there := groups[g.Nodes[0].ID]
		if !there {
			at = len(v.Groups)
			groups[g.Nodes[0].ID] = at
			v.Groups = append(v.Groups, g)
		}
		v.Groups[at].Ranges = append(v.Groups[at].Ranges, r)
	}
	return v, nil
}

// maxNodes is how many nodes a cluster may have: ten times what Redis recommends at most.
const maxNodes = 10_000

// ParseNodes reads the reply of CLUSTER NODES. It is the only source of config epochs, and contains
// all of a View.
//
//	<id> <ip:port@cport[,hostname[,aux=value]...]> <flags> <primary|-> <ping> <pong> <epoch> <link> <slot> <first-last> [slot->-node] ...
func ParseNodes(text, asked string) (View, error) {
	v := View{Epochs: map[string]uint64{}}
	groups := map[string]int{} // by the primary's ID
	group := func(id string) *Group {
		at, ok := groups[id]
		if !ok {
			at = len(v.Groups)
			groups[id] = at
			v.Groups = append(v.Groups, Group{})
		}
		return &v.Groups[at]
	}
	lines := 0
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		if lines++; lines > maxNodes {
			return View{}, fmt.Errorf("CLUSTER NODES lists more than %d nodes: it is not believed", maxNodes)
		}
		if len(w) < 8 {
			return View{}, fmt.Errorf("CLUSTER NODES: line %q has less than 8 words",
				redis.Printable(strings.TrimSpace(line), 200))
		}
		flags := "," + w[2] + ","
		if strings.Contains(flags, ",noaddr,") || strings.Contains(flags, ",handshake,") {
			continue
		}
		n := Node{
			ID:     w[0],
			Role:   Replica,
			Barred: strings.Contains(flags, ",nofailover,"),
		}
		n.Address, n.Named = nodeAddress(w[1], asked)
		owner := w[3]
		if strings.Contains(flags, ",master,") {
			n.Role, owner = Primary, n.ID
			v.Epochs[n.ID], _ = strconv.ParseUint(w[6], 10, 64)
		}
		g := group(owner)
		g.add(n)
		for _, word := range w[8:] {
			if strings.HasPrefix(word, "[") {
				continue // a slot in migration still belongs to its source
			}
			first, last, isRange := strings.Cut(word, "-")
			if !isRange {
				last = first
			}
			r, ok := slotRange(first, last)
			if !ok {
				return View{}, fmt.Errorf("CLUSTER NODES: %q is not a range of slots",
					redis.Printable(word, 100))
			}
			g.Ranges = append(g.Ranges, r)
		}
	}
	if len(v.Groups) == 0 {
		return View{}, fmt.Errorf("CLUSTER NODES: the reply contains no node")
	}
	return v, nil
}

// add puts a primary before the replicas.
func (g *Group) add(n Node) {
	g.Nodes = append(g.Nodes, n)
	if last := len(g.Nodes) - 1; n.Role == Primary {
		g.Nodes[0], g.Nodes[last] = g.Nodes[last], g.Nodes[0]
	}
}

func slotRange(first, last any) ([2]uint16, bool) {
	a, ok := numberOf(first)
	b, also := numberOf(last)
	if !ok || !also || a < 0 || b < a || b >= SlotCount {
		return [2]uint16{}, false
	}
	return [2]uint16{uint16(a), uint16(b)}, true
}

// nodeAddress reads ip:port@cport[,hostname[,aux=value]...]. named is that of the host name; "" =
// it has none.
func nodeAddress(word, asked string) (address, named string) {
	place, rest, _ := strings.Cut(word, ",")
	place, _, _ = strings.Cut(place, "@")
	name, _, _ := strings.Cut(rest, ",")
	if name != "" && !strings.Contains(name, "=") {
		named = joinAddress(name, place[strings.LastIndexByte(place, ':')+1:])
	}
	return AddressOf(place, asked), named
}

// InOrder returns the groups of a view that own slots, by their lowest slot: the index is the
// number of the shard.
func InOrder(v View) []Group {
	groups := slices.DeleteFunc(slices.Clone(v.Groups), func(g Group) bool {
		return len(g.Ranges) == 0
	})
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.firstSlot(), b.firstSlot()) })
	return groups
}

func (g *Group) firstSlot() int {
	if len(g.Ranges) == 0 {
		return SlotCount
	}
	return int(g.Ranges[0][0])
}
